"""Statistics of two series over a rolling window, from sums about anchors that slide with it (see `spread`).

Only rows where both are present count. `ts_autocorr` pairs a series with its own past.
"""

from __future__ import annotations

import math

import numpy as np

from ...kernels.cells import FLOAT32_EPSILON, NAN, Array, Flags, Places, Sums, finite, flagged, no_flags
from ...kernels.kernel_cache import kernel
from ...language.operator import DDOF, EVEN, Argument, Prose, rolling
from ..reference import correlation, covariance, line
from .spread import MIN_SQUARES_SHARE, RENEW_AFTER_WINDOWS

PAIR_CORRELATION, PAIR_COVARIANCE, PAIR_SLOPE, PAIR_RESIDUAL, PAIR_INTERCEPT = 0, 1, 2, 3, 4

PairState = tuple[Sums, Sums, Sums, Sums, Sums, Sums, Sums, Sums, Sums, Sums]
"""Anchors of x and y, count, sums, squares, products, and the largest squares so far; separate arrays, see `spread`."""


@kernel
def _make_state(m: int) -> PairState:
    """Return the state of an empty window."""
    a, b, n, sx, sy = np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m)
    return a, b, n, sx, sy, np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m)


@kernel
def _add(x: Array, y: Array, state: PairState) -> None:
    """Add a row to the sums about the anchors."""
    anchor_x, anchor_y, n, sx, sy, xx, yy, xy, _, _ = state
    for j in range(x.size):
        present = (x[j] == x[j]) & (y[j] == y[j])
        off_x = np.float64(x[j]) - anchor_x[j] if present else 0.0
        off_y = np.float64(y[j]) - anchor_y[j] if present else 0.0
        n[j] += 1.0 if present else 0.0
        sx[j] += off_x
        sy[j] += off_y
        xx[j] += off_x * off_x
        yy[j] += off_y * off_y
        xy[j] += off_x * off_y


@kernel
def _roll(x: Array, y: Array, gone_x: Array, gone_y: Array, state: PairState) -> None:
    """Add a row to the sums and take another out, in one pass."""
    anchor_x, anchor_y, n, sx, sy, xx, yy, xy, _, _ = state
    for j in range(x.size):
        present = (x[j] == x[j]) & (y[j] == y[j])
        a = np.float64(x[j]) - anchor_x[j] if present else 0.0
        b = np.float64(y[j]) - anchor_y[j] if present else 0.0
        there = (gone_x[j] == gone_x[j]) & (gone_y[j] == gone_y[j])
        c = np.float64(gone_x[j]) - anchor_x[j] if there else 0.0
        d = np.float64(gone_y[j]) - anchor_y[j] if there else 0.0
        n[j] += (1.0 if present else 0.0) - (1.0 if there else 0.0)
        sx[j] += a - c
        sy[j] += b - d
        xx[j] += a * a - c * c
        yy[j] += b * b - d * d
        xy[j] += a * b - c * d


@kernel
def _renew(x: Array, y: Array, first: int, day: int, lo: int, state: PairState) -> None:
    """Recompute the sums of the rows before today, with today's values as anchors."""
    anchor_x, anchor_y, n, sx, sy, xx, yy, xy, most_x, most_y = state
    hi = lo + n.size
    now_x, now_y = x[day, lo:hi], y[day, lo:hi]
    for j in range(now_x.size):
        present = (now_x[j] == now_x[j]) & (now_y[j] == now_y[j])
        anchor_x[j] = np.float64(now_x[j]) if present else anchor_x[j]
        anchor_y[j] = np.float64(now_y[j]) if present else anchor_y[j]
    for sums in (n, sx, sy, xx, yy, xy):
        sums[:] = 0.0
    for past in range(first, day):
        _add(x[past, lo:hi], y[past, lo:hi], state)
    most_x[:] = xx
    most_y[:] = yy


@kernel
def _compute_exactly(
    x: Array, y: Array, first: int, stop: int, column: int
) -> tuple[float, float, float, float, float, float]:
    """Return count, sums, and count times squares and products about the means of one window, in two passes."""
    n, sx, sy, vx, vy, c = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for past in range(first, stop):
        if (x[past, column] == x[past, column]) & (y[past, column] == y[past, column]):
            n += 1.0
            sx += np.float64(x[past, column])
            sy += np.float64(y[past, column])
    for past in range(first, stop):
        if (x[past, column] == x[past, column]) & (y[past, column] == y[past, column]):
            off_x, off_y = np.float64(x[past, column]) - sx / n, np.float64(y[past, column]) - sy / n
            vx += off_x * off_x
            vy += off_y * off_y
            c += off_x * off_y
    return n, sx, sy, n * vx, n * vy, n * c


