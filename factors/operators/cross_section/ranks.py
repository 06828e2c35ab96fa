"""Rank the names of a day, or of a group; cut the ranks into buckets, or turn them into normal quantiles."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from ...kernels.cells import NAN, Array, Codes, Members, group_count
from ...kernels.kernel_cache import kernel
from ...kernels.ranking import SCALED_COUNT, TIES_AVERAGE, make_room, place, place_buckets, sort_row, split
from ...language.operator import ODD, ORDER, SCALED, TIES, Argument, Prose, across
from ..reference import Values, places
from .groups import UNKNOWN_GROUP_NOTE


@kernel
def rank(out: Array, values: Array, member: Members, ties: int, scaled: int, lo: int, hi: int) -> None:
    """Rank the members of each day."""
    room = make_room(values.shape[1])
    for day in range(lo, hi):
        count = sort_row(room, values[day], member[day])
        out[day] = NAN
        place(out[day], room[0], room[2], count, ties, scaled)


@kernel
def quantile_bucket(out: Array, values: Array, member: Members, buckets: int, lo: int, hi: int) -> None:
    """Cut the ranks of each day into buckets 1 to `buckets`."""
    room = make_room(values.shape[1])
    for day in range(lo, hi):
        count = sort_row(room, values[day], member[day])
        out[day] = NAN
        place_buckets(out[day], room[0], count, buckets)


@kernel
def group_rank(
    out: Array, values: Array, codes: Codes, member: Members, ties: int, scaled: int, lo: int, hi: int
) -> None:
    """Rank the members of each group on each day; the row is sorted once and then split."""
    room = make_room(values.shape[1])
    words, spare = room[0], room[1]
    starts, grouped = np.empty(group_count(codes) + 1, np.int64), codes >= 0
    for day in range(lo, hi):
        count = sort_row(room, values[day], member[day] & grouped)
        split(words, spare, count, codes, starts)
        out[day] = NAN
        for g in range(starts.size - 1):
            place(out[day], spare[starts[g] : starts[g + 1]], room[2], starts[g + 1] - starts[g], ties, scaled)


def _bucket_reference(x: Values, n: float) -> Values:
    """Return the ceiling of n times the percentile rank, computed in fractions."""
    shares = [Fraction(int(2 * rank), 2 * len(x)) for rank in places(x, 0, 3)]
    return np.array([math.ceil(int(n) * share) for share in shares], float)


RANK = across(
    "rank", "x", "rank",
    Prose("Rank among the names: ascending, average ties, percentile in (0, 1].", "the cross-sectional rank of {x}",
          "rank(returns)"),
    rank, TIES, SCALED, cost=6.0, scaling=ORDER, reference=lambda x, ties, scaled: places(x, ties, scaled),
)  # fmt: skip  # a table
GROUP_RANK = across(
    "group_rank", "x by@", "rank",
    Prose("Rank within the group: ascending, average ties, percentile in (0, 1].", "the rank of {x} within its {by}",
          "group_rank(returns, sector)"),
    group_rank, TIES, SCALED, cost=9.0, scaling=ORDER, nan=UNKNOWN_GROUP_NOTE,
    reference=lambda x, ties, scaled: places(x, ties, scaled),
)  # fmt: skip  # a table
QUANTILE_BUCKET = across(
    "quantile_bucket", "x", "number",
    Prose("Bucket of x among the names, 1 (lowest) to n: the ceiling of n * rank(x).",
          "the bucket of {x} among {n} equal cross-sectional buckets", "quantile_bucket(returns, 5)"),
    quantile_bucket, Argument("n", "number", low=2, high=1000, whole=True), cost=7.0, scaling=ORDER,
    reference=_bucket_reference,
)  # fmt: skip  # a table


def rank_gauss(out: Array, values: Array, member: Members, lo: int, hi: int) -> None:
    """Rank the members of each day and look up the normal quantile of each place."""
    from scipy.special import ndtri

    rank(out, values, member, TIES_AVERAGE, SCALED_COUNT, lo, hi)
    rows = out[lo:hi]
    count = np.isfinite(rows).sum(axis=1, keepdims=True)
    with np.errstate(all="ignore"):
        rows[:] = ndtri((rows.astype(np.float64) - 0.5) / count)


def _rank_gauss_reference(x: Values) -> Values:
    from statistics import NormalDist

    return np.array([NormalDist().inv_cdf((place - 0.5) / len(x)) for place in places(x, TIES_AVERAGE, SCALED_COUNT)])


RANK_GAUSS = across(
    "rank_gauss", "x", "ratio",
    Prose("Normal quantile of (r - 0.5) / n, r the rank of x among the n names, ties averaged: a z-score without "
          "outliers.",
          "the normal score of the cross-sectional rank of {x}", "rank_gauss(returns)"),
    rank_gauss, cost=40.0, scaling=ODD, reference=_rank_gauss_reference,
)  # fmt: skip  # a table
