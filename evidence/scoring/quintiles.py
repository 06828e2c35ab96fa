"""The fifths of a factor on one day: what each earned, and who is bought and sold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...factors.kernels import kernel
from .long_short import BOUGHT, BOUGHT_INVERSE, NEITHER, SOLD, SOLD_INVERSE

__all__ = ["QUINTILE_COUNT", "mark_ends", "mark_runs", "sum_quintiles", "sum_run_quintiles", "write_quintiles"]

Series = NDArray[np.float64]
Words = NDArray[np.uint64]
Ranks = NDArray[np.int32]
Flags = NDArray[np.bool_]
Counts = NDArray[np.int64]
Sides = NDArray[np.int8]

QUINTILE_COUNT = 5
HALF_WORD = np.uint64(32)
LOW_HALF = np.uint64(0xFFFFFFFF)


@kernel
def write_quintiles(o: Series, sums: Series, held: Counts, total: int) -> None:
    """Write the mean return of each fifth over the mean of all; NaN for an empty one."""
    for fifth in range(QUINTILE_COUNT):
        if held[fifth]:
            o[fifth] = sums[fifth] / held[fifth] - sums.sum() / total


@kernel
def _sum(line: Series) -> float:
    """Add up a line: four sums side by side, so that none waits for the one before."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    whole = line.size // 4 * 4
    for at in range(0, whole, 4):
        a += line[at]
        b += line[at + 1]
        c += line[at + 2]
        d += line[at + 3]
    for at in range(whole, line.size):
        a += line[at]
    return (a + b) + (c + d)


@kernel
def sum_quintiles(
    sums: Series, held: Counts, words: Words, count: int, earned: Series, line: Series, before: Ranks, total: int
) -> None:
    """Add up the returns of each fifth where no two values are equal: a fifth ends where enough were counted off."""
    for at in range(count):
        line[at] = earned[words[at] & LOW_HALF]
    start = 0
    for fifth in range(QUINTILE_COUNT):
        last = (fifth + 1) * total // QUINTILE_COUNT
        held[fifth] = last - fifth * total // QUINTILE_COUNT
        end = max(start, last)  # names without a label lie between
        while (end < count) & (end > 0) and before[end - 1] < 2 * last + 1 - total:
            end += 1
        sums[fifth] = _sum(line[start:end])
        start = end


@kernel
def sum_run_quintiles(
    sums: Series, held: Counts, words: Words, count: int, earned: Series, paid: Flags, total: int
) -> None:
    """Add up the returns of each fifth; the fifth of rank r of n is ceil(5 r / n), exactly, and equal values share one."""
    sums[:], held[:], before, start = 0.0, 0, 0, 0
    while start < count:
        end, number, column = start + 1, words[start] >> HALF_WORD, words[start] & LOW_HALF
        kept, here = int(paid[column]), earned[column]
        while end < count and words[end] >> HALF_WORD == number:
            column = words[end] & LOW_HALF
            kept += paid[column]
            here += earned[column]
            end += 1
        if kept:
            fifth = (QUINTILE_COUNT * (2 * before + kept + 1) + 2 * total - 1) // (2 * total) - 1
            sums[fifth] += here
            held[fifth] += kept
        before += kept
        start = end


@kernel
def _side(start: int, end: int, count: int) -> int:
    """Return the bits of a run of equal values."""
    rank = (start + end + 1) / 2.0
    share, inverse = rank / count, (count + 1 - rank) / count
    own = BOUGHT if share > 0.8 else SOLD if share <= 0.2 else NEITHER
    return own | (BOUGHT_INVERSE if inverse > 0.8 else SOLD_INVERSE if inverse <= 0.2 else NEITHER)


@kernel
def mark_ends(o: Sides, words: Words, count: int) -> None:
    """Mark the fifths where no two values are equal: all but the innermost names of an end bear the same bits."""
    low, top = np.int8(_side(0, 1, count)), np.int8(_side(count - 1, count, count))
    sure = max(count // QUINTILE_COUNT - 1, 0)
    for at in range(sure):
        o[words[at] & LOW_HALF] = low
        o[words[count - 1 - at] & LOW_HALF] = top
    for at in range(sure, min(sure + 3, count - sure)):
        for place in (at, count - 1 - at):
            o[words[place] & LOW_HALF] = _side(place, place + 1, count)


@kernel
def mark_runs(o: Sides, words: Words, count: int) -> None:
    """Mark the names of the top and bottom fifth, and of those of the opposite factor, from the ends inwards."""
    start = 0
    while start < count:
        end = start + 1
        while end < count and words[end] >> HALF_WORD == words[start] >> HALF_WORD:
            end += 1
        side = _side(start, end, count)
        if side == NEITHER:
            break
        for at in range(start, end):
            o[words[at] & LOW_HALF] = side
        start = end
    stop = count
    while stop > start:
        first = stop - 1
        while first > start and words[first - 1] >> HALF_WORD == words[stop - 1] >> HALF_WORD:
            first -= 1
        side = _side(first, stop, count)
        if side == NEITHER:
            break
        for at in range(first, stop):
            o[words[at] & LOW_HALF] = side
        stop = first
