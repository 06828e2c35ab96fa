"""Compare each name of a day with the others of its group."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ...kernels.cells import NAN, Array, Codes, Members, finite, group_count, is_constant
from ...kernels.kernel_cache import kernel
from ...language.declare import DDOF, LINEAR, ODD, across
from ...language.obvious import score
from ...language.signature import Prose

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
)  # fmt: skip
GROUP_ZSCORE = across(
    "group_zscore", "x by@", "ratio",
    Prose("x less the mean of its group, over the group's standard deviation.", "the z-score of {x} within its {by}",
          "group_zscore(returns, sector)"),
    group_zscore, DDOF, scaling=ODD, nan=UNKNOWN_GROUP_NOTE + " A group of one, or of equal values, gives NaN.",
    reference=lambda x, ddof: np.array([score(each, x, ddof) for each in x]),
)  # fmt: skip
