"""Rank the names of one day exactly, by sorting whole numbers.

A float32 becomes an unsigned 32-bit number of the same order; with the column behind it in one 64-bit word, two passes
of a radix sort over the highest digits that differ order the row but for words that share them, which one pass of
insertion puts right. Where many share them, as next to an outlier, further passes sort the lower digits first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .cells import FLOAT32_ZERO, Array, Codes, Members, finite
from .kernel_cache import kernel

Words = NDArray[np.uint64]
Keys = NDArray[np.uint32]
Counts = NDArray[np.uint32]
Columns = NDArray[np.int32]
Ties = NDArray[np.bool_]
SortBuffers = tuple[Words, Words, Keys, Ties, Counts]

SIGN_BIT = np.uint32(0x80000000)
UINT32_ONE = np.uint32(1)
HALF_WORD = np.uint64(32)
LOW_HALF = np.uint64(0xFFFFFFFF)
NO_DIFFERENCE = np.uint64(0)
DISTANCE_BITS = 32
MIN_MERGE_RUN = 24
"""Values above which a run is sorted by numba's merge sort, not by insertion."""
MAX_DIGIT_BITS = 11
"""Bits of the largest digit of the radix sort; short rows take smaller ones, whose tables are cheaper to clear."""
INSERTIONS_PER_WORD = 6
"""Steps of insertion a word after which the lower digits are sorted instead."""


@kernel
def _order_bits(bits: np.uint32) -> np.uint32:
    """Turn the bits of a float32 into a number of the same order."""
    return ~bits if bits & SIGN_BIT else bits | SIGN_BIT


@kernel
def digit_bits(names: int) -> int:
    """Return the number of bits of a digit for rows of some length."""
    bits = 6
    while bits < MAX_DIGIT_BITS and (1 << bits) < names:
        bits += 1
    return bits


@kernel
def _measure_distances(keys: Keys, present: Ties, row: NDArray[np.floating], member: Members) -> tuple[int, np.uint32]:
    """Write the distance of each number from the lowest of the row; missing ones are one above the highest.

    Return the number of present values, and the distance of missing ones. Float64 values that round to one float32 are
    separated later.
    """
    line = keys.view(np.float32)
    low, high, count = np.uint32(0xFFFFFFFF), np.uint32(0), 0
    for j in range(row.size):
        line[j] = np.float32(row[j]) + FLOAT32_ZERO  # minus zero becomes zero
        present[j] = member[j] & (row[j] == row[j])
    for j in range(row.size):
        number = _order_bits(keys[j])
        keys[j] = number
        low = min(low, number if present[j] else np.uint32(0xFFFFFFFF))
        high = max(high, number if present[j] else np.uint32(0))
        count += 1 if present[j] else 0
    if count == 0:
        return 0, np.uint32(0)
    above = np.uint32(high - low) + np.uint32(1)
    for j in range(row.size):
        keys[j] = np.uint32(keys[j] - low) if present[j] else above
    return count, above


@kernel
def _count_to_starts(one: Counts, two: Counts) -> None:
    """Turn the counts of two digits into the places of their first words."""
    first, second = np.uint32(0), np.uint32(0)
    for digit in range(one.size):
        here, there = one[digit], two[digit]
        one[digit], two[digit] = first, second
        first += here
        second += there


@kernel
def _sort_by_digits(words: Words, spare: Words, keys: Keys, shift: int, bits: int, one: Counts, two: Counts) -> None:
    """Write words in the order of two digits of their distance; equal ones are in the order of the columns."""
    mask, first, second = np.uint32(one.size - 1), np.uint32(shift), np.uint32(shift + bits)
    wide = HALF_WORD + np.uint64(second)
    one[:] = 0
    two[:] = 0
    for j in range(keys.size):
        one[(keys[j] >> first) & mask] += UINT32_ONE
        two[(keys[j] >> second) & mask] += UINT32_ONE
    _count_to_starts(one, two)
    for j in range(keys.size):
        digit = (keys[j] >> first) & mask
        to = one[digit]  # unsigned: testing a sign would cost a fifth of the pass
        spare[to] = (np.uint64(keys[j]) << HALF_WORD) | np.uint64(j)
        one[digit] = to + UINT32_ONE
    for at in range(keys.size):
        digit = np.uint32(spare[at] >> wide) & mask
        to = two[digit]
        words[to] = spare[at]
        two[digit] = to + UINT32_ONE


@kernel
def _sort_again(words: Words, spare: Words, shift: int, bits: int, one: Counts, two: Counts) -> None:
    """Order words by two further digits of their distance; equal ones keep their order.

    A distance has 32 bits: digits above them are 0, and a shift by 64 or more would be undefined.
    """
    mask = np.uint64(one.size - 1)
    upper = mask if shift + bits < DISTANCE_BITS else np.uint64(0)
    first, second = HALF_WORD + np.uint64(shift), HALF_WORD + np.uint64(min(shift + bits, DISTANCE_BITS - 1))
    one[:] = 0
    two[:] = 0
    for word in words:
        one[(word >> first) & mask] += UINT32_ONE
        two[(word >> second) & upper] += UINT32_ONE
    _count_to_starts(one, two)
    for word in words:
        digit = (word >> first) & mask
        spare[one[digit]] = word
        one[digit] += UINT32_ONE
    for word in spare:
        digit = (word >> second) & upper
        words[two[digit]] = word
        two[digit] += UINT32_ONE


