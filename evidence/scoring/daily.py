"""Everything that a factor's days say, in one pass: each row is sorted once and read while it is in the cache.

A row's words (see `factors.kernels.ranking`) are in order; names that also have a label are ranked among themselves by
counting them off in that order, so that no second sort is needed and sums of ranks are sums of whole numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...factors.kernels import kernel, make_room, sort_row
from .label_order import Columns, Counts, Flags, LabelOrders, Ranks, Stack, label_ranks
from .quintiles import QUINTILE_COUNT, mark_ends, mark_runs, sum_quintiles, sum_run_quintiles, write_quintiles

__all__ = ["MIN_CORRELATED_NAMES", "Daily", "daily_statistics"]

Frame = NDArray[np.float64]
Series = NDArray[np.float64]
Values = NDArray[np.float32]
Words = NDArray[np.uint64]
Sides = NDArray[np.int8]

Out = tuple[Series, Series, Frame, Sides, Counts, Frame]

MIN_CORRELATED_NAMES = 10
"""Names with a value and a label below which a day has no correlation."""
FLAT_SPREAD_SHARE = 1e-14
"""Share of the sum of squares below which a spread is rounding noise."""
SUM_LANES = 32
"""Partial sums side by side: the processor adds them at once, and the result does not hang on how many it can."""
ONE_INT32 = np.int32(1)
HALF_WORD = np.uint64(32)
LOW_HALF = np.uint64(0xFFFFFFFF)
EQUAL_WORDS = np.uint64(0)


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
        ``[H]`` mean RankIC at each horizon over the days of `ThinBook`.
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
    """Read a factor day by day.

    Parameters
    ----------
    values : NDArray[np.float32]
        ``[D, N]`` factor, NaN missing.
    label, order : NDArray[np.float64], Orders
        ``[D, N]`` what it should foretell, and the order of every day of it.
    returns : NDArray[np.float64]
        ``[D, N]`` what a fifth earns, decimal; NaN missing.
    thin : Orders, optional
        Labels at other horizons, for the decay.

    Returns
    -------
    Daily
        Ranks are exact, ties averaged: `rank_ic` equals `row_rank_correlation`.
    """
    days, names = values.shape
    horizons, rows = thin.counts.shape if thin else (0, 0)
    found = Daily(
        np.full(days, np.nan), np.full(days, np.nan), np.full((days, QUINTILE_COUNT), np.nan),
        np.zeros((days, names), np.int8), np.zeros(days, np.int64), np.full(horizons, np.nan),
    )  # fmt: skip
    decays = np.full((horizons, rows), np.nan)
    _scan(
        (found.rank_ic, found.ic, found.fifths, found.sides, found.counts, decays),
        np.ascontiguousarray(values, np.float32), np.ascontiguousarray(label, np.float64),
        np.ascontiguousarray(returns, np.float64), order.arrays, (thin or order).arrays, thin.step if thin else days + 1,
    )  # fmt: skip
    for place, series in enumerate(decays):
        known = series[~np.isnan(series)]
        found.decay[place] = known.mean() if known.size else np.nan
    return found


@kernel
def _joint(marks: Flags, columns: Columns, count: int, present: Flags) -> int:
    """Mark the names of an order that are present, and count them."""
    marks[:] = False
    total = 0
    for at in range(count):
        marks[columns[at]] = present[columns[at]]
        total += present[columns[at]]
    return total


@kernel
def _products(words: Words, count: int, packed: Ranks, total: int, before: Ranks) -> int:
    """Return the sum of products of both centred ranks, each doubled, where no two values are equal.

    `before` is filled with twice the number of marked names up to each word, itself included.
    """
    products, twice = 0, np.int32(1 - total)
    for at in range(count):
        held = packed[words[at] & LOW_HALF]
        products += int(twice) * int(held >> ONE_INT32)
        twice += 2 * (held & ONE_INT32)
        before[at] = twice
    return products


@kernel
def _products_of_runs(words: Words, count: int, packed: Ranks, total: int) -> tuple[int, int]:
    """Return the same where values may be equal, and the sum of squares of the factor's ranks."""
    products, squares, before, start = 0, 0, 0, 0
    while start < count:
        end, number, held = start + 1, words[start] >> HALF_WORD, int(packed[words[start] & LOW_HALF])
        kept, others = held & 1, held >> 1
        while end < count and words[end] >> HALF_WORD == number:
            held = int(packed[words[end] & LOW_HALF])
            kept += held & 1
            others += held >> 1
            end += 1
        twice = 2 * before + kept - total
        products += twice * others
        squares += kept * twice * twice
        before += kept
        start = end
    return products, squares