@kernel
def _compute_correlation(sx: float, sy: float, vx: float, vy: float, c: float) -> float:
    """Turn sums, and count times squares and products, into a correlation; NaN if a side is constant."""
    r = min(max(c / math.sqrt(vx * vy), -1.0), 1.0)
    flat = (vx <= (sx * FLOAT32_EPSILON) ** 2) | (vy <= (sy * FLOAT32_EPSILON) ** 2)
    return np.nan if flat else r


@kernel
def _compute_relation(
    n: float, sx: float, sy: float, vx: float, c: float, now_x: float, now_y: float, ddof: int, what: int
) -> float:
    """Turn them into a covariance, or into slope, today's residual or intercept of the line of y on x."""
    if what == PAIR_COVARIANCE:
        return c / (n * (n - ddof)) if n > ddof else np.nan
    slope = c / vx if vx > (sx * FLOAT32_EPSILON) ** 2 else np.nan
    if what == PAIR_SLOPE:
        return slope
    return (now_y - sy / n) - slope * (now_x - sx / n) if what == PAIR_RESIDUAL else (sy - slope * sx) / n


@kernel
def _write_correlation(o: Array, state: PairState, doubt: Flags, need: int) -> int:
    """Write a day, and flag and count the cells where the sums have lost too many digits."""
    anchor_x, anchor_y, count, sx, sy, xx, yy, xy, most_x, most_y = state
    lost = 0
    for j in range(o.size):
        n = count[j]
        most_x[j], most_y[j] = max(most_x[j], xx[j]), max(most_y[j], yy[j])
        vx, vy, c = n * xx[j] - sx[j] * sx[j], n * yy[j] - sy[j] * sy[j], n * xy[j] - sx[j] * sy[j]
        doubt[j] = (n >= need) & ((vx < MIN_SQUARES_SHARE * n * most_x[j]) | (vy < MIN_SQUARES_SHARE * n * most_y[j]))
        lost += 1 if doubt[j] else 0
        answer = _compute_correlation(n * anchor_x[j] + sx[j], n * anchor_y[j] + sy[j], vx, vy, c)
        o[j] = np.float32(answer) if n >= need else NAN
    return lost


@kernel
def _write_relation(
    o: Array, x: Array, y: Array, state: PairState, doubt: Flags, need: int, ddof: int, what: int
) -> int:
    """Write a day, and flag and count the cells where the sums have lost too many digits."""
    anchor_x, anchor_y, count, sx, sy, xx, yy, xy, most_x, most_y = state
    lost = 0
    for j in range(o.size):
        n = count[j]
        most_x[j], most_y[j] = max(most_x[j], xx[j]), max(most_y[j], yy[j])
        vx, vy, c = n * xx[j] - sx[j] * sx[j], n * yy[j] - sy[j] * sy[j], n * xy[j] - sx[j] * sy[j]
        doubt[j] = (n >= need) & ((vx < MIN_SQUARES_SHARE * n * most_x[j]) | (vy < MIN_SQUARES_SHARE * n * most_y[j]))
        lost += 1 if doubt[j] else 0
        total_x, total_y = n * anchor_x[j] + sx[j], n * anchor_y[j] + sy[j]
        answer = _compute_relation(n, total_x, total_y, vx, c, np.float64(x[j]), np.float64(y[j]), ddof, what)
        o[j] = finite(answer) if n >= need else NAN
    return lost


@kernel
def _recompute_flagged(
    out: Array, x: Array, y: Array, window: int, ddof: int, what: int, lo: int, day: int, doubt: Flags, places: Places
) -> None:
    """Compute the flagged cells of a day exactly."""
    for at in range(flagged(doubt, places)):
        j = lo + places[at]
        n, sx, sy, vx, vy, c = _compute_exactly(x, y, max(0, day - window + 1), day + 1, j)
        if what == PAIR_CORRELATION:
            out[day, j] = finite(_compute_correlation(sx, sy, vx, vy, c))
        else:
            out[day, j] = finite(
                _compute_relation(n, sx, sy, vx, c, np.float64(x[day, j]), np.float64(y[day, j]), ddof, what)
            )


