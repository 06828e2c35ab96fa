"""Rank the names of one day exactly, by sorting whole numbers.

A float32 becomes an unsigned 32-bit number of the same order; with the column behind it in one 64-bit word, two passes
of a radix sort over the highest digits that differ order the row but for words that share them, which one pass of
insertion puts right. Where many share them, as next to an outlier, further passes sort the lower digits first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .cells import ZERO, Array, Codes, Members, finite
from .kernel_cache import kernel

Words = NDArray[np.uint64]
Counts = NDArray[np.int32]
Columns = NDArray[np.int32]
Ties = NDArray[np.bool_]

SIGN = np.uint32(0x80000000)
HALF_WORD = np.uint64(32)
LOW_HALF = np.uint64(0xFFFFFFFF)
LONG_RUN = 24
"""Values above which a run is sorted by numba's merge sort, not by insertion."""
DIGIT = 11
"""Bits of the largest digit of the radix sort; short rows take smaller ones, whose tables are cheaper to clear."""
PATIENCE = 6
"""Steps of insertion a word after which the lower digits are sorted instead."""


@kernel
def _ordered(bits: np.uint32) -> np.uint32:
    """Turn the bits of a float32 into a number of the same order."""
    return ~bits if bits & SIGN else bits | SIGN


@kernel
def digit_bits(names: int) -> int:
    """Return how many bits a digit takes for rows of some length."""
    bits = 6
    while bits < DIGIT and (1 << bits) < names:
        bits += 1
    return bits


@kernel
def pack(words: Words, row: NDArray[np.floating], member: Members) -> tuple[int, np.uint32, np.uint32]:
    """Write the words of the members that are present, in the order of the columns.

    Returns how many there are, and the lowest and highest number. Float64 values that meet in one float32 are told
    apart later.
    """
    line, present = np.empty(row.size, np.float32), np.empty(row.size, np.bool_)
    bits, low, high = line.view(np.uint32), np.uint32(0xFFFFFFFF), np.uint32(0)
    for j in range(row.size):
        line[j] = np.float32(row[j]) + ZERO  # minus zero becomes zero
        present[j] = member[j] & (row[j] == row[j])
    for j in range(row.size):
        number = _ordered(bits[j])
        bits[j] = number
        low = min(low, number if present[j] else np.uint32(0xFFFFFFFF))
        high = max(high, number if present[j] else np.uint32(0))
    count = 0
    for j in range(row.size):
        words[count] = (np.uint64(bits[j]) << HALF_WORD) | np.uint64(j)
        count += 1 if present[j] else 0
    return count, low, high


@kernel
def _starts(table: Counts) -> None:
    """Turn how often each digit occurs into where its first word goes."""
    total = 0
    for digit in range(table.size):
        here = table[digit]
        table[digit] = total
        total += here


@kernel
def _two_passes(words: Words, spare: Words, count: int, low: np.uint32, shift: int, one: Counts, two: Counts) -> None:
    """Order words by two digits of their distance from the lowest; equal ones keep their order."""
    base, mask, size = np.uint64(low) << HALF_WORD, np.uint64(one.size - 1), 0
    while one.size >> (size + 1):
        size += 1
    first, second = HALF_WORD + np.uint64(shift), HALF_WORD + np.uint64(shift + size)
    one[:] = 0
    two[:] = 0
    for at in range(count):
        far = words[at] - base
        one[(far >> first) & mask] += 1
        two[(far >> second) & mask] += 1
    _starts(one)
    _starts(two)
    for at in range(count):
        digit = ((words[at] - base) >> first) & mask
        spare[one[digit]] = words[at]
        one[digit] += 1
    for at in range(count):
        digit = ((spare[at] - base) >> second) & mask
        words[two[digit]] = spare[at]
        two[digit] += 1


@kernel
def _insert(words: Words, count: int) -> bool:
    """Put nearly ordered words in order; give up after a while, with all words still there."""
    patience = PATIENCE * count
    for at in range(1, count):
        word, to = words[at], at
        while to > 0 and words[to - 1] > word:
            words[to] = words[to - 1]
            to -= 1
        words[to] = word
        patience -= at - to
        if patience < 0:
            return False
    return True


