"""RankIC, IC and quintiles of one factor, day by day, in one pass: each row is sorted once and read from the cache.

A row's words (see `factors.kernels.ranking`) are in order. Names that also have a label are ranked among themselves by
counting in that order, so no second sort is needed and sums of ranks are sums of integers. The order of the labels of
each day is computed once for many factors (`LabelOrders`). The same pass computes the returns of the quintiles, and
which names are bought and sold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ...factors import RowOrder
from ...factors.kernels import kernel, make_room, sort_row
from .long_short import BOUGHT, BOUGHT_INVERSE, NEITHER, SOLD, SOLD_INVERSE

Frame = NDArray[np.float64]
Series = NDArray[np.float64]
Values = NDArray[np.float32]
Words = NDArray[np.uint64]
Sides = NDArray[np.int8]

MIN_CORRELATED_NAMES = 10
"""Fewest names with a value and a label on a day that has a correlation."""
FLAT_SPREAD_SHARE = 1e-14
"""Share of the sum of squares below which a variance is rounding noise."""
SUM_LANES = 32
"""Partial sums in parallel: a fixed number, so that the result does not depend on the processor's vector width."""
ONE_INT32 = np.int32(1)
HALF_WORD = np.uint64(32)
LOW_HALF = np.uint64(0xFFFFFFFF)
EQUAL_WORDS = np.uint64(0)

Columns = NDArray[np.uint16] | NDArray[np.uint32]
Flags = NDArray[np.bool_]
Counts = NDArray[np.int64]
Ranks = NDArray[np.int32]
Stack = tuple[Columns, Flags, Counts, Flags, Ranks, Counts]
"""Columns, ties and counts by horizon and day, where there is a tie, ranks, and their sums of squares."""

QUINTILE_COUNT = 5

Out = tuple[Series, Series, Frame, Sides, Counts, Frame]


@dataclass(frozen=True, eq=False)
class Daily:
    """Daily statistics of a factor on one window.

    Attributes
    ----------
    rank_ic, ic : NDArray[np.float64]
        ``[D]`` Spearman and Pearson correlation with the label over the names that have both; NaN under 10 of them, or
        where one side is constant.
    fifths : NDArray[np.float64]
        ``[D, 5]`` mean return of each quintile of the factor, less the mean of all; NaN for an empty one.
    sides : NDArray[np.int8]
        ``[D, N]`` bits: 1 above the 80th percentile, 2 up to the 20th, 4 and 8 the same for the opposite factor.
    counts : NDArray[np.int64]
        ``[D]`` names with a value.
    decay : NDArray[np.float64]
        ``[H]`` mean RankIC at each horizon over the days of `thin`.
    """

    rank_ic: Series
    ic: Series
    fifths: Frame
    sides: Sides
    counts: NDArray[np.int64]
    decay: Series


def daily_statistics(
    values: Values,
    label: NDArray[np.floating],
    order: LabelOrders,
    returns: NDArray[np.floating],
    thin: LabelOrders | None = None,
) -> Daily:
    """Compute the daily statistics of a factor.

    Parameters
    ----------
    values : NDArray[np.float32]
        ``[D, N]`` factor, NaN missing.
    label, order : NDArray[np.float64], LabelOrders
        ``[D, N]`` forward returns to predict, NaN missing, and their order on every day.
    returns : NDArray[np.float64]
        ``[D, N]`` returns of the quintiles' names, decimal; NaN missing.
    thin : LabelOrders, optional
        Orders of the labels at other horizons, for the decay.

    Returns
    -------
    Daily
        Ranks are exact, ties averaged: `rank_ic` equals `row_rank_correlation`.
    """
    days, names = values.shape
    horizons, rows = thin.counts.shape if thin else (0, 0)
    daily = Daily(
        np.full(days, np.nan),
        np.full(days, np.nan),
        np.full((days, QUINTILE_COUNT), np.nan),
        np.zeros((days, names), np.int8),
        np.zeros(days, np.int64),
        np.full(horizons, np.nan),
    )
    decays = np.full((horizons, rows), np.nan)
    _scan(
        (daily.rank_ic, daily.ic, daily.fifths, daily.sides, daily.counts, decays),
        np.ascontiguousarray(values, np.float32),
        np.ascontiguousarray(label, np.float64),
        np.ascontiguousarray(returns, np.float64),
        order.arrays,
        (thin or order).arrays,
        thin.step if thin else days + 1,
    )
    for place, series in enumerate(decays):
        present = series[~np.isnan(series)]
        daily.decay[place] = present.mean() if present.size else np.nan
    return daily


