"""Rank the names of one day exactly, by sorting whole numbers.

A float32 becomes an unsigned 32-bit number of the same order; with the column behind it in one 64-bit word, numpy's
vectorised sort of plain integers orders the row and says who stands where. Missing values become the largest word
and gather at the end.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .cells import NAN, ZERO, Array, Codes, Members, finite
from .kernel_cache import kernel

Keys = NDArray[np.uint64]
Columns = NDArray[np.int32]
Ties = NDArray[np.bool_]

MISSING = np.uint64(0xFFFFFFFFFFFFFFFF)
SIGN = np.uint32(0x80000000)
GROUP, ORDER, HALF_WORD = np.uint64(48), np.uint64(16), np.uint64(32)
LOW_HALF, LOW_QUARTER = np.uint64(0xFFFFFFFF), np.uint64(0xFFFF)
LONG_RUN = 24
"""Values above which a run is sorted by numba's merge sort, not by insertion."""
ROWS = 64
"""Rows that are packed, sorted and ranked at a time, so that their words stay in the nearest cache."""


@kernel
def _ordered(bits: np.uint32) -> np.uint64:
    """Turn the bits of a float32 into a number of the same order."""
    return np.uint64(~bits if bits & SIGN else bits | SIGN)


@kernel
def pack(keys: Keys, values: Array, member: Members, first: int) -> None:
    """Write the words of some rows: order, then column."""
    line = np.empty(keys.shape[1], np.float32)
    bits = line.view(np.uint32)
    for k in range(keys.shape[0]):
        row, is_member = values[first + k], member[first + k]
        for j in range(line.size):
            line[j] = row[j] + ZERO  # minus zero becomes zero
        for j in range(line.size):
            word = (_ordered(bits[j]) << HALF_WORD) | np.uint64(j)
            keys[k, j] = word if is_member[j] & (row[j] == row[j]) else MISSING


@kernel
def pack_groups(keys: Keys, values: Array, codes: Codes, member: Members, first: int) -> None:
    """Write the words of some rows: group, then order, then column."""
    line = np.empty(keys.shape[1], np.float32)
    bits = line.view(np.uint32)
    for k in range(keys.shape[0]):
        row, is_member = values[first + k], member[first + k]
        for j in range(line.size):
            line[j] = row[j] + ZERO
        for j in range(line.size):
            word = (np.uint64(codes[j]) << GROUP) | (_ordered(bits[j]) << ORDER) | np.uint64(j)
            keys[k, j] = word if is_member[j] & (codes[j] >= 0) & (row[j] == row[j]) else MISSING


@kernel
def _present(keys: Keys) -> int:
    """Count the words of a sorted row that are not missing."""
    low, high = 0, keys.size
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] == MISSING:
            high = middle
        else:
            low = middle + 1
    return low


AVERAGE, MIN, MAX, FIRST = 0, 1, 2, 3
PERCENT, FROM_ZERO, UNIT, COUNT = 0, 1, 2, 3


@kernel
def share(twice: float, count: float, scaled: int) -> np.float32:
    """Turn twice a place among some into what was asked for: r / n, (r - 1) / n, (r - 1) / (n - 1), or r."""
    lowest = 2.0 if (scaled == FROM_ZERO) | (scaled == UNIT) else 0.0
    among = 1.0 if scaled == COUNT else count - 1.0 if scaled == UNIT else count
    return finite((twice - lowest) / (2.0 * among))


@kernel
def _twice(start: int, end: int, at: int, ties: int) -> float:
    """Return twice the place of a value in a run of equal ones, 1 for the first of all."""
    if ties == AVERAGE:
        return start + end + 1.0
    return 2.0 * (start + 1 if ties == MIN else end if ties == MAX else at + 1)


@kernel
def place(out: Array, keys: Keys, first: int, ties: int, scaled: int) -> None:
    """Write ranks from sorted words."""
    for k in range(keys.shape[0]):
        line, o = keys[k], out[first + k]
        count = _present(line)
        o[:] = NAN
        start = 0
        while start < count:
            end = start + 1
            while end < count and line[end] >> HALF_WORD == line[start] >> HALF_WORD:
                end += 1
            for at in range(start, end):
                o[line[at] & LOW_HALF] = share(_twice(start, end, at, ties), count, scaled)
            start = end