@kernel
def _insert(words: Words) -> bool:
    """Sort nearly ordered words by insertion; return False if it takes too long, with no word lost."""
    patience = INSERTIONS_PER_WORD * words.size
    for at in range(1, words.size):
        word, to = words[at], at
        if words[at - 1] <= word:
            continue
        while to > 0 and words[to - 1] > word:
            words[to] = words[to - 1]
            to -= 1
        words[to] = word
        patience -= at - to
        if patience < 0:
            return False
    return True


@kernel
def sort_row(room: SortBuffers, row: NDArray[np.floating], member: Members) -> int:
    """Sort the present members of a row into the first words of ``room[0]``; return their number."""
    words, spare, keys, present, tables = room
    count, above = _measure_distances(keys, present, row, member)
    if count == 0:
        return 0
    span, bits = 0, 0
    while np.uint64(above) >> np.uint64(span):
        span += 1
    while tables.shape[1] >> (bits + 1):
        bits += 1
    top = max(span - 2 * bits, 0)
    _sort_by_digits(words, spare, keys, top, bits, tables[0], tables[1])
    if top == 0 or _insert(words):
        return count
    for shift in range(0, span, 2 * bits):
        _sort_again(words, spare, shift, bits, tables[0], tables[1])
    return count


@kernel
def make_room(names: int) -> SortBuffers:
    """Allocate the buffers of `sort_row`: (words, spare words, keys, present flags, digit counts)."""
    words, spare = np.empty(names, np.uint64), np.empty(names, np.uint64)
    tables = np.empty((2, 1 << digit_bits(names)), np.uint32)
    return words, spare, np.empty(names, np.uint32), np.empty(names, np.bool_), tables


TIES_AVERAGE, TIES_MIN, TIES_MAX, TIES_FIRST = 0, 1, 2, 3
SCALED_PERCENT, SCALED_FROM_ZERO, SCALED_UNIT, SCALED_COUNT = 0, 1, 2, 3


@kernel
def lowest(scaled: int) -> float:
    """Return twice the offset of a rank: shares are r / n, (r - 1) / n, (r - 1) / (n - 1), or r alone."""
    return 2.0 if (scaled == SCALED_FROM_ZERO) | (scaled == SCALED_UNIT) else 0.0


@kernel
def among(count: float, scaled: int) -> float:
    """Return the divisor of a rank."""
    return 1.0 if scaled == SCALED_COUNT else count - 1.0 if scaled == SCALED_UNIT else count


@kernel
def _find_run_starts(starts: Keys, words: Words, count: int) -> bool:
    """Write the start of each word's run of equal numbers; return whether any run has two or more."""
    start, tied = np.uint32(0), False
    starts[0] = start
    for at in range(1, count):
        alike = (words[at] ^ words[at - 1]) >> HALF_WORD == NO_DIFFERENCE
        start = start if alike else np.uint32(at)
        tied |= alike
        starts[at] = start
    return tied


@kernel
def place(o: Array, words: Words, starts: Keys, count: int, ties: int, scaled: int) -> None:
    """Write ranks from sorted words; `starts` is a work buffer."""
    if count == 0:
        return
    off, factor = lowest(scaled), 0.5 / among(float(count), scaled)
    if (ties == TIES_FIRST) | (not _find_run_starts(starts, words, count)):
        for at in range(count):
            o[words[at] & LOW_HALF] = finite((2.0 * (at + 1) - off) * factor)
        return
    end, weight_start, weight_end = count, 0 if ties == TIES_MAX else 1, 0 if ties == TIES_MIN else 1
    twice = 2 if weight_start + weight_end == 1 else 1
    for at in range(count - 1, -1, -1):
        last = (at + 1 == count) | (starts[min(at + 1, count - 1)] == at + 1)
        end = at + 1 if last else end
        place = twice * (weight_start * (np.int64(starts[at]) + 1) + weight_end * end)
        o[words[at] & LOW_HALF] = finite((place - off) * factor)


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
    """Sort column numbers by their values in `row`; stable."""
    if run.size > MIN_MERGE_RUN:
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
    room = make_room(values.shape[1])
    member = np.ones(values.shape[1], np.bool_)
    for day in range(values.shape[0]):
        line, row, order, tie = room[0], values[day], columns[day], tied[day]
        count = sort_row(room, row, member)
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
def _rank_jointly(ranks: NDArray[np.int64], order: Columns, tie: Ties, joint: NDArray[np.int64], total: int) -> None:
    """Write twice the distance of each joint name's rank from the mean rank; 0 for the others."""
    position, start = 0, 0
    while start < order.size:
        end = start + 1
        shared = joint[order[start]]
        while end < order.size and tie[end]:
            shared += joint[order[end]]
            end += 1
        twice = 2 * position + shared - total
        for at in range(start, end):
            ranks[order[at]] = twice * joint[order[at]]
        position += shared
        start = end


@kernel
def correlate_orders(
    out: NDArray[np.float64],
    left: tuple[Columns, Ties, NDArray[np.int64]],
    right: tuple[Columns, Ties, NDArray[np.int64]],
    least: int,
) -> None:
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
        _rank_jointly(a, one, left[1][day], joint, total)
        _rank_jointly(b, other, right[1][day], joint, total)
        ab, aa, bb = 0, 0, 0
        for j in range(names):
            ab += a[j] * b[j]
            aa += a[j] * a[j]
            bb += b[j] * b[j]
        flat = total < least or aa == 0 or bb == 0
        out[day] = np.nan if flat else ab / (np.sqrt(np.float64(aa)) * np.sqrt(np.float64(bb)))
