"""Look back a fixed number of rows."""

from __future__ import annotations

import numpy as np

from ...kernels.cells import NAN, Array, finite
from ...kernels.kernel_cache import kernel
from ...language.declare import EVEN, LINEAR, LOOKBACK_ARGUMENT, lag
from ...language.signature import Prose


@kernel
def _shifted(out: Array, values: Array, window: int) -> tuple[Array, Array, Array]:
    """Return results, values of today and values of then, as long rows side by side; results without a then are missing.

    The engine hands over whole tiles, so a look back of some rows is a shift of the tile read as one row.
    """
    shift = min(window, out.shape[0]) * out.shape[1]
    o, v = out.reshape(out.size), values.reshape(out.size)
    o[:shift] = NAN
    return o[shift:], v[shift:], v[: v.size - shift]


@kernel
def delay(out: Array, values: Array, window: int, lo: int, hi: int) -> None:
    """Take the value of `window` rows ago."""
    o, _, then = _shifted(out, values, window)
    for at in range(o.size):
        o[at] = then[at]


@kernel
def delta(out: Array, values: Array, window: int, lo: int, hi: int) -> None:
    """Subtract the value of `window` rows ago."""
    o, now, then = _shifted(out, values, window)
    for at in range(o.size):
        o[at] = finite(now[at] - then[at])


@kernel
def ts_returns(out: Array, values: Array, window: int, lo: int, hi: int) -> None:
    """Divide by the value of `window` rows ago, less one; from zero it is missing."""
    o, now, then = _shifted(out, values, window)
    for at in range(o.size):
        o[at] = finite(np.float64(now[at]) / np.float64(then[at]) - 1.0)


DELAY = lag(
    "delay", "same", Prose("x as it was `window` rows ago.", "{x} of {window} days ago", "delay(close, 5)"), delay,
    cost=0.1, interval="shift", window=LOOKBACK_ARGUMENT, scaling=LINEAR, nan="A value that was missing then is NaN now.",
    reference=lambda x, **_: x[0],
)  # fmt: skip
DELTA = lag(
    "delta", "same", Prose("x minus x of `window` rows ago.", "the {window}-day change of {x}", "delta(close, 5)"), delta,
    cost=0.15, scaling=LINEAR, nan="Both ends must be present.", reference=lambda x, **_: x[-1] - x[0],
)  # fmt: skip
TS_RETURNS = lag(
    "ts_returns", "return",
    Prose("x over x of `window` rows ago, minus 1.", "the {window}-day return of {x}", "ts_returns(close, 5)"),
    ts_returns, cost=0.3, scaling=EVEN, nan="Both ends must be present; an earlier value of 0 gives NaN.",
    reference=lambda x, **_: x[-1] / x[0] - 1,
)  # fmt: skip