@kernel
def _mark_present(marks: Flags, columns: Columns, count: int, present: Flags) -> int:
    """Mark the names of an order that are present, and count them."""
    marks[:] = False
    total = 0
    for at in range(count):
        marks[columns[at]] = present[columns[at]]
        total += present[columns[at]]
    return total


@kernel
def _sum_products(words: Words, count: int, packed: Ranks, total: int, before: Ranks) -> int:
    """Return the sum of products of both centred ranks, each doubled, where no two values are equal.

    `before` is filled with twice the number of marked names up to each word, itself included.
    """
    products, twice = 0, np.int32(1 - total)
    for at in range(count):
        entry = packed[words[at] & LOW_HALF]
        products += int(twice) * int(entry >> ONE_INT32)
        twice += 2 * (entry & ONE_INT32)
        before[at] = twice
    return products


@kernel
def _sum_products_of_runs(words: Words, count: int, packed: Ranks, total: int) -> tuple[int, int]:
    """Return the sum of `_sum_products` where values may be equal, and the sum of squares of the factor's ranks."""
    products, squares, before, start = 0, 0, 0, 0
    while start < count:
        end, number, entry = start + 1, words[start] >> HALF_WORD, int(packed[words[start] & LOW_HALF])
        marked, others = entry & 1, entry >> 1
        while end < count and words[end] >> HALF_WORD == number:
            entry = int(packed[words[end] & LOW_HALF])
            marked += entry & 1
            others += entry >> 1
            end += 1
        twice = 2 * before + marked - total
        products += twice * others
        squares += marked * twice * twice
        before += marked
        start = end
    return products, squares


@kernel
def _correlate_ranks(
    words: Words,
    count: int,
    apart: bool,
    columns: Columns,
    tied: Flags,
    labelled: int,
    any_tie: bool,
    whole: Ranks,
    whole_squares: int,
    packed: Ranks,
    marks: Flags,
    total: int,
    before: Ranks,
) -> float:
    """Correlate the ranks of a day's factor and label over the marked names, which have both."""
    label_entries, label_squares_sum = whole, whole_squares
    if total < labelled:  # else every name with a label has a value too, and its rank is precomputed
        label_entries, label_squares_sum = packed, label_ranks(packed, marks, columns, tied, labelled, any_tie, total)
    if apart:
        products, squares = _sum_products(words, count, label_entries, total, before), total * (total * total - 1) // 3
    else:
        products, squares = _sum_products_of_runs(words, count, label_entries, total)
    if (total < MIN_CORRELATED_NAMES) | (squares == 0) | (label_squares_sum == 0):
        return np.nan
    return products / (math.sqrt(float(squares)) * math.sqrt(float(label_squares_sum)))


@kernel
def _mark_labelled(
    row: Values, label: Series, returns: Series, marks: Flags, paid: Flags, earned: Series
) -> tuple[int, int, bool]:
    """Mark names with value and label, and with value and return; return both counts, and whether the marks differ."""
    total, count, differ = np.int32(0), np.int32(0), np.int32(0)
    for j in range(row.size):
        here = row[j] == row[j]
        both, pays = here & (label[j] == label[j]), here & (returns[j] == returns[j])
        marks[j], paid[j] = both, pays
        earned[j] = returns[j] if pays else 0.0
        total += both
        count += pays
        differ += both != pays
    return int(total), int(count), differ != 0


