"""Two series over a rolling window, or one against time, from centred moments (see `moments`).

Only rows where both are present take part.
"""

from __future__ import annotations

import math

import numpy as np

from ..declare import DDOF, EVEN, LINEAR, rolling
from ..kernels.cells import NAN, Array, Sums, finite, is_constant
from ..kernels.kernel_cache import kernel
from ..obvious import clock, correlation, covariance, line
from ..signature import Prose

CORRELATION, COVARIANCE, SLOPE, RESIDUAL, R_SQUARED = 0, 1, 2, 3, 4


@kernel
def _add(x: Array, y: Array, before: Sums, after: Sums) -> None:
    """Add a row to count, both means, both squared deviations and their product; the arrays may not be the same one."""
    for j in range(x.size):
        present = (x[j] == x[j]) & (y[j] == y[j])
        share = 1.0 / (before[0, j] + 1.0) if present else 0.0
        off_x = np.float64(x[j]) - before[1, j] if present else 0.0
        off_y = np.float64(y[j]) - before[2, j] if present else 0.0
        after[0, j] = before[0, j] + (1.0 if present else 0.0)
        after[1, j] = before[1, j] + off_x * share
        after[2, j] = before[2, j] + off_y * share
        after[3, j] = before[3, j] + off_x * off_x * (1.0 - share)
        after[4, j] = before[4, j] + off_y * off_y * (1.0 - share)
        after[5, j] = before[5, j] + off_x * off_y * (1.0 - share)


@kernel
def _merge(older: Sums, newer: Sums, j: int) -> tuple[float, float, float, float, float, float]:
    """Merge the moments of two parts."""
    a, b = older[0, j], newer[0, j]
    n = a + b
    part = b / max(n, 1.0)
    gap_x, gap_y = newer[1, j] - older[1, j], newer[2, j] - older[2, j]
    weight = part * a
    xx = older[3, j] + newer[3, j] + gap_x * gap_x * weight
    yy = older[4, j] + newer[4, j] + gap_y * gap_y * weight
    xy = older[5, j] + newer[5, j] + gap_x * gap_y * weight
    return n, older[1, j] + gap_x * part, older[2, j] + gap_y * part, xx, yy, xy


@kernel
def _relation(n: float, mx: float, my: float, xx: float, yy: float, xy: float, ddof: float, what: int) -> float:
    """Turn the moments into a correlation, covariance, slope of y on x, or R squared."""
    if what == COVARIANCE:
        return xy / (n - ddof) if n > ddof else np.nan
    if is_constant(xx, mx, n):
        return np.nan
    if what in (SLOPE, RESIDUAL):
        return xy / xx
    if is_constant(yy, my, n):
        return np.nan
    r = min(max(xy / math.sqrt(xx * yy), -1.0), 1.0)
    return r * r if what == R_SQUARED else r


@kernel
def rolling_pair(
    out: Array, x: Array, y: Array, window: int, need: int, ddof: int, what: int, lo: int, hi: int
) -> None:
    """Correlation or covariance of x and y, or the line of y on x: its slope, today's residual, its R squared."""
    days, names = out.shape[0], hi - lo
    tails, heads = np.zeros((min(window, days) + 1, 6, names)), np.zeros((2, 6, names))
    for day in range(days):
        place = day % window
        if place == 0:
            for back in range(window - 1 if day else -1, -1, -1):
                past = day - window + back
                _add(x[past, lo:hi], y[past, lo:hi], tails[back + 1], tails[back])
            heads[:] = 0.0
        head, tail, o, now_x, now_y = heads[day % 2], tails[place + 1], out[day, lo:hi], x[day, lo:hi], y[day, lo:hi]
        _add(now_x, now_y, heads[(day + 1) % 2], head)
        for j in range(names):
            n, mx, my, xx, yy, xy = _merge(tail, head, j)
            answer = _relation(n, mx, my, xx, yy, xy, ddof, what)
            if what == RESIDUAL:
                answer = (np.float64(now_y[j]) - my) - answer * (np.float64(now_x[j]) - mx)
            o[j] = finite(answer) if n >= need else NAN


@kernel
def rolling_trend(out: Array, values: Array, window: int, need: int, what: int, lo: int, hi: int) -> None:
    """Slope, today's residual, or R squared of the line of the values on the number of the row."""
    clock = np.empty((out.shape[0], hi), np.float32)
    for day in range(out.shape[0]):
        clock[day] = np.float32(day)
    rolling_pair(out, clock, values, window, need, 1, what, lo, hi)


BOTH = "Rows where both are present count."

TS_CORR = rolling(
    "ts_corr", "ratio",
    Prose("Pearson correlation of x and y over the window.", "the {window}-day correlation of {x} with {y}",
          "ts_corr(returns, volume, 20)"),
    rolling_pair, takes="x y", cost=5.0, fixed=(1, CORRELATION), scaling=("odd", "odd"), symmetric=True,
    nan=BOTH + " A constant one, by a relative test, gives NaN.", reference=lambda x, y, **_: correlation(x, y),
)  # fmt: skip
TS_COV = rolling(
    "ts_cov", "product",
    Prose("Covariance of x and y over the window.", "the {window}-day covariance of {x} with {y}",
          "ts_cov(returns, volume, 20)"),
    rolling_pair, DDOF, takes="x y", cost=5.0, fixed=(COVARIANCE,), scaling=("linear", "linear"), symmetric=True,
    nan=BOTH, reference=lambda x, y, ddof, **_: covariance(x, y, ddof),
)  # fmt: skip
TS_BETA = rolling(
    "ts_beta", "quotient",
    Prose("Slope of the least-squares line of y on x over the window.", "the {window}-day slope of {y} on {x}",
          "ts_beta(returns, delay(returns, 1), 20)"),
    rolling_pair, takes="y x", cost=5.0, fixed=(1, SLOPE), swapped=True, scaling=("linear", "inverse"),
    nan=BOTH + " A constant x gives NaN.", reference=lambda y, x, **_: line(y, x)[0],
)  # fmt: skip
TS_SLOPE = rolling(
    "ts_slope", "same",
    Prose("Slope of the least-squares line of x on time over the window, per day.",
          "the slope of the {window}-day trend of {x}", "ts_slope(close, 20)"),
    rolling_trend, cost=5.0, fixed=(SLOPE,), scaling=LINEAR, reference=lambda x, **_: line(x, clock(x))[0],
)  # fmt: skip
TS_RESIDUAL = rolling(
    "ts_residual", "same",
    Prose("Today's distance from the least-squares line of x on time over the window.",
          "how far {x} is above its {window}-day trend", "ts_residual(close, 20)"),
    rolling_trend, cost=5.0, fixed=(RESIDUAL,), scaling=LINEAR, nan="Today's value must be present.",
    reference=lambda x, **_: x[-1] - line(x, clock(x))[1] - line(x, clock(x))[0] * clock(x)[-1],
)  # fmt: skip
TS_RSQUARE = rolling(
    "ts_rsquare", "ratio",
    Prose("R squared of the least-squares line of x on time over the window.",
          "how well a straight line fits the last {window} days of {x}", "ts_rsquare(close, 20)"),
    rolling_trend, cost=5.0, fixed=(R_SQUARED,), scaling=EVEN, nan="A constant window gives NaN.",
    reference=lambda x, **_: correlation(x, clock(x)) ** 2,
)  # fmt: skip