@kernel
def place_buckets(out: Array, keys: Keys, first: int, buckets: int) -> None:
    """Write the bucket of each name, 1 to `buckets`, from sorted words: the ceiling of its average rank times them."""
    for k in range(keys.shape[0]):
        line, o = keys[k], out[first + k]
        count = _present(line)
        o[:] = NAN
        start = 0
        while start < count:
            end = start + 1
            while end < count and line[end] >> HALF_WORD == line[start] >> HALF_WORD:
                end += 1
            bucket = np.float32((buckets * (start + end + 1) + 2 * count - 1) // (2 * count))
            for at in range(start, end):
                o[line[at] & LOW_HALF] = bucket
            start = end


@kernel
def place_groups(out: Array, keys: Keys, first: int, ties: int, scaled: int) -> None:
    """Write ranks within groups from sorted words."""
    for k in range(keys.shape[0]):
        line, o = keys[k], out[first + k]
        count = _present(line)
        o[:] = NAN
        group_start, group_end, start = 0, 0, 0
        while start < count:
            if start == group_end:
                group_start = start
                while group_end < count and line[group_end] >> GROUP == line[start] >> GROUP:
                    group_end += 1
            end = start + 1
            while end < group_end and line[end] >> ORDER == line[start] >> ORDER:
                end += 1
            for at in range(start, end):
                twice = _twice(start - group_start, end - group_start, at - group_start, ties)
                o[line[at] & LOW_QUARTER] = share(twice, group_end - group_start, scaled)
            start = end


@kernel
def pack_all(keys: Keys, values: NDArray[np.floating], first: int) -> None:
    """Write the words of some rows by their float32 values; float64 values that meet there are told apart later."""
    line = np.empty(keys.shape[1], np.float32)
    bits = line.view(np.uint32)
    for k in range(keys.shape[0]):
        row = values[first + k]
        for j in range(line.size):
            line[j] = np.float32(row[j]) + ZERO
        for j in range(line.size):
            word = (_ordered(bits[j]) << HALF_WORD) | np.uint64(j)
            keys[k, j] = word if row[j] == row[j] else MISSING


@kernel
def _sort_run(run: Columns, row: NDArray[np.floating]) -> None:
    """Sort columns by the values that they point at."""
    if run.size > LONG_RUN:
        run[:] = run[np.argsort(row[run], kind="mergesort")]
        return
    for at in range(1, run.size):
        column, back = run[at], at
        while back > 0 and row[run[back - 1]] > row[column]:
            run[back] = run[back - 1]
            back -= 1
        run[back] = column


@kernel
def settle(
    columns: Columns, tied: Ties, counts: NDArray[np.int64], keys: Keys, values: NDArray[np.floating], first: int
) -> None:
    """Turn sorted words into columns in exact order, and mark those that tie with the one before."""
    for k in range(keys.shape[0]):
        line, row, order, tie = keys[k], values[first + k], columns[first + k], tied[first + k]
        count = _present(line)
        counts[first + k] = count
        for at in range(count):
            order[at] = np.int32(line[at] & LOW_HALF)
        start = 0
        while start < count:
            end = start + 1
            tie[start] = False
            while end < count and line[end] >> HALF_WORD == line[start] >> HALF_WORD:
                end += 1
            if end > start + 1:
                _sort_run(order[start:end], row)
                for at in range(start + 1, end):
                    tie[at] = row[order[at]] == row[order[at - 1]]
            start = end


@kernel
def percentiles(out: NDArray[np.float64], columns: Columns, tied: Ties, counts: NDArray[np.int64]) -> None:
    """Write percentile ranks, ties averaged, from the order of each row."""
    for day in range(out.shape[0]):
        order, tie, count, o = columns[day], tied[day], counts[day], out[day]
        o[:] = np.nan
        start = 0
        while start < count:
            end = start + 1
            while end < count and tie[end]:
                end += 1
            rank = (start + end + 1) / (2.0 * count)
            for at in range(start, end):
                o[order[at]] = rank
            start = end


@kernel
def _joint_ranks(ranks: NDArray[np.int64], order: Columns, tie: Ties, joint: NDArray[np.int64], total: int) -> None:
    """Write twice the distance of each joint name's rank from the mean rank; 0 for the others."""
    position, start = 0, 0
    while start < order.size:
        end = start + 1
        kept = joint[order[start]]
        while end < order.size and tie[end]:
            kept += joint[order[end]]
            end += 1
        twice = 2 * position + kept - total
        for at in range(start, end):
            ranks[order[at]] = twice * joint[order[at]]
        position += kept
        start = end


@kernel
def correlate_orders(
    out: NDArray[np.float64], left: tuple[Columns, Ties, NDArray[np.int64]],
    right: tuple[Columns, Ties, NDArray[np.int64]], least: int,
) -> None:  # fmt: skip
    """Correlate the ranks of two panels day by day, over the names that both have; in whole numbers until the end."""
    names = left[0].shape[1]
    joint, a, b = np.zeros(names, np.int64), np.zeros(names, np.int64), np.zeros(names, np.int64)
    for day in range(out.size):
        one, other = left[0][day, : left[2][day]], right[0][day, : right[2][day]]
        joint[:] = 0
        a[:] = 0
        b[:] = 0
        for column in one:
            joint[column] = 1
        for column in other:
            joint[column] += 1
        total = 0
        for j in range(names):
            joint[j] >>= 1
            total += joint[j]
        _joint_ranks(a, one, left[1][day], joint, total)
        _joint_ranks(b, other, right[1][day], joint, total)
        ab, aa, bb = 0, 0, 0
        for j in range(names):
            ab += a[j] * b[j]
            aa += a[j] * a[j]
            bb += b[j] * b[j]
        flat = total < least or aa == 0 or bb == 0
        out[day] = np.nan if flat else ab / (np.sqrt(np.float64(aa)) * np.sqrt(np.float64(bb)))