@kernel
def _add_row(lanes: Frame, row: Values, label: Series, x: float, y: float) -> None:
    """Add a row to the five sums of a correlation; rows are whole numbers of lanes."""
    sx, sy, xx, yy, xy = lanes[0], lanes[1], lanes[2], lanes[3], lanes[4]
    for start in range(0, row.size, SUM_LANES):
        v, w = row[start : start + SUM_LANES], label[start : start + SUM_LANES]
        for j in range(SUM_LANES):
            both = (v[j] == v[j]) & (w[j] == w[j])
            a = np.float64(v[j]) - x if both else 0.0
            b = w[j] - y if both else 0.0
            sx[j] += a
            sy[j] += b
            xx[j] += a * a
            yy[j] += b * b
            xy[j] += a * b


@kernel
def _correlate_values(
    row: Values, label: Series, marks: Flags, count: int, lanes: Frame, tail: Values, tail_label: Series
) -> float:
    """Correlate a day's values and labels over the marked names, from sums of deviations from the first of them."""
    x, y = 0.0, 0.0
    for j in range(row.size):
        if marks[j]:
            x, y = np.float64(row[j]), label[j]
            break
    lanes[:] = 0.0
    full = row.size // SUM_LANES * SUM_LANES
    tail[: row.size - full], tail_label[: row.size - full] = row[full:], label[full:]
    _add_row(lanes, row[:full], label[:full], x, y)
    _add_row(lanes, tail, tail_label, x, y)
    n = float(max(count, 1))
    xx, yy = lanes[2].sum(), lanes[3].sum()
    mx, my = lanes[0].sum() / n, lanes[1].sum() / n
    vx, vy = xx - n * mx * mx, yy - n * my * my
    flat = (vx <= FLAT_SPREAD_SHARE * xx) | (vy <= FLAT_SPREAD_SHARE * yy)
    return np.nan if (count < MIN_CORRELATED_NAMES) | flat else (lanes[4].sum() - n * mx * my) / np.sqrt(vx * vy)


@kernel
def _scan(out: Out, values: Values, label: Frame, returns: Frame, order: Stack, thin: Stack, step: int) -> None:
    rank_ic, ic, fifths, sides, counts, decays = out
    columns, tied, labelled, any_tie = order[0][0], order[1][0], order[2][0], order[3][0]
    whole, squares = order[4][0], order[5][0]
    thin_columns, thin_tied, thin_labelled, thin_any_tie, thin_whole, thin_squares = thin
    names = values.shape[1]
    room, member = make_room(names), np.ones(names, np.bool_)
    words, present = room[0], room[3]
    tail, tail_label = np.full(SUM_LANES, np.float32(np.nan), np.float32), np.full(SUM_LANES, np.nan)
    lanes, sums, quintile_counts = (
        np.zeros((5, SUM_LANES)),
        np.zeros(QUINTILE_COUNT),
        np.zeros(QUINTILE_COUNT, np.int64),
    )
    marks, paid = np.zeros(names, np.bool_), np.zeros(names, np.bool_)
    earned, line = np.zeros(names), np.zeros(names)
    packed, before = np.zeros(names, np.int32), np.zeros(names, np.int32)
    for day in range(values.shape[0]):
        count = sort_row(room, values[day], member)
        counts[day] = count
        if count == 0:
            continue
        apart = True
        for at in range(1, count):
            apart &= (words[at] ^ words[at - 1]) >> HALF_WORD != EQUAL_WORDS
        total, pays, differ = _mark_labelled(values[day], label[day], returns[day], marks, paid, earned)
        ic[day] = _correlate_values(values[day], label[day], marks, total, lanes, tail, tail_label)
        rank_ic[day] = _correlate_ranks(
            words, count, apart, columns[day], tied[day], labelled[day], any_tie[day], whole[day], squares[day],
            packed, marks, total, before,
        )  # fmt: skip  # a table
        if apart:
            mark_ends(sides[day], words, count)
        else:
            mark_runs(sides[day], words, count)
        if apart & (not differ):
            sum_quintiles(sums, quintile_counts, words, count, earned, line, before, total)
        else:
            sum_run_quintiles(sums, quintile_counts, words, count, earned, paid, pays)
        write_quintiles(fifths[day], sums, quintile_counts, pays)
        if day % step == 0:
            row = day // step
            for k in range(decays.shape[0]):
                total = _mark_present(marks, thin_columns[k, row], thin_labelled[k, row], present)
                decays[k, row] = _correlate_ranks(
                    words, count, apart, thin_columns[k, row], thin_tied[k, row], thin_labelled[k, row],
                    thin_any_tie[k, row], thin_whole[k, row], thin_squares[k, row], packed, marks, total, before,
                )  # fmt: skip  # a table


