"""Spread of a rolling window, from sums about an anchor that slide with it.

The anchor is a value of the window, so that little cancels; the sums are recomputed every four windows, so that
rounding does not accumulate; and a cell where more than nine digits have cancelled, as after an outlier of a million
has left, is computed exactly, in two passes. So a constant window has a spread of exactly zero.
"""

from __future__ import annotations

import math

import numpy as np

from ...kernels.cells import FLOAT32_EPSILON, NAN, Array, Flags, Places, Sums, finite, flagged, no_flags
from ...kernels.kernel_cache import kernel
from ...language.operator import ABSOLUTE, DDOF, LINEAR, ODD, SQUARE, Prose, rolling
from ..reference import known_values, score, variance

VARIANCE, DEVIATION, SCORE = 0, 1, 2
RENEW_AFTER_WINDOWS = 4
"""Windows after which sums are recomputed."""
MIN_SQUARES_SHARE = 1e-9
"""Share of the largest sum of squares below which a difference of sums has too few digits left."""

SpreadState = tuple[Sums, Sums, Sums, Sums, Sums]
"""Anchor, count, sum and squares about the anchor, and the largest squares so far.

They are separate arrays: with slices of one array, the compiler could not rule out overlap and would not vectorise.
"""


@kernel
def fresh(names: int) -> SpreadState:
    """Return the state of an empty window."""
    return np.zeros(names), np.zeros(names), np.zeros(names), np.zeros(names), np.zeros(names)


@kernel
def _add(row: Array, state: SpreadState) -> None:
    """Add a row to the sums."""
    anchor, count, total, squares, _ = state
    for j in range(row.size):
        present = row[j] == row[j]
        off = np.float64(row[j]) - anchor[j] if present else 0.0
        count[j] += 1.0 if present else 0.0
        total[j] += off
        squares[j] += off * off


@kernel
def _roll(row: Array, gone: Array, state: SpreadState) -> None:
    """Add a row to the sums and take another out, in one pass."""
    anchor, count, total, squares, _ = state
    for j in range(row.size):
        present, there = row[j] == row[j], gone[j] == gone[j]
        off = np.float64(row[j]) - anchor[j] if present else 0.0
        old = np.float64(gone[j]) - anchor[j] if there else 0.0
        count[j] += (1.0 if present else 0.0) - (1.0 if there else 0.0)
        total[j] += off - old
        squares[j] += off * off - old * old


@kernel
def _renew(values: Array, first: int, day: int, lo: int, state: SpreadState) -> None:
    """Recompute the sums of the rows before today, with today's values as anchors, to drop accumulated rounding."""
    anchor, count, total, squares, largest = state
    now = values[day, lo : lo + anchor.size]
    for j in range(now.size):
        anchor[j] = np.float64(now[j]) if now[j] == now[j] else anchor[j]
        count[j], total[j], squares[j] = 0.0, 0.0, 0.0
    for past in range(first, day):
        _add(values[past, lo : lo + anchor.size], state)
    largest[:] = squares


@kernel
def _compute_exactly(values: Array, first: int, stop: int, column: int) -> tuple[float, float, float]:
    """Return count, sum, and count times squares about the mean of one window, in two passes."""
    count, total, squares = 0.0, 0.0, 0.0
    for past in range(first, stop):
        if values[past, column] == values[past, column]:
            count += 1.0
            total += np.float64(values[past, column])
    for past in range(first, stop):
        if values[past, column] == values[past, column]:
            squares += (np.float64(values[past, column]) - total / count) ** 2
    return count, total, count * squares


@kernel
def _compute_spread(n: float, scatter: float, ddof: int, what: int) -> float:
    """Turn count times squares into variance or standard deviation."""
    variance = scatter / (n * (n - ddof)) if n > ddof else np.nan
    return variance if what == VARIANCE else math.sqrt(variance)


@kernel
def _compute_score(value: np.float32, n: float, total: float, scatter: float, ddof: int) -> float:
    """Turn sum and count times squares into a distance from the mean in standard deviations."""
    flat = (scatter <= (total * FLOAT32_EPSILON) ** 2) | (n <= ddof)
    return np.nan if flat else (n * np.float64(value) - total) / math.sqrt(scatter * n / (n - ddof))


@kernel
def _write_spread(o: Array, state: SpreadState, doubt: Flags, need: int, ddof: int, what: int) -> int:
    """Write a day, and flag and count the cells where the sums have lost too many digits."""
    _, count, total, squares, largest = state
    lost = 0
    for j in range(o.size):
        n = count[j]
        largest[j] = max(largest[j], squares[j])
        scatter = n * squares[j] - total[j] * total[j]
        doubt[j] = (n >= need) & (scatter < MIN_SQUARES_SHARE * n * largest[j])
        lost += 1 if doubt[j] else 0
        answer = _compute_spread(n, max(scatter, 0.0), ddof, what)
        o[j] = finite(answer) if n >= need else NAN
    return lost