@kernel
def sort_words(words: Words, spare: Words, count: int, low: np.uint32, high: np.uint32, tables: Counts) -> None:
    """Sort the first `count` words, whose numbers lie between two; `tables` has two rows of a power of two."""
    span, bits = 0, 0
    while (np.uint64(high) - np.uint64(low)) >> np.uint64(span):
        span += 1
    while tables.shape[1] >> (bits + 1):
        bits += 1
    top = max(span - 2 * bits, 0)
    _two_passes(words, spare, count, low, top, tables[0], tables[1])
    if top == 0 or _insert(words, count):
        return
    for shift in range(0, span, 2 * bits):
        _two_passes(words, spare, count, low, shift, tables[0], tables[1])


@kernel
def room(names: int) -> tuple[Words, Words, Counts]:
    """Return what sorting the rows of a panel takes: words, spare ones, and tables."""
    bits = digit_bits(names)
    return np.empty(names + 1, np.uint64), np.empty(names + 1, np.uint64), np.empty((2, 1 << bits), np.int32)


AVERAGE, MIN, MAX, FIRST = 0, 1, 2, 3
PERCENT, FROM_ZERO, UNIT, COUNT = 0, 1, 2, 3


@kernel
def share(twice: float, count: float, scaled: int) -> np.float32:
    """Turn twice a place among some into what was asked for: r / n, (r - 1) / n, (r - 1) / (n - 1), or r."""
    return finite((twice - lowest(scaled)) / (2.0 * among(count, scaled)))


@kernel
def lowest(scaled: int) -> float:
    """Return twice what is taken off a place."""
    return 2.0 if (scaled == FROM_ZERO) | (scaled == UNIT) else 0.0


@kernel
def among(count: float, scaled: int) -> float:
    """Return what a place is divided by."""
    return 1.0 if scaled == COUNT else count - 1.0 if scaled == UNIT else count


@kernel
def _twice(start: int, end: int, at: int, ties: int) -> float:
    """Return twice the place of a value in a run of equal ones, 1 for the first of all."""
    if ties == AVERAGE:
        return start + end + 1.0
    return 2.0 * (start + 1 if ties == MIN else end if ties == MAX else at + 1)


@kernel
def place(o: Array, words: Words, count: int, ties: int, scaled: int) -> None:
    """Write ranks from sorted words."""
    off, factor, start = lowest(scaled), 0.5 / among(float(count), scaled), 0
    while start < count:
        end, number = start + 1, words[start] >> HALF_WORD
        while end < count and words[end] >> HALF_WORD == number:
            end += 1
        for at in range(start, end):
            o[words[at] & LOW_HALF] = finite((_twice(start, end, at, ties) - off) * factor)
        start = end


@kernel
def place_buckets(o: Array, words: Words, count: int, buckets: int) -> None:
    """Write the bucket of each name, 1 to `buckets`, from sorted words: the ceiling of its average rank times them."""
    start = 0
    while start < count:
        end = start + 1
        while end < count and words[end] >> HALF_WORD == words[start] >> HALF_WORD:
            end += 1
        bucket = np.float32((buckets * (start + end + 1) + 2 * count - 1) // (2 * count))
        for at in range(start, end):
            o[words[at] & LOW_HALF] = bucket
        start = end


@kernel
def split(words: Words, spare: Words, count: int, codes: Codes, starts: NDArray[np.int64]) -> None:
    """Order sorted words by group, each group still sorted; ``starts[g]`` is where group g begins in `spare`."""
    starts[:] = 0
    for at in range(count):
        starts[codes[words[at] & LOW_HALF] + 1] += 1
    for g in range(1, starts.size):
        starts[g] += starts[g - 1]
    for at in range(count):
        g = codes[words[at] & LOW_HALF]
        spare[starts[g]] = words[at]
        starts[g] += 1
    for g in range(starts.size - 1, 0, -1):
        starts[g] = starts[g - 1]
    starts[0] = 0


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
def settle(columns: Columns, tied: Ties, counts: NDArray[np.int64], values: NDArray[np.floating]) -> None:
    """Write the columns of each row in exact order, and mark those that tie with the one before."""
    words, spare, tables = room(values.shape[1])
    member = np.ones(values.shape[1], np.bool_)
    for day in range(values.shape[0]):
        line, row, order, tie = words, values[day], columns[day], tied[day]
        count, low, high = pack(words, row, member)
        sort_words(words, spare, count, low, high, tables)
        counts[day] = count
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
