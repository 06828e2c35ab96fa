"""The line of a series on time over a rolling window, from sums that slide with it (see `spread`).

Days are counted from the row at which the sums were last recomputed, so that sums of days are exact whole numbers.
"""

from __future__ import annotations

import numpy as np

from ...kernels.cells import NAN, Array, Flags, Places, Sums, finite, flagged, is_constant, no_flags
from ...kernels.kernel_cache import kernel
from ...language.operator import EVEN, LINEAR, Prose, rolling
from ..reference import correlation, line, row_numbers
from .spread import MIN_SQUARES_SHARE, RENEW_AFTER_WINDOWS

TREND_SLOPE, TREND_RESIDUAL, TREND_R_SQUARED = 0, 1, 2

TrendState = tuple[Sums, Sums, Sums, Sums, Sums, Sums, Sums, Sums]
"""Anchor, count, sums of time, time squared, values, values squared, products, largest squares; see `spread`."""


@kernel
def _make_state(m: int) -> TrendState:
    """Return the state of an empty window."""
    a, n, st, tt = np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m)
    return a, n, st, tt, np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m)


@kernel
def _slide(row: Array, when: float, sign: float, state: TrendState) -> None:
    """Add a row to the sums, or remove it with `sign` -1."""
    anchor, n, st, tt, sv, vv, tv, _ = state
    for j in range(row.size):
        present = row[j] == row[j]
        off, one = np.float64(row[j]) - anchor[j] if present else 0.0, sign if present else 0.0
        n[j] += one
        st[j] += one * when
        tt[j] += one * when * when
        sv[j] += sign * off
        vv[j] += sign * off * off
        tv[j] += sign * off * when


@kernel
def _renew(values: Array, first: int, day: int, lo: int, state: TrendState) -> None:
    """Recompute the sums of the rows before today, with today's values and today as anchors."""
    anchor, n, st, tt, sv, vv, tv, largest = state
    now = values[day, lo : lo + anchor.size]
    for j in range(now.size):
        anchor[j] = np.float64(now[j]) if now[j] == now[j] else anchor[j]
    for sums in (n, st, tt, sv, vv, tv):
        sums[:] = 0.0
    for past in range(first, day):
        _slide(values[past, lo : lo + anchor.size], float(past - day), 1.0, state)
    largest[:] = vv


@kernel
def _compute_line(
    off: float, when: float, n: float, mv: float, mt: float, tt: float, vv: float, tv: float, what: int
) -> float:
    """Turn moments into slope, today's residual or R squared; `off` and `mv` are relative to the same level."""
    slope = tv / tt
    if what == TREND_SLOPE:
        return slope
    if what == TREND_RESIDUAL:
        return (off - mv) - slope * (when - mt)
    return min(tv * tv / (tt * vv), 1.0)


@kernel
def _write(o: Array, now: Array, when: float, state: TrendState, doubt: Flags, need: int, what: int) -> int:
    """Write a day, and flag and count the cells where the sums have lost too many digits."""
    anchor, count, time, times, total, squares, products, largest = state
    lost = 0
    for j in range(o.size):
        n, st, sv = count[j], time[j], total[j]
        largest[j] = max(largest[j], squares[j])
        tt, vv, tv = n * times[j] - st * st, n * squares[j] - sv * sv, n * products[j] - st * sv
        doubt[j] = (n >= need) & (vv < MIN_SQUARES_SHARE * n * largest[j])
        lost += 1 if doubt[j] else 0
        off, mean = np.float64(now[j]) - anchor[j], anchor[j] + sv / n
        answer = _compute_line(off, when, n, sv / n, st / n, tt, vv, tv, what)
        flat = (what == TREND_R_SQUARED) & is_constant(vv / n, mean, n)
        o[j] = NAN if flat | (n < need) else finite(answer)
    return lost


@kernel
def _compute_exactly(values: Array, first: int, day: int, column: int, what: int) -> float:
    """Compute one window in two passes."""
    n, mt, mv, tt, vv, tv = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for past in range(first, day + 1):
        if values[past, column] == values[past, column]:
            n += 1.0
            mt += past - day
            mv += np.float64(values[past, column])
    mt /= n
    mv /= n
    for past in range(first, day + 1):
        if values[past, column] == values[past, column]:
            off, when = np.float64(values[past, column]) - mv, past - day - mt
            tt += when * when
            vv += off * off
            tv += off * when
    if what == TREND_R_SQUARED and is_constant(vv, mv, n):
        return np.nan
    return _compute_line(np.float64(values[day, column]), 0.0, n, mv, mt, tt, vv, tv, what)


@kernel
def _recompute_flagged(
    out: Array, values: Array, window: int, what: int, lo: int, day: int, doubt: Flags, places: Places
) -> None:
    """Compute the flagged cells of a day exactly."""
    for at in range(flagged(doubt, places)):
        j = lo + places[at]
        out[day, j] = finite(_compute_exactly(values, max(0, day - window + 1), day, j, what))


@kernel
def rolling_trend(out: Array, values: Array, window: int, need: int, what: int, lo: int, hi: int) -> None:
    """Slope, today's residual, or R squared of the line of the values on the number of the row."""
    state, since = _make_state(hi - lo), 0
    doubt, places = no_flags(hi - lo), np.empty(hi - lo + 8, np.int64)
    for day in range(out.shape[0]):
        first, now = max(0, day - window), values[day, lo:hi]
        if day % (RENEW_AFTER_WINDOWS * window) == 0:
            since = day
            _renew(values, first, day, lo, state)
        if day >= window:
            _slide(values[first, lo:hi], float(first - since), -1.0, state)
        _slide(now, float(day - since), 1.0, state)
        if _write(out[day, lo:hi], now, float(day - since), state, doubt, need, what):
            _recompute_flagged(out, values, window, what, lo, day, doubt, places)


TS_SLOPE = rolling(
    "ts_slope", "same",
    Prose("Slope of the least-squares line of x on time over the window, per day.",
          "the slope of the {window}-day trend of {x}", "ts_slope(close, 20)"),
    rolling_trend, cost=2.7, fixed=(TREND_SLOPE,), scaling=LINEAR, reference=lambda x, **_: line(x, row_numbers(x))[0],
)  # fmt: skip  # a table
TS_RESIDUAL = rolling(
    "ts_residual", "same",
    Prose("Today's distance from the least-squares line of x on time over the window.",
          "how far {x} is above its {window}-day trend", "ts_residual(close, 20)"),
    rolling_trend, cost=2.7, fixed=(TREND_RESIDUAL,), scaling=LINEAR, nan="Today's value must be present.",
    reference=lambda x, **_: x[-1] - line(x, row_numbers(x))[1] - line(x, row_numbers(x))[0] * row_numbers(x)[-1],
)  # fmt: skip  # a table
TS_RSQUARE = rolling(
    "ts_rsquare", "ratio",
    Prose("R squared of the least-squares line of x on time over the window.",
          "how well a straight line fits the last {window} days of {x}", "ts_rsquare(close, 20)"),
    rolling_trend, cost=2.7, fixed=(TREND_R_SQUARED,), scaling=EVEN, nan="A constant window gives NaN.",
    reference=lambda x, **_: correlation(x, row_numbers(x)) ** 2,
)  # fmt: skip  # a table