@kernel
def _rank_correlation(
    words: Words, count: int, apart: bool, columns: Columns, tied: Flags, labelled: int, any_tie: bool,
    whole: Ranks, whole_squares: int, packed: Ranks, marks: Flags, total: int, before: Ranks,
) -> float:  # fmt: skip
    """Correlate the ranks of a day's factor and label over the names that have both, which are marked."""
    held, theirs = whole, whole_squares
    if total < labelled:  # else every name with a label has a value too, and its rank is the one known before
        held, theirs = packed, label_ranks(packed, marks, columns, tied, labelled, any_tie, total)
    if apart:
        products, squares = _products(words, count, held, total, before), total * (total * total - 1) // 3
    else:
        products, squares = _products_of_runs(words, count, held, total)
    if (total < MIN_CORRELATED_NAMES) | (squares == 0) | (theirs == 0):
        return np.nan
    return products / (math.sqrt(float(squares)) * math.sqrt(float(theirs)))


@kernel
def _mark(
    row: Values, label: Series, returns: Series, marks: Flags, paid: Flags, earned: Series
) -> tuple[int, int, bool]:  # fmt: skip
    """Mark the names that have a value and a label, and those with a return; count both; tell whether they differ."""
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
def _add(lanes: Frame, row: Values, label: Series, x: float, y: float) -> None:
    """Add what a correlation is made of to the sums; rows are a whole number of lanes long."""
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
def _correlation(
    row: Values, label: Series, marks: Flags, count: int, lanes: Frame, rest: Values, rest_label: Series
) -> float:
    """Correlate a day's values and labels over the marked names, from sums about the first of them."""
    x, y = 0.0, 0.0
    for j in range(row.size):
        if marks[j]:
            x, y = np.float64(row[j]), label[j]
            break
    lanes[:] = 0.0
    full = row.size // SUM_LANES * SUM_LANES
    rest[: row.size - full], rest_label[: row.size - full] = row[full:], label[full:]
    _add(lanes, row[:full], label[:full], x, y)
    _add(lanes, rest, rest_label, x, y)
    n = float(max(count, 1))
    xx, yy = lanes[2].sum(), lanes[3].sum()
    mx, my = lanes[0].sum() / n, lanes[1].sum() / n
    vx, vy = xx - n * mx * mx, yy - n * my * my
    flat = (vx <= FLAT_SPREAD_SHARE * xx) | (vy <= FLAT_SPREAD_SHARE * yy)
    return np.nan if (count < MIN_CORRELATED_NAMES) | flat else (lanes[4].sum() - n * mx * my) / np.sqrt(vx * vy)


@kernel
def _scan(out: Out, values: Values, label: Frame, returns: Frame, order: Stack, thin: Stack, step: int) -> None:
    """Fill the results day by day."""
    rank_ic, ic, fifths, sides, counts, decays = out
    columns, tied, labelled, any_tie = order[0][0], order[1][0], order[2][0], order[3][0]
    whole, squares = order[4][0], order[5][0]
    thin_columns, thin_tied, thin_labelled, thin_any_tie, thin_whole, thin_squares = thin
    names = values.shape[1]
    room, member = make_room(names), np.ones(names, np.bool_)
    words, present = room[0], room[3]
    rest, rest_label = np.full(SUM_LANES, np.float32(np.nan), np.float32), np.full(SUM_LANES, np.nan)
    lanes, sums, held = np.zeros((5, SUM_LANES)), np.zeros(QUINTILE_COUNT), np.zeros(QUINTILE_COUNT, np.int64)
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
        total, pays, differ = _mark(values[day], label[day], returns[day], marks, paid, earned)
        ic[day] = _correlation(values[day], label[day], marks, total, lanes, rest, rest_label)
        rank_ic[day] = _rank_correlation(
            words, count, apart, columns[day], tied[day], labelled[day], any_tie[day], whole[day], squares[day],
            packed, marks, total, before,
        )  # fmt: skip
        if apart:
            mark_ends(sides[day], words, count)
        else:
            mark_runs(sides[day], words, count)
        if apart & (not differ):
            sum_quintiles(sums, held, words, count, earned, line, before, total)
        else:
            sum_run_quintiles(sums, held, words, count, earned, paid, pays)
        write_quintiles(fifths[day], sums, held, pays)
        if day % step == 0:
            row = day // step
            for k in range(decays.shape[0]):
                total = _joint(marks, thin_columns[k, row], thin_labelled[k, row], present)
                decays[k, row] = _rank_correlation(
                    words, count, apart, thin_columns[k, row], thin_tied[k, row], thin_labelled[k, row],
                    thin_any_tie[k, row], thin_whole[k, row], thin_squares[k, row], packed, marks, total, before,
                )  # fmt: skip
