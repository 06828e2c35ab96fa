"""Skewness and kurtosis of a rolling window, from centred moments that are merged, never subtracted.

Heads and tails are as in `sums`. Each carries its count, mean and sums of powers of deviations from that mean; a row
is added by Welford's update and two parts are merged by the formulas of Chan, Golub and LeVeque (1983) and of Pebay
(2008). All values inside the window and none outside it take part.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..declare import EVEN, ODD, rolling
from ..kernels.cells import NAN, Array, Sums, finite, is_constant
from ..kernels.kernel_cache import kernel
from ..obvious import Values, constant, present
from ..signature import Prose

SKEW, KURTOSIS = 0, 1


@kernel
def _add_powers(row: Array, before: Sums, after: Sums) -> None:
    """Add a row to count, mean and the 2nd, 3rd and 4th powers of deviations; the arrays may not be the same one."""
    for j in range(row.size):
        present = row[j] == row[j]
        n, second, third = before[0, j], before[2, j], before[3, j]
        more = n + (1.0 if present else 0.0)
        off = np.float64(row[j]) - before[1, j] if present else 0.0
        step = off / max(more, 1.0)
        gain = off * step * n
        after[0, j] = more
        after[1, j] = before[1, j] + step
        after[2, j] = second + gain
        after[3, j] = third + gain * step * (more - 2.0) - 3.0 * step * second
        fourth = gain * step * step * (more * more - 3.0 * more + 3.0)
        after[4, j] = before[4, j] + fourth + 6.0 * step * step * second - 4.0 * step * third


@kernel
def _merge_powers(older: Sums, newer: Sums, both: Sums) -> None:
    """Merge count, mean and the sums of powers of two parts."""
    for j in range(both.shape[1]):
        a, b = older[0, j], newer[0, j]
        n = a + b
        step = (newer[1, j] - older[1, j]) / max(n, 1.0)
        square = step * step
        both[0, j] = n
        both[1, j] = older[1, j] + step * b
        both[2, j] = older[2, j] + newer[2, j] + square * a * b * n
        third = older[3, j] + newer[3, j] + square * step * a * b * (a - b) * n
        both[3, j] = third + 3.0 * step * (a * newer[2, j] - b * older[2, j])
        fourth = older[4, j] + newer[4, j] + square * square * a * b * (a * a - a * b + b * b) * n
        fourth += 6.0 * square * (a * a * newer[2, j] + b * b * older[2, j])
        both[4, j] = fourth + 4.0 * step * (a * newer[3, j] - b * older[3, j])


@kernel
def _shape(n: float, mean: float, second: float, third: float, fourth: float, what: int) -> float:
    """Turn the sums of powers into the unbiased skewness or excess kurtosis; both need a spread."""
    skew = n * math.sqrt(n - 1.0) / (n - 2.0) * third / (second * math.sqrt(second))
    scale = (n - 1.0) / ((n - 2.0) * (n - 3.0))
    kurtosis = scale * (n * (n + 1.0) * fourth / (second * second) - 3.0 * (n - 1.0))
    missing = (n < 3.0 + what) | is_constant(second, mean, n)
    return np.nan if missing else (skew if what == SKEW else kurtosis)


@kernel
def rolling_shape(out: Array, values: Array, window: int, need: int, what: int, lo: int, hi: int) -> None:
    """Skewness or excess kurtosis, corrected for bias."""
    days, names = out.shape[0], hi - lo
    tails, heads, both = np.zeros((min(window, days) + 1, 5, names)), np.zeros((2, 5, names)), np.zeros((5, names))
    for day in range(days):
        place = day % window
        if place == 0:
            for back in range(window - 1 if day else -1, -1, -1):
                _add_powers(values[day - window + back, lo:hi], tails[back + 1], tails[back])
            heads[:] = 0.0
        head, o = heads[day % 2], out[day, lo:hi]
        _add_powers(values[day, lo:hi], heads[(day + 1) % 2], head)
        _merge_powers(tails[place + 1], head, both)
        for j in range(names):
            answer = _shape(both[0, j], both[1, j], both[2, j], both[3, j], both[4, j], what)
            o[j] = finite(answer) if both[0, j] >= need else NAN


def _standard(values: Values) -> Values:
    """Bring to a scale that pandas does not take for zero."""
    centred: Values = values - values.mean()
    centred /= np.abs(centred).max()
    return centred


def _moment(name: str, least: int) -> Callable[..., float]:
    """Make a reference from a method of pandas, which corrects for bias."""

    def shape(x: Values, **_: float) -> float:
        import pandas as pd

        v = present(x)
        return math.nan if len(v) < least or constant(v) else float(getattr(pd.Series(_standard(v)), name)())

    return shape


TS_SKEW = rolling(
    "ts_skew", "ratio",
    Prose("Skewness over the window, corrected for bias as pandas does.", "the {window}-day skewness of {x}",
          "ts_skew(returns, 60)"),
    rolling_shape, cost=6.0, fixed=(SKEW,), scaling=ODD, nan="A constant window, or fewer than 3 values, gives NaN.",
    reference=_moment("skew", 3),
)  # fmt: skip
TS_KURT = rolling(
    "ts_kurt", "ratio",
    Prose("Excess kurtosis over the window, corrected for bias as pandas does.", "the {window}-day kurtosis of {x}",
          "ts_kurt(returns, 60)"),
    rolling_shape, cost=6.0, fixed=(KURTOSIS,), scaling=EVEN,
    nan="A constant window, or fewer than 4 values, gives NaN.", reference=_moment("kurt", 4),
)  # fmt: skip
