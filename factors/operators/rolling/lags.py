"""Look back a fixed number of rows, or to the latest row of a window that meets a condition."""

from __future__ import annotations

import math

import numpy as np

from ...kernels.cells import FLOAT32_ONE, FLOAT32_ZERO, NAN, Array, finite
from ...kernels.kernel_cache import kernel
from ...language.operator import (
    EVEN,
    LINEAR,
    LOOKBACK_ARGUMENT,
    WINDOW,
    Argument,
    Compute,
    Operator,
    Prose,
    lag,
    panels,
    rolling,
)
from ..reference import Values


@kernel
def _shift(out: Array, values: Array, window: int) -> tuple[Array, Array, Array]:
    """Return results, today's values and the earlier values as flat arrays; results without an earlier value are NaN.

    The engine passes whole tiles, so looking back some rows is a shift of the flattened tile.
    """
    shift = min(window, out.shape[0]) * out.shape[1]
    o, v = out.reshape(out.size), values.reshape(out.size)
    o[:shift] = NAN
    return o[shift:], v[shift:], v[: v.size - shift]


@kernel
def delay(out: Array, values: Array, window: int, lo: int, hi: int) -> None:
    """Take the value of `window` rows ago."""
    o, _, then = _shift(out, values, window)
    for at in range(o.size):
        o[at] = then[at]


@kernel
def delta(out: Array, values: Array, window: int, lo: int, hi: int) -> None:
    """Subtract the value of `window` rows ago."""
    o, now, then = _shift(out, values, window)
    for at in range(o.size):
        o[at] = finite(now[at] - then[at])


@kernel
def ts_returns(out: Array, values: Array, window: int, lo: int, hi: int) -> None:
    """Divide by the value of `window` rows ago, less one; from zero it is missing."""
    o, now, then = _shift(out, values, window)
    for at in range(o.size):
        o[at] = finite(np.float64(now[at]) / np.float64(then[at]) - 1.0)


DELAY = lag(
    "delay", "same", Prose("x as it was `window` rows ago.", "{x} of {window} days ago", "delay(close, 5)"), delay,
    cost=0.1, interval="shift", window=LOOKBACK_ARGUMENT, scaling=LINEAR,
    nan="A value that was missing then is NaN now.", reference=lambda x, **_: x[0],
)  # fmt: skip  # a table
DELTA = lag(
    "delta", "same", Prose("x minus x of `window` rows ago.", "the {window}-day change of {x}", "delta(close, 5)"),
    delta, cost=0.15, scaling=LINEAR, nan="Both ends must be present.", reference=lambda x, **_: x[-1] - x[0],
)  # fmt: skip  # a table
TS_RETURNS = lag(
    "ts_returns", "return",
    Prose("x over x of `window` rows ago, minus 1.", "the {window}-day return of {x}", "ts_returns(close, 5)"),
    ts_returns, cost=0.3, scaling=EVEN, nan="Both ends must be present; an earlier value of 0 gives NaN.",
    reference=lambda x, **_: x[-1] / x[0] - 1,
)  # fmt: skip  # a table


LATEST_SINCE, LATEST_VALUE = 0, 1
NEVER = np.float32(-np.inf)


@kernel
def rolling_latest(out: Array, values: Array, window: int, need: int, what: int, lo: int, hi: int) -> None:
    """Rows since the latest row that is true, 0 for today; or the latest value that is present."""
    names = hi - lo
    when, last, known = np.full(names, NEVER), np.full(names, NAN), np.zeros(names, np.float32)
    for day in range(out.shape[0]):
        now, gone, o = values[day, lo:hi], values[max(day - window, 0), lo:hi], out[day, lo:hi]
        today, leaves = np.float32(day), day >= window
        for j in range(names):
            present = now[j] == now[j]
            hit = present & ((what == LATEST_VALUE) | (now[j] != FLOAT32_ZERO))
            when[j] = today if hit else when[j]
            last[j] = now[j] if hit else last[j]
            known[j] += (FLOAT32_ONE if present else FLOAT32_ZERO) - (
                FLOAT32_ONE if leaves & (gone[j] == gone[j]) else FLOAT32_ZERO
            )
            age = today - when[j]
            valid = (age < window) & (known[j] >= need)
            o[j] = (last[j] if what == LATEST_VALUE else age) if valid else NAN


def _since_reference(window: Values) -> float:
    hits = np.flatnonzero(np.nan_to_num(window) != 0)
    return float(len(window) - 1 - hits[-1]) if len(hits) else math.nan


DAYS_SINCE = rolling(
    "ts_days_since", "number",
    Prose("Rows since the condition last held within the window, 0 for today.",
          "the number of days since {condition}, within {window} days", "ts_days_since(close > delay(high, 1), 20)"),
    rolling_latest, takes="condition?", cost=1.5, fixed=(LATEST_SINCE,), nan="A condition that never held gives NaN.",
    reference=lambda x, **_: _since_reference(x),
)  # fmt: skip  # a table
LAST = Operator(
    "ts_last", "time series",
    (*panels("x"), WINDOW, Argument("min_periods", "number", 1.0, True, low=1, high=10_000, whole=True)),
    *Prose("The latest value of the window that is present: fills gaps forward, for `window` - 1 rows at most.",
           "the latest {x} of the last {window} days", "ts_last(cap, 5)"),
    "same", "window", scaling=LINEAR, nan="Here a single value is enough unless `min_periods` asks for more.",
    compute=Compute(rolling_latest, 1.5, (LATEST_VALUE,)), reference=lambda x, **_: x[~np.isnan(x)][-1],
)  # fmt: skip  # a table