@dataclass(frozen=True, eq=False)
class LabelOrders:
    """The order of labels at one or several horizons, computed once for many factors.

    Attributes
    ----------
    horizons : tuple of int
        In days.
    step : int
        Row k is day ``k * step`` of the window.
    columns, tied, counts
        As in `RowOrder`, stacked by horizon: ``[H, D / step, N]``, ``[H, D / step]``; columns in two bytes if they fit.
    any_tie
        Whether the day has equal labels, ``[H, D / step]``.
    ranks, squares
        The array ``[H, D / step, N]`` that `label_ranks` fills where every name with a label has a value, and its
        result.
    """

    horizons: tuple[int, ...]
    step: int
    columns: Columns
    tied: Flags
    counts: Counts
    any_tie: Flags
    ranks: Ranks
    squares: Counts

    @classmethod
    def stack(cls, orders: Sequence[tuple[int, RowOrder]], step: int) -> LabelOrders:
        """Stack the orders of every ``step``-th day's labels, given by horizon; at least one."""
        horizons, row_orders = zip(*orders, strict=True)
        small = np.uint16 if row_orders[0].columns.shape[1] <= 1 << 16 else np.uint32
        counts = np.stack([order.counts for order in row_orders])
        tied = np.stack([order.tied for order in row_orders]) & (
            np.arange(row_orders[0].tied.shape[1]) < counts[:, :, None]
        )
        columns = cast("Columns", np.stack([order.columns for order in row_orders]).astype(small))
        any_tie = np.asarray(tied.any(axis=2))
        ranks, squares = np.zeros(columns.shape, np.int32), np.zeros(counts.shape, np.int64)
        for at in range(len(horizons)):
            _rank_all_labels(ranks[at], squares[at], columns[at], tied[at], counts[at], any_tie[at])
        return cls(tuple(horizons), step, columns, tied, counts, any_tie, ranks, squares)

    @property
    def arrays(self) -> Stack:
        """Return the arrays that the kernel reads."""
        return self.columns, self.tied, self.counts, self.any_tie, self.ranks, self.squares


@kernel
def label_ranks(
    packed: Ranks, marks: Flags, columns: Columns, tied: Flags, count: int, any_tie: bool, total: int
) -> int:
    """Pack rank and mark of each name for the walk over the factor's order; return the sum of squares of the ranks.

    A marked name has four times the distance of its rank from the mean rank, plus one; any other name has 0. The
    squares are of twice the distance.
    """
    packed[:] = 0
    if not any_tie:
        twice = np.int32(1 - total)
        for at in range(count):
            mark = np.int32(marks[columns[at]])
            packed[columns[at]] = 2 * twice * mark + mark
            twice += 2 * mark
        return total * (total * total - 1) // 3
    squares, before, start = 0, 0, 0
    while start < count:
        end, marked = start + 1, int(marks[columns[start]])
        while end < count and tied[end]:
            marked += marks[columns[end]]
            end += 1
        twice = np.int32(2 * before + marked - total)
        for at in range(start, end):
            mark = np.int32(marks[columns[at]])
            packed[columns[at]] = 2 * twice * mark + mark
        squares += marked * int(twice) * int(twice)
        before += marked
        start = end
    return squares


