"""Order statistics of a rolling window, and the mean absolute deviation, which needs a second pass over the window."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ...kernels.cells import FLOAT32_ONE, NAN, Array, Sums, finite
from ...kernels.kernel_cache import kernel
from ...kernels.ranking import SCALED_COUNT, SCALED_UNIT, TIES_AVERAGE, TIES_MIN, lowest
from ...language.operator import ABSOLUTE, LINEAR, MIRROR, ORDER, SCALED, TIES, Argument, Prose, rolling
from ..reference import known_values, places

NO_STEP, HALF_STEP = np.int32(0), np.float32(0.5)
SORTS_LAST = np.float32(np.inf)

Steps = NDArray[np.int32]


@kernel
def _count_step(now: np.float32, then: np.float32, below: np.int32, equal: np.int32) -> np.int32:
    """Return `below` + `equal` for an earlier value below today's, `equal` for the same value, else 0."""
    return (below if then < now else NO_STEP) + (equal if then <= now else NO_STEP)


@kernel
def _add_steps(
    steps: Steps, now: Array, values: Array, first: int, stop: int, lo: int, below: np.int32, equal: np.int32
) -> None:
    """Add the steps of some earlier rows, four rows at a time, so that the sums are read and written less often."""
    hi, past = lo + now.size, first
    while past + 4 <= stop:
        a, b, c, d = values[past, lo:hi], values[past + 1, lo:hi], values[past + 2, lo:hi], values[past + 3, lo:hi]
        for j in range(now.size):
            two = _count_step(now[j], a[j], below, equal) + _count_step(now[j], b[j], below, equal)
            steps[j] += two + _count_step(now[j], c[j], below, equal) + _count_step(now[j], d[j], below, equal)
        past += 4
    while past < stop:
        a = values[past, lo:hi]
        for j in range(now.size):
            steps[j] += _count_step(now[j], a[j], below, equal)
        past += 1


@kernel
def ts_rank(out: Array, values: Array, window: int, need: int, ties: int, scaled: int, lo: int, hi: int) -> None:
    """Rank today's value among the window; of equal ones it is the last, so `first` and `max` are the same.

    Places and counts are whole numbers, doubled, which float32 divides as exactly as float64 would.
    """
    days, names = out.shape[0], hi - lo
    steps, known = np.empty(names, np.int32), np.zeros(names, np.int32)
    equal = np.int32(1 if ties == TIES_AVERAGE else 0 if ties == TIES_MIN else 2)
    less = np.int32(1 if scaled == SCALED_UNIT else 0)
    start = np.int32((1 if ties == TIES_AVERAGE else 2 if ties == TIES_MIN else 0) - lowest(scaled))
    for day in range(days):
        now, o = values[day, lo:hi], out[day, lo:hi]
        steps[:] = start
        _add_steps(steps, now, values, max(0, day - window + 1), day + 1, lo, np.int32(2 - equal), equal)
        if day >= window:
            gone = values[day - window, lo:hi]
            for j in range(names):
                known[j] -= np.int32(gone[j] == gone[j])
        for j in range(names):
            known[j] += np.int32(now[j] == now[j])
            rank = np.float32(steps[j]) / (FLOAT32_ONE if scaled == SCALED_COUNT else np.float32(known[j] - less))
            o[j] = finite(HALF_STEP * rank) if (now[j] == now[j]) & (known[j] >= need) else NAN


@kernel
def _exchange(ordered: Array, carry: Array, gone: Array, spare: Array) -> None:
    """Insert a row into the ordered values of each name and remove another row, in one pass from the lowest up.

    The row to insert is `carry`, which is overwritten. Missing values are infinite and come last; `ordered` ends with
    one further row of them. The next row is copied to `spare`: without the copy the loop is not vectorised.
    """
    for k in range(ordered.shape[0] - 1):
        here = ordered[k]
        spare[:] = ordered[k + 1]
        for j in range(carry.size):
            low, high, following = min(here[j], carry[j]), max(here[j], carry[j]), spare[j]
            following = min(following, high)
            here[j] = low if low < gone[j] else following
            carry[j] = high


@kernel
def _copy_missing_last(row: Array, into: Array) -> None:
    """Copy a row, with missing values after all others."""
    for j in range(row.size):
        into[j] = row[j] if row[j] == row[j] else SORTS_LAST


@kernel
def _interpolate(ordered: Array, j: int, count: int, share: float) -> float:
    """Interpolate between the two ordered values around a share of the way."""
    where = share * (count - 1)
    below = int(where)
    above = min(below + 1, count - 1)
    low, high = np.float64(ordered[below, j]), np.float64(ordered[above, j])
    return low + (high - low) * (where - below)