@kernel
def rolling_pair(
    out: Array, x: Array, y: Array, window: int, need: int, ddof: int, what: int, lo: int, hi: int
) -> None:
    """Correlation or covariance of x and y, or slope, today's residual or intercept of the line of y on x."""
    state, doubt, places = _make_state(hi - lo), no_flags(hi - lo), np.empty(hi - lo + 8, np.int64)
    for day in range(out.shape[0]):
        first, now_x, now_y, o = max(0, day - window), x[day, lo:hi], y[day, lo:hi], out[day, lo:hi]
        if day % (RENEW_AFTER_WINDOWS * window) == 0:
            _renew(x, y, first, day, lo, state)
        if day >= window:
            _roll(now_x, now_y, x[first, lo:hi], y[first, lo:hi], state)
        else:
            _add(now_x, now_y, state)
        if what == PAIR_CORRELATION:
            lost = _write_correlation(o, state, doubt, need)
        else:
            lost = _write_relation(o, now_x, now_y, state, doubt, need, ddof, what)
        if lost:
            _recompute_flagged(out, x, y, window, ddof, what, lo, day, doubt, places)


BOTH_PRESENT_NOTE = "Rows where both are present count."

TS_CORR = rolling(
    "ts_corr", "ratio",
    Prose("Pearson correlation of x and y over the window.", "the {window}-day correlation of {x} with {y}",
          "ts_corr(returns, volume, 20)"),
    rolling_pair, takes="x y", cost=2.7, fixed=(1, PAIR_CORRELATION), scaling=("odd", "odd"), symmetric=True,
    nan=BOTH_PRESENT_NOTE + " A constant one, by a relative test, gives NaN.",
    reference=lambda x, y, **_: correlation(x, y),
)  # fmt: skip  # a table
TS_COV = rolling(
    "ts_cov", "product",
    Prose("Covariance of x and y over the window.", "the {window}-day covariance of {x} with {y}",
          "ts_cov(returns, volume, 20)"),
    rolling_pair, DDOF, takes="x y", cost=2.7, fixed=(PAIR_COVARIANCE,), scaling=("linear", "linear"), symmetric=True,
    nan=BOTH_PRESENT_NOTE, reference=lambda x, y, ddof, **_: covariance(x, y, ddof),
)  # fmt: skip  # a table
TS_BETA = rolling(
    "ts_beta", "quotient",
    Prose("Slope of the least-squares line of y on x over the window.", "the {window}-day slope of {y} on {x}",
          "ts_beta(returns, delay(returns, 1), 20)"),
    rolling_pair, takes="y x", cost=2.7, fixed=(1, PAIR_SLOPE), swapped=True, scaling=("linear", "inverse"),
    nan=BOTH_PRESENT_NOTE + " A constant x gives NaN.", reference=lambda y, x, **_: line(y, x)[0],
)  # fmt: skip  # a table


TS_RESID = rolling(
    "ts_resid", "same",
    Prose("Today's distance of y from the least-squares line of y on x over the window.",
          "how far {y} is above its {window}-day line on {x}", "ts_resid(returns, delay(returns, 1), 60)"),
    rolling_pair, takes="y x", cost=3.0, fixed=(1, PAIR_RESIDUAL), swapped=True, scaling=("linear", "even"),
    nan=BOTH_PRESENT_NOTE + " Both must be present today, and x may not be constant.",
    reference=lambda y, x, **_: y[-1] - line(y, x)[1] - line(y, x)[0] * x[-1],
)  # fmt: skip  # a table
TS_ALPHA = rolling(
    "ts_alpha", "same",
    Prose("Level at x = 0 of the least-squares line of y on x over the window: the intercept.",
          "the intercept of the {window}-day line of {y} on {x}", "ts_alpha(returns, delay(returns, 1), 60)"),
    rolling_pair, takes="y x", cost=3.0, fixed=(1, PAIR_INTERCEPT), swapped=True, scaling=("linear", "even"),
    nan=BOTH_PRESENT_NOTE + " A constant x gives NaN.", reference=lambda y, x, **_: line(y, x)[1],
)  # fmt: skip  # a table


LAG = Argument("lag", "window", 1.0, low=1, high=10_000, whole=True)

TS_AUTOCORR = rolling(
    "ts_autocorr", "ratio",
    Prose("Correlation over the window of x with x of `lag` rows before.",
          "the {window}-day correlation of {x} with itself {lag} days before", "ts_autocorr(returns, 60, 1)"),
    None, LAG, scaling=EVEN, nan="It needs `lag` more rows than the window; a constant window gives NaN.",
    definition="ts_corr(x, delay(x, lag), window, min_periods=min_periods)",
)  # fmt: skip  # a table