@kernel
def _rank_all_labels(
    out: Ranks, squares: Counts, columns: Columns, tied: Flags, counts: Counts, any_tie: Flags
) -> None:
    """Write the ranks of all names with a label, day by day."""
    marks = np.zeros(out.shape[1], np.bool_)
    for day in range(out.shape[0]):
        marks[:] = False
        for at in range(counts[day]):
            marks[columns[day, at]] = True
        squares[day] = label_ranks(out[day], marks, columns[day], tied[day], counts[day], any_tie[day], counts[day])


@kernel
def write_quintiles(o: Series, sums: Series, counts: Counts, total: int) -> None:
    """Write the mean return of each quintile less the mean of all; an empty one stays NaN."""
    for quintile in range(QUINTILE_COUNT):
        if counts[quintile]:
            o[quintile] = sums[quintile] / counts[quintile] - sums.sum() / total


@kernel
def _sum_line(line: Series) -> float:
    """Sum a line by four parallel sums, so that no addition waits for the one before."""
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
    sums: Series, counts: Counts, words: Words, count: int, earned: Series, line: Series, before: Ranks, total: int
) -> None:
    """Sum the returns of each quintile where no two values are equal: a quintile ends where its count is reached."""
    for at in range(count):
        line[at] = earned[words[at] & LOW_HALF]
    start = 0
    for quintile in range(QUINTILE_COUNT):
        last = (quintile + 1) * total // QUINTILE_COUNT
        counts[quintile] = last - quintile * total // QUINTILE_COUNT
        end = max(start, last)  # names without a label may lie between
        while (end < count) & (end > 0) and before[end - 1] < 2 * last + 1 - total:
            end += 1
        sums[quintile] = _sum_line(line[start:end])
        start = end


@kernel
def sum_run_quintiles(
    sums: Series, counts: Counts, words: Words, count: int, earned: Series, paid: Flags, total: int
) -> None:
    """Sum the returns of each quintile: rank r of n is in quintile ceil(5 r / n), and equal values share one."""
    sums[:], counts[:], before, start = 0.0, 0, 0, 0
    while start < count:
        end, number, column = start + 1, words[start] >> HALF_WORD, words[start] & LOW_HALF
        marked, run_return = int(paid[column]), earned[column]
        while end < count and words[end] >> HALF_WORD == number:
            column = words[end] & LOW_HALF
            marked += paid[column]
            run_return += earned[column]
            end += 1
        if marked:
            quintile = (QUINTILE_COUNT * (2 * before + marked + 1) + 2 * total - 1) // (2 * total) - 1
            sums[quintile] += run_return
            counts[quintile] += marked
        before += marked
        start = end


@kernel
def _find_side(start: int, end: int, count: int) -> int:
    """Return the side bits of a run of equal values."""
    rank = (start + end + 1) / 2.0
    share, inverse = rank / count, (count + 1 - rank) / count
    bits = BOUGHT if share > 0.8 else SOLD if share <= 0.2 else NEITHER
    return bits | (BOUGHT_INVERSE if inverse > 0.8 else SOLD_INVERSE if inverse <= 0.2 else NEITHER)


@kernel
def mark_ends(o: Sides, words: Words, count: int) -> None:
    """Mark the sides where no two values are equal: all but the innermost names of an end have the same bits."""
    low, top = np.int8(_find_side(0, 1, count)), np.int8(_find_side(count - 1, count, count))
    sure = max(count // QUINTILE_COUNT - 1, 0)
    for at in range(sure):
        o[words[at] & LOW_HALF] = low
        o[words[count - 1 - at] & LOW_HALF] = top
    for at in range(sure, min(sure + 3, count - sure)):
        for place in (at, count - 1 - at):
            o[words[place] & LOW_HALF] = _find_side(place, place + 1, count)


@kernel
def mark_runs(o: Sides, words: Words, count: int) -> None:
    """Mark the sides where values may be equal, from both ends inwards."""
    start = 0
    while start < count:
        end = start + 1
        while end < count and words[end] >> HALF_WORD == words[start] >> HALF_WORD:
            end += 1
        side = _find_side(start, end, count)
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
        side = _find_side(first, stop, count)
        if side == NEITHER:
            break
        for at in range(first, stop):
            o[words[at] & LOW_HALF] = side
        stop = first
