"""Aggregate the names of a day or of a group, and compare each name with its group."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ...kernels.cells import NAN, Array, Codes, Members, finite, group_count, is_constant
from ...kernels.kernel_cache import kernel
from ...language.operator import ABSOLUTE, DDOF, EVEN, LINEAR, ODD, Argument, Prose, across
from ..reference import Values, score, variance

UNKNOWN_GROUP_NOTE = "Names whose group is unknown are NaN."


@kernel
def group_centres(row: Array, codes: Codes, member: Members, sums: NDArray[np.float64]) -> None:
    """Fill count, mean and squared deviations of each group, in two passes."""
    sums[:] = 0.0
    for j in range(row.size):
        if member[j] and codes[j] >= 0 and row[j] == row[j]:
            sums[0, codes[j]] += 1.0
            sums[1, codes[j]] += np.float64(row[j])
    for g in range(sums.shape[1]):
        sums[1, g] /= sums[0, g]
    for j in range(row.size):
        if member[j] and codes[j] >= 0 and row[j] == row[j]:
            sums[2, codes[j]] += (np.float64(row[j]) - sums[1, codes[j]]) ** 2


@kernel
def group_demean(out: Array, values: Array, codes: Codes, member: Members, lo: int, hi: int) -> None:
    """Subtract the mean of the group."""
    sums = np.empty((3, group_count(codes)))
    for day in range(lo, hi):
        row, o = values[day], out[day]
        group_centres(row, codes, member[day], sums)
        for j in range(o.size):
            known = member[day, j] and codes[j] >= 0
            o[j] = finite(np.float64(row[j]) - sums[1, codes[j]]) if known else NAN


@kernel
def group_zscore(out: Array, values: Array, codes: Codes, member: Members, ddof: int, lo: int, hi: int) -> None:
    """Subtract the mean of the group and divide by its standard deviation."""
    sums = np.empty((3, group_count(codes)))
    for day in range(lo, hi):
        row, o = values[day], out[day]
        group_centres(row, codes, member[day], sums)
        for g in range(sums.shape[1]):
            count, mean, squares = sums[0, g], sums[1, g], sums[2, g]
            flat = count <= ddof or is_constant(squares, mean, count)
            sums[2, g] = np.nan if flat else 1.0 / math.sqrt(squares / (count - ddof))
        for j in range(o.size):
            known = member[day, j] and codes[j] >= 0
            o[j] = finite((np.float64(row[j]) - sums[1, codes[j]]) * sums[2, codes[j]]) if known else NAN


GROUP_DEMEAN = across(
    "group_demean", "x by@", "same",
    Prose("x less the mean of its group.", "{x} less the mean of its {by}", "group_demean(returns, sector)"),
    group_demean, scaling=LINEAR, nan=UNKNOWN_GROUP_NOTE, reference=lambda x: x - x.mean(),
)  # fmt: skip  # a table
GROUP_ZSCORE = across(
    "group_zscore", "x by@", "ratio",
    Prose("x less the mean of its group, over the group's standard deviation.", "the z-score of {x} within its {by}",
          "group_zscore(returns, sector)"),
    group_zscore, DDOF, scaling=ODD, nan=UNKNOWN_GROUP_NOTE + " A group of one, or of equal values, gives NaN.",
    reference=lambda x, ddof: np.array([score(value, x, ddof) for value in x]),
)  # fmt: skip  # a table


AGGREGATE_MEAN, AGGREGATE_DEVIATION, AGGREGATE_SUM, AGGREGATE_COUNT = 0, 1, 2, 3


@kernel
def _aggregate(count: float, mean: float, squares: float, ddof: int, what: int) -> float:
    """Turn count, mean and squared deviations into one of the aggregates."""
    if what == AGGREGATE_MEAN:
        return mean
    if what == AGGREGATE_SUM:
        return mean * count
    spread = math.sqrt(squares / (count - ddof)) if count > ddof else np.nan
    return count if what == AGGREGATE_COUNT else spread


@kernel
def group_aggregate(
    out: Array, values: Array, codes: Codes, member: Members, ddof: int, what: int, lo: int, hi: int
) -> None:
    """Aggregate the members of each group that have a value, and write the result to each of them."""
    sums = np.empty((3, group_count(codes)))
    for day in range(lo, hi):
        row, o = values[day], out[day]
        group_centres(row, codes, member[day], sums)
        for g in range(sums.shape[1]):
            sums[0, g] = _aggregate(sums[0, g], sums[1, g], sums[2, g], ddof, what)
        for j in range(o.size):
            known = member[day, j] and codes[j] >= 0 and row[j] == row[j]
            o[j] = finite(sums[0, codes[j]]) if known else NAN


def aggregate(out: Array, values: Array, member: Members, ddof: int, what: int, lo: int, hi: int) -> None:
    """Aggregate the members of each day, as one group."""
    group_aggregate(out, values, np.zeros(out.shape[1], np.int16), member, ddof, what, lo, hi)


def _fill_reference(x: Values, value: float) -> Values:
    return np.full(len(x), value)


def _spread_reference(x: Values, ddof: float) -> Values:
    return _fill_reference(x, math.sqrt(variance(x, ddof)))


FEW_NAMES_NOTE = "Fewer than two names give NaN."

MEAN_ACROSS = across(
    "mean_across", "x", "same",
    Prose("Mean of x over the names, on each of them.", "the cross-sectional mean of {x}", "mean_across(returns)"),
    aggregate, fixed=(1, AGGREGATE_MEAN), scaling=LINEAR, reference=lambda x: _fill_reference(x, x.mean()),
)  # fmt: skip  # a table
STD_ACROSS = across(
    "std_across", "x", "same",
    Prose("Standard deviation of x over the names, on each of them.", "the cross-sectional standard deviation of {x}",
          "std_across(returns)"),
    aggregate, DDOF, fixed=(AGGREGATE_DEVIATION,), scaling=ABSOLUTE, nan=FEW_NAMES_NOTE, reference=_spread_reference,
)  # fmt: skip  # a table
SUM_ACROSS = across(
    "sum_across", "x", "same",
    Prose("Sum of x over the names, on each of them.", "the cross-sectional sum of {x}", "volume / sum_across(volume)"),
    aggregate, fixed=(1, AGGREGATE_SUM), scaling=LINEAR, reference=lambda x: _fill_reference(x, x.sum()),
)  # fmt: skip  # a table
COUNT_ACROSS = across(
    "count_across", "x", "number",
    Prose("Number of names that have a value, on each of them.", "the number of names with {x}",
          "count_across(returns)"),
    aggregate, fixed=(1, AGGREGATE_COUNT), scaling=EVEN, reference=lambda x: _fill_reference(x, len(x)),
)  # fmt: skip  # a table
GROUP_MEAN = across(
    "group_mean", "x by@", "same",
    Prose("Mean of x over its group, on each name of it.", "the mean of {x} over its {by}",
          "group_mean(returns, sector)"),
    group_aggregate, fixed=(1, AGGREGATE_MEAN), scaling=LINEAR, nan=UNKNOWN_GROUP_NOTE,
    reference=lambda x: _fill_reference(x, x.mean()),
)  # fmt: skip  # a table
GROUP_STD = across(
    "group_std", "x by@", "same",
    Prose("Standard deviation of x over its group, on each name of it.", "the standard deviation of {x} over its {by}",
          "group_std(returns, sector)"),
    group_aggregate, DDOF, fixed=(AGGREGATE_DEVIATION,), scaling=ABSOLUTE,
    nan=f"{UNKNOWN_GROUP_NOTE} {FEW_NAMES_NOTE}", reference=_spread_reference,
)  # fmt: skip  # a table
GROUP_SUM = across(
    "group_sum", "x by@", "same",
    Prose("Sum of x over its group, on each name of it.", "the sum of {x} over its {by}",
          "volume / group_sum(volume, sector)"),
    group_aggregate, fixed=(1, AGGREGATE_SUM), scaling=LINEAR, nan=UNKNOWN_GROUP_NOTE,
    reference=lambda x: _fill_reference(x, x.sum()),
)  # fmt: skip  # a table
GROUP_COUNT = across(
    "group_count", "x by@", "number",
    Prose("Number of names of the group that have a value, on each of them.",
          "the number of names of the {by} with {x}", "group_count(returns, sector)"),
    group_aggregate, fixed=(1, AGGREGATE_COUNT), scaling=EVEN, nan=UNKNOWN_GROUP_NOTE,
    reference=lambda x: _fill_reference(x, len(x)),
)  # fmt: skip  # a table


GROUP_SCALE = across(
    "group_scale", "x by@", "ratio",
    Prose("x scaled so that the absolute values of the group sum to `to`.",
          "{x} scaled to a gross sum of {to} per {by}", "group_scale(returns, sector)"),
    None, Argument("to", "number", 1.0, True, low=1e-9, high=1e9), scaling=ODD,
    nan="Names whose group is unknown are NaN, and so is a group whose values are all zero.",
    definition="to * x / group_sum(abs(x), by)",
)  # fmt: skip  # a table