@kernel
def _write_score(o: Array, now: Array, state: SpreadState, doubt: Flags, need: int, ddof: int) -> int:
    """Write a day, and flag and count the cells where the sums have lost too many digits."""
    anchor, count, total, squares, largest = state
    lost = 0
    for j in range(o.size):
        n = count[j]
        largest[j] = max(largest[j], squares[j])
        scatter = n * squares[j] - total[j] * total[j]
        doubt[j] = (n >= need) & (scatter < MIN_SQUARES_SHARE * n * largest[j])
        lost += 1 if doubt[j] else 0
        answer = _compute_score(now[j], n, n * anchor[j] + total[j], scatter, ddof)
        o[j] = finite(answer) if n >= need else NAN
    return lost


@kernel
def _recompute_flagged(
    out: Array, values: Array, window: int, ddof: int, what: int, lo: int, day: int, doubt: Flags, places: Places
) -> None:
    """Compute the flagged cells of a day exactly."""
    for at in range(flagged(doubt, places)):
        j = lo + places[at]
        n, total, scatter = _compute_exactly(values, max(0, day - window + 1), day + 1, j)
        score = what == SCORE
        answer = (
            _compute_score(values[day, j], n, total, scatter, ddof)
            if score
            else _compute_spread(n, scatter, ddof, what)
        )
        out[day, j] = finite(answer)


@kernel
def rolling_spread(out: Array, values: Array, window: int, need: int, ddof: int, what: int, lo: int, hi: int) -> None:
    """Variance, standard deviation, or distance from the mean in standard deviations."""
    state, doubt, places = fresh(hi - lo), no_flags(hi - lo), np.empty(hi - lo + 8, np.int64)
    for day in range(out.shape[0]):
        first, now, o = max(0, day - window), values[day, lo:hi], out[day, lo:hi]
        if day % (RENEW_AFTER_WINDOWS * window) == 0:
            _renew(values, first, day, lo, state)
        if day >= window:
            _roll(now, values[first, lo:hi], state)
        else:
            _add(now, state)
        if (
            _write_score(o, now, state, doubt, need, ddof)
            if what == SCORE
            else _write_spread(o, state, doubt, need, ddof, what)
        ):
            _recompute_flagged(out, values, window, ddof, what, lo, day, doubt, places)


TS_STD = rolling(
    "ts_std", "same",
    Prose("Standard deviation over the window.", "the {window}-day standard deviation of {x}", "ts_std(returns, 20)"),
    rolling_spread, DDOF, cost=1.6, fixed=(DEVIATION,), scaling=ABSOLUTE,
    reference=lambda x, ddof, **_: math.sqrt(variance(known_values(x), ddof)),
)  # fmt: skip  # a table
TS_VAR = rolling(
    "ts_var", "square",
    Prose("Variance over the window.", "the {window}-day variance of {x}", "ts_var(returns, 20)"),
    rolling_spread, DDOF, cost=1.6, fixed=(VARIANCE,), scaling=SQUARE,
    reference=lambda x, ddof, **_: variance(known_values(x), ddof),
)  # fmt: skip  # a table
TS_ZSCORE = rolling(
    "ts_zscore", "ratio",
    Prose("Today's value less the mean of the window, over its standard deviation.",
          "how many {window}-day standard deviations {x} is from its mean", "ts_zscore(volume, 20)"),
    rolling_spread, DDOF, cost=1.6, fixed=(SCORE,), scaling=ODD,
    nan="Today's value must be present; a constant window gives NaN.",
    reference=lambda x, ddof, **_: score(x[-1], known_values(x), ddof),
)  # fmt: skip  # a table

TS_DEMEAN = rolling(
    "ts_demean",
    "same",
    Prose("Today's value less the mean of the window.", "{x} less its {window}-day mean", "ts_demean(returns, 20)"),
    scaling=LINEAR,
    nan="Today's value must be present.",
    definition="x - ts_mean(x, window, min_periods=min_periods)",
)
TS_IR = rolling(
    "ts_ir", "ratio",
    Prose("Information ratio: mean over standard deviation of the window.",
          "the mean over the standard deviation of the last {window} days of {x}", "ts_ir(returns, 60)"),
    None, DDOF, scaling=ODD, nan="A constant window gives NaN.",
    definition="ts_mean(x, window, min_periods=min_periods) / ts_std(x, window, min_periods=min_periods, ddof=ddof)",
)  # fmt: skip  # a table
TS_DOWNSIDE_STD = rolling(
    "ts_downside_std", "same",
    Prose("Downside deviation about zero: the root of the mean square of what is below 0 (Sortino); it divides by all "
          "days of the window.",
          "the {window}-day downside deviation of {x}", "ts_downside_std(returns, 60)"),
    definition="sqrt(ts_mean(square(min(x, 0)), window, min_periods=min_periods))",
)  # fmt: skip  # a table
