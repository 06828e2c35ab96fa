"""Everything that a factor's days say, in one pass: each row is sorted once and read while it is in the cache.

A row's words (see `factors.kernels.ranking`) are in order; names that also have a label are ranked among themselves by
counting them off in that order, so that no second sort is needed and sums of ranks are sums of whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..factors import RowOrder
from ..factors.kernels.kernel_cache import kernel
from ..factors.kernels.ranking import make_room, sort_row
from .sleeves import BOUGHT, BOUGHT_INVERSE, NEITHER, SOLD, SOLD_INVERSE

__all__ = ["LEAST_NAMES", "Daily", "Thin", "daily_statistics", "thinned"]

Frame = NDArray[np.float64]
Series = NDArray[np.float64]
Values = NDArray[np.float32]
Words = NDArray[np.uint64]
Marks = NDArray[np.int32]
Flags = NDArray[np.bool_]
Sides = NDArray[np.int8]

Counts = NDArray[np.int64]
Out = tuple[Series, Series, Frame, Sides, Counts, Frame]
Order = tuple[Marks, Flags, Counts]
"""Columns, ties and counts, by day or by horizon and day."""

LEAST_NAMES = 10
"""Names with a value and a label below which a day has no correlation."""
FIFTHS = 5
FLAT = 1e-14
"""Share of the sum of squares below which a spread is rounding noise."""
LANES = 32
"""Partial sums side by side: the processor adds them at once, and the result does not hang on how many it can."""
HALF_WORD = np.uint64(32)
LOW_HALF = np.uint64(0xFFFFFFFF)
ALIKE = np.uint64(0)


@dataclass(frozen=True, eq=False)
class Thin:
    """The order of every few days' labels at several horizons, to measure decay by.

    Attributes
    ----------
    horizons : tuple of int
        In days.
    step : int
        Row k is day ``k * step`` of the window.
    columns, tied, counts
        As in `RowOrder`, stacked by horizon: ``[H, D / step, N]``, ``[H, D / step]``.
    """

    horizons: tuple[int, ...]
    step: int
    columns: Marks
    tied: Flags
    counts: NDArray[np.int64]


def thinned(orders: Sequence[tuple[int, RowOrder]], step: int) -> Thin:
    """Stack the orders of every ``step``-th day's labels, given by horizon."""
    horizons, rows = zip(*orders, strict=True)
    return Thin(
        tuple(horizons), step, np.stack([each.columns for each in rows]), np.stack([each.tied for each in rows]),
        np.stack([each.counts for each in rows]),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Daily:
    """What each day of a window says about a factor.

    Attributes
    ----------
    rank_ic, ic : NDArray[np.float64]
        ``[D]`` Spearman and Pearson correlation with the label over the names that have both; NaN under 10 of them, or
        where one side is constant.
    fifths : NDArray[np.float64]
        ``[D, 5]`` mean return of each fifth of the factor, over the mean of all; NaN for an empty one.
    sides : NDArray[np.int8]
        ``[D, N]`` bits: 1 above the 80th percentile, 2 up to the 20th, 4 and 8 the same for the opposite factor.
    counts : NDArray[np.int64]
        ``[D]`` names with a value.
    decay : NDArray[np.float64]
        ``[H]`` mean RankIC at each horizon over the days of `Thin`.
    """

    rank_ic: Series
    ic: Series
    fifths: Frame
    sides: Sides
    counts: NDArray[np.int64]
    decay: Series


def daily_statistics(values: Values, label: Frame, order: RowOrder, returns: Frame, thin: Thin) -> Daily:
    """Read a factor day by day.

    Parameters
    ----------
    values : NDArray[np.float32]
        ``[D, N]`` factor, NaN missing.
    label, order : NDArray[np.float64], RowOrder
        ``[D, N]`` what it should foretell, and its order.
    returns : NDArray[np.float64]
        ``[D, N]`` what a fifth earns; NaN missing.
    thin : Thin
        Labels at other horizons.

    Returns
    -------
    Daily
        Ranks are exact, ties averaged: `rank_ic` equals `row_rank_correlation`.
    """
    days, names = values.shape
    found = Daily(
        np.full(days, np.nan), np.full(days, np.nan), np.full((days, FIFTHS), np.nan),
        np.zeros((days, names), np.int8), np.zeros(days, np.int64), np.full(len(thin.horizons), np.nan),
    )  # fmt: skip
    decays = np.full((len(thin.horizons), thin.counts.shape[1]), np.nan)
    _scan(
        (found.rank_ic, found.ic, found.fifths, found.sides, found.counts, decays),
        np.ascontiguousarray(values, np.float32), np.ascontiguousarray(label, np.float64),
        np.ascontiguousarray(returns, np.float64), (order.columns, order.tied, order.counts),
        (thin.columns, thin.tied, thin.counts), thin.step,
    )  # fmt: skip
    for place, series in enumerate(decays):
        known = series[~np.isnan(series)]
        found.decay[place] = known.mean() if known.size else np.nan
    return found


@kernel
def _joint(marks: Marks, columns: Marks, count: int, present: Flags) -> int:
    """Mark the names of an order that are present, and count them."""
    marks[:] = 0
    for at in range(count):
        marks[columns[at]] = present[columns[at]]
    total = 0
    for j in range(marks.size):
        total += marks[j]
    return total


@kernel
def _label_ranks(ranks: Marks, marks: Marks, columns: Marks, tied: Flags, count: int, total: int) -> int:
    """Write twice the distance of each marked name's rank from the mean rank, 0 for others; return the sum of squares."""
    any_tie = False
    for at in range(count):
        any_tie |= tied[at]
    ranks[:] = 0
    before = 0
    if not any_tie:
        for at in range(count):
            column = columns[at]
            ranks[column] = (2 * before + 1 - total) * marks[column]
            before += marks[column]
        return total * (total * total - 1) // 3
    squares, start = 0, 0
    while start < count:
        end, kept = start + 1, int(marks[columns[start]])
        while end < count and tied[end]:
            kept += marks[columns[end]]
            end += 1
        twice = 2 * before + kept - total
        for at in range(start, end):
            ranks[columns[at]] = twice * marks[columns[at]]
        squares += kept * twice * twice
        before += kept
        start = end
    return squares


@kernel
def _products(words: Words, count: int, apart: bool, ranks: Marks, marks: Marks, total: int) -> tuple[int, int]:
    """Return the sum of products of both centred ranks, doubled, and the sum of squares of the factor's."""
    products, squares, before = 0, 0, 0
    if apart:
        for at in range(count):
            column = words[at] & LOW_HALF
            products += (2 * before + 1 - total) * int(ranks[column])
            before += marks[column]
        return products, total * (total * total - 1) // 3
    start = 0
    while start < count:
        end, number, column = start + 1, words[start] >> HALF_WORD, words[start] & LOW_HALF
        kept, others = int(marks[column]), int(ranks[column])
        while end < count and words[end] >> HALF_WORD == number:
            column = words[end] & LOW_HALF
            kept += marks[column]
            others += ranks[column]
            end += 1
        twice = 2 * before + kept - total
        products += twice * others
        squares += kept * twice * twice
        before += kept
        start = end
    return products, squares


@kernel
def _rank_correlation(
    words: Words, count: int, apart: bool, columns: Marks, tied: Flags, labelled: int, ranks: Marks, marks: Marks,
    total: int,
) -> float:  # fmt: skip
    """Correlate the ranks of a day's factor and label over the names that have both, which are marked."""
    theirs = _label_ranks(ranks, marks, columns, tied, labelled, total)
    products, squares = _products(words, count, apart, ranks, marks, total)
    if (total < LEAST_NAMES) | (squares == 0) | (theirs == 0):
        return np.nan
    return products / (math.sqrt(float(squares)) * math.sqrt(float(theirs)))


@kernel
def _correlation(
    row: Values, label: Series, present: Flags, marks: Marks, a: Series, b: Series, lanes: Frame
) -> tuple[int, float]:
    """Mark and count the names that have both a value and a label, and correlate them, from sums about one name's."""
    count, x, y = 0, 0.0, 0.0
    for j in range(row.size):
        if present[j] & (label[j] == label[j]):
            x, y = np.float64(row[j]), label[j]
            break
    for j in range(row.size):
        both = present[j] & (label[j] == label[j])
        marks[j] = both
        a[j] = np.float64(row[j]) - x if both else 0.0
        b[j] = label[j] - y if both else 0.0
        count += 1 if both else 0
    sx, sy, xx, yy, xy = lanes[0], lanes[1], lanes[2], lanes[3], lanes[4]
    lanes[:] = 0.0
    for start in range(0, a.size, LANES):
        c, d = a[start : start + LANES], b[start : start + LANES]
        for j in range(LANES):
            sx[j] += c[j]
            sy[j] += d[j]
            xx[j] += c[j] * c[j]
            yy[j] += d[j] * d[j]
            xy[j] += c[j] * d[j]
    n = float(max(count, 1))
    mx, my = sx.sum() / n, sy.sum() / n
    vx, vy = xx.sum() - n * mx * mx, yy.sum() - n * my * my
    flat = (vx <= FLAT * xx.sum()) | (vy <= FLAT * yy.sum())
    return count, np.nan if (count < LEAST_NAMES) | flat else (xy.sum() - n * mx * my) / np.sqrt(vx * vy)


@kernel
def _write_fifths(
    o: Series, words: Words, count: int, apart: bool, returns: Series, present: Flags, earned: Series, marks: Marks
) -> None:
    """Write the mean return of each fifth over the mean of all; the fifth of rank r of n is ceil(5 r / n), exactly."""
    total = 0
    for j in range(returns.size):
        both = present[j] & (returns[j] == returns[j])
        marks[j] = both
        earned[j] = returns[j] if both else 0.0
        total += both
    sums, held = np.zeros(FIFTHS), np.zeros(FIFTHS, np.int64)
    if apart:
        _sum_fifths(sums, held, words, count, earned, marks, total)
    else:
        _sum_fifths_of_runs(sums, held, words, count, earned, marks, total)
    for fifth in range(FIFTHS):
        if held[fifth]:
            o[fifth] = sums[fifth] / held[fifth] - sums.sum() / total


@kernel
def _sum_fifths(
    sums: Series, held: NDArray[np.int64], words: Words, count: int, earned: Series, marks: Marks, total: int
) -> None:
    """Add up the returns of each fifth where no two values are equal: a fifth ends where enough were counted off."""
    before, at = 0, 0
    for fifth in range(FIFTHS):
        stop = (fifth + 1) * total // FIFTHS
        sum_here, first = 0.0, before
        while (at < count) & (before < stop):
            column = words[at] & LOW_HALF
            sum_here += earned[column]
            before += marks[column]
            at += 1
        sums[fifth], held[fifth] = sum_here, before - first


@kernel
def _sum_fifths_of_runs(
    sums: Series, held: NDArray[np.int64], words: Words, count: int, earned: Series, marks: Marks, total: int
) -> None:
    """Add up the returns of each fifth; equal values share the fifth of their average rank."""
    before, start = 0, 0
    while start < count:
        end, number, column = start + 1, words[start] >> HALF_WORD, words[start] & LOW_HALF
        kept, sum_here = int(marks[column]), earned[column]
        while end < count and words[end] >> HALF_WORD == number:
            column = words[end] & LOW_HALF
            kept += marks[column]
            sum_here += earned[column]
            end += 1
        if kept:
            fifth = (FIFTHS * (2 * before + kept + 1) + 2 * total - 1) // (2 * total) - 1
            sums[fifth] += sum_here
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
def _mark_sides(o: Sides, words: Words, count: int) -> None:
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


@kernel
def _scan(out: Out, values: Values, label: Frame, returns: Frame, order: Order, thin: Order, step: int) -> None:
    """Fill the results day by day."""
    rank_ic, ic, fifths, sides, counts, decays = out
    columns, tied, labelled = order
    names = values.shape[1]
    room, member = make_room(names), np.ones(names, np.bool_)
    words, present = room[0], room[3]
    wide = (names + LANES - 1) // LANES * LANES
    a, b, lanes = np.zeros(wide), np.zeros(wide), np.zeros((5, LANES))
    ranks, marks = np.zeros(names, np.int32), np.zeros(names, np.int32)
    for day in range(values.shape[0]):
        count = sort_row(room, values[day], member)
        counts[day] = count
        if count == 0:
            continue
        apart = True
        for at in range(1, count):
            apart &= (words[at] ^ words[at - 1]) >> HALF_WORD != ALIKE
        total, ic[day] = _correlation(values[day], label[day], present, marks, a, b, lanes)
        rank_ic[day] = _rank_correlation(
            words, count, apart, columns[day], tied[day], labelled[day], ranks, marks, total
        )
        _write_fifths(fifths[day], words, count, apart, returns[day], present, a, marks)
        _mark_sides(sides[day], words, count)
        if day % step == 0:
            for k in range(decays.shape[0]):
                row = day // step
                total = _joint(marks, thin[0][k, row], thin[2][k, row], present)
                decays[k, row] = _rank_correlation(
                    words, count, apart, thin[0][k, row], thin[1][k, row], thin[2][k, row], ranks, marks, total
                )
