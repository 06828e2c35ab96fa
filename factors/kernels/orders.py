"""Order statistics of a rolling window, and what needs a second pass over it."""

from __future__ import annotations

import numpy as np

from .cells import NAN, ONE, ZERO, Array, finite
from .kernel_cache import kernel

HALF = np.float32(0.5)


@kernel
def _count_below(now: Array, then: Array, below: Array, equal: Array, known: Array) -> None:
    """Count where an earlier row is below, equal and present; comparisons of a row at a time are cheap."""
    for j in range(now.size):
        below[j] += ONE if then[j] < now[j] else ZERO
        equal[j] += ONE if then[j] == now[j] else ZERO
        known[j] += ONE if then[j] == then[j] else ZERO


@kernel
def ts_rank(out: Array, values: Array, window: int, need: int, lo: int, hi: int) -> None:
    """Rank today's value among the window: ascending, ties averaged, over the count."""
    days, names = out.shape[0], hi - lo
    below, equal, known = np.empty(names, np.float32), np.empty(names, np.float32), np.empty(names, np.float32)
    for day in range(days):
        now, o = values[day, lo:hi], out[day, lo:hi]
        below[:] = ZERO
        equal[:] = ZERO
        known[:] = ZERO
        for past in range(max(0, day - window + 1), day + 1):
            _count_below(now, values[past, lo:hi], below, equal, known)
        for j in range(names):
            place = np.float64(below[j]) + (np.float64(equal[j]) + 1.0) * 0.5
            o[j] = np.float32(place / known[j]) if (now[j] == now[j]) & (known[j] >= need) else NAN


@kernel
def _place(ordered: Array, count: int, value: np.float32) -> int:
    """Return how many of the first `count` ordered values are below a value."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if ordered[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _remove(ordered: Array, count: int, value: np.float32) -> int:
    """Take a value out of the ordered ones; return how many are left."""
    for k in range(_place(ordered, count, value), count - 1):
        ordered[k] = ordered[k + 1]
    return count - 1


@kernel
def _insert(ordered: Array, count: int, value: np.float32) -> int:
    """Put a value among the ordered ones; return how many there are."""
    place = _place(ordered, count, value)
    for k in range(count, place, -1):
        ordered[k] = ordered[k - 1]
    ordered[place] = value
    return count + 1


@kernel
def _quantile(ordered: Array, count: int, share: float) -> float:
    """Interpolate between the two values beside a share of the way through the ordered ones."""
    where = share * (count - 1)
    below = int(np.floor(where))
    above = min(below + 1, count - 1)
    low, high = np.float64(ordered[below]), np.float64(ordered[above])
    return low + (high - low) * (where - below)


@kernel
def rolling_quantile(out: Array, values: Array, window: int, share: float, need: int, lo: int, hi: int) -> None:
    """Interpolate a quantile of the window from its ordered values, which are kept in order as rows come and go."""
    days = out.shape[0]
    ordered = np.empty(min(window, days) + 1, np.float32)
    for j in range(lo, hi):
        count = 0
        for day in range(days):
            if day >= window and values[day - window, j] == values[day - window, j]:
                count = _remove(ordered, count, values[day - window, j])
            if values[day, j] == values[day, j]:
                count = _insert(ordered, count, values[day, j])
            out[day, j] = finite(_quantile(ordered, count, share)) if count >= need else NAN


@kernel
def rolling_median(out: Array, values: Array, window: int, need: int, lo: int, hi: int) -> None:
    """Take the middle value of the window, or the mean of the middle two."""
    rolling_quantile(out, values, window, 0.5, need, lo, hi)


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
        total /= known
        for past in range(first, day + 1):
            row = values[past, lo:hi]
            for j in range(names):
                away[j] += abs(np.float64(row[j]) - total[j]) if row[j] == row[j] else 0.0
        for j in range(names):
            o[j] = finite(away[j] / known[j]) if known[j] >= need else NAN