@kernel
def rolling_quantile(out: Array, values: Array, window: int, share: float, need: int, lo: int, hi: int) -> None:
    """Interpolate a quantile of the window from its ordered values, which are updated with each row."""
    days, names = out.shape[0], hi - lo
    ordered = np.full((min(window, days) + 1, names), SORTS_LAST)
    known, gone = np.zeros(names, np.int64), np.full(names, SORTS_LAST)
    carry, spare = np.empty(names, np.float32), np.empty(names, np.float32)
    for day in range(days):
        if day >= window:
            _copy_missing_last(values[day - window, lo:hi], gone)
        for j in range(names):
            known[j] -= 1 if gone[j] < SORTS_LAST else 0
        _copy_missing_last(values[day, lo:hi], carry)
        for j in range(names):
            known[j] += 1 if carry[j] < SORTS_LAST else 0
        _exchange(ordered, carry, gone, spare)
        for j in range(names):
            out[day, lo + j] = finite(_interpolate(ordered, j, known[j], share)) if known[j] >= need else NAN


@kernel
def rolling_median(out: Array, values: Array, window: int, need: int, lo: int, hi: int) -> None:
    """Take the middle value of the window, or the mean of the middle two."""
    rolling_quantile(out, values, window, 0.5, need, lo, hi)


@kernel
def _measure_distance(value: np.float32, mean: float) -> float:
    """Return the distance from the mean; 0 for a missing value."""
    return 0.0 if np.isnan(value) else abs(np.float64(value) - mean)


@kernel
def _add_distances(away: Sums, mean: Sums, values: Array, first: int, stop: int, lo: int) -> None:
    """Add the distances from the mean of some rows, four at a time."""
    hi, fours = lo + away.size, stop - (stop - first) % 4
    for past in range(first, fours, 4):
        a, b, c, d = values[past, lo:hi], values[past + 1, lo:hi], values[past + 2, lo:hi], values[past + 3, lo:hi]
        for j in range(away.size):
            away[j] += (
                _measure_distance(a[j], mean[j])
                + _measure_distance(b[j], mean[j])
                + _measure_distance(c[j], mean[j])
                + _measure_distance(d[j], mean[j])
            )
    for past in range(fours, stop):
        a = values[past, lo:hi]
        for j in range(away.size):
            away[j] += _measure_distance(a[j], mean[j])


@kernel
def ts_mad(out: Array, values: Array, window: int, need: int, lo: int, hi: int) -> None:
    """Mean absolute deviation from the mean of the window, in two passes over it."""
    days, names = out.shape[0], hi - lo
    total, known, away = np.empty(names), np.empty(names), np.empty(names)
    for day in range(days):
        first, o = max(0, day - window + 1), out[day, lo:hi]
        total[:] = 0.0
        known[:] = 0.0
        away[:] = 0.0
        for past in range(first, day + 1):
            row = values[past, lo:hi]
            for j in range(names):
                total[j] += np.float64(row[j]) if row[j] == row[j] else 0.0
                known[j] += 1.0 if row[j] == row[j] else 0.0
        for j in range(names):
            total[j] /= known[j]
        _add_distances(away, total, values, first, day + 1, lo)
        for j in range(names):
            o[j] = finite(away[j] / known[j]) if known[j] >= need else NAN


TS_RANK = rolling(
    "ts_rank", "rank",
    Prose("Rank of today's value in the window: ascending, average ties, percentile in (0, 1].",
          "the rank of {x} within its last {window} days", "ts_rank(volume, 20)"),
    ts_rank, TIES, SCALED, cost=2.1, scaling=ORDER, nan="Today's value must be present.",
    reference=lambda x, ties, scaled, **_: math.nan if math.isnan(x[-1]) else places(known_values(x), ties, scaled)[-1],
)  # fmt: skip  # a table
TS_MEDIAN = rolling(
    "ts_median", "same",
    Prose("Median over the window.", "the {window}-day median of {x}", "ts_median(returns, 20)"),
    rolling_median, cost=14.0, scaling=LINEAR, reference=lambda x, **_: np.nanmedian(x),
)  # fmt: skip  # a table
TS_QUANTILE = rolling(
    "ts_quantile", "same",
    Prose("The q-quantile of the window, interpolated linearly.",
          "the {q} quantile of the last {window} days of {x}", "ts_quantile(returns, 20, 0.8)"),
    rolling_quantile, Argument("q", "number", low=0, high=1), cost=14.0, scaling=MIRROR,
    reference=lambda x, q, **_: np.nanquantile(x, q),
)  # fmt: skip  # a table
TS_MAD = rolling(
    "ts_mad", "same",
    Prose("Mean absolute deviation from the mean of the window.", "the {window}-day mean absolute deviation of {x}",
          "ts_mad(returns, 20)"),
    ts_mad, cost=7.0, scaling=ABSOLUTE, reference=lambda x, **_: np.nanmean(np.abs(x - np.nanmean(x))),
)  # fmt: skip  # a table
