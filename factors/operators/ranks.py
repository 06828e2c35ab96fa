"""Rank the names of a day, or of a group, and cut the ranks into buckets."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from ..declare import ORDER, SCALED, TIES, across
from ..kernels.cells import Array, Codes, Members
from ..kernels.ranking import ROWS, Keys, pack, pack_groups, place, place_buckets, place_groups
from ..obvious import Values, places
from ..signature import Argument, Prose
from .groups import UNKNOWN_GROUP


def _sorted_rows(
    pack_some: Callable[[Keys, int], None], use: Callable[[Keys, int], None], out: Array, lo: int, hi: int
) -> None:
    """Pack some rows into words, sort each, and hand them on; numpy sorts plain integers with vector instructions."""
    keys = np.empty((min(ROWS, hi - lo), out.shape[1]), np.uint64)
    for first in range(lo, hi, ROWS):
        some = keys[: min(ROWS, hi - first)]
        pack_some(some, first)
        some.sort(axis=1)
        use(some, first)


def rank(out: Array, values: Array, member: Members, ties: int, scaled: int, lo: int, hi: int) -> None:
    """Rank the members of each day."""
    _sorted_rows(
        lambda keys, first: pack(keys, values, member, first),
        lambda keys, first: place(out, keys, first, ties, scaled), out, lo, hi,
    )  # fmt: skip


def quantile_bucket(out: Array, values: Array, member: Members, buckets: int, lo: int, hi: int) -> None:
    """Cut the ranks of each day into buckets 1 to `buckets`."""
    _sorted_rows(
        lambda keys, first: pack(keys, values, member, first),
        lambda keys, first: place_buckets(out, keys, first, buckets), out, lo, hi,
    )  # fmt: skip


def group_rank(
    out: Array, values: Array, codes: Codes, member: Members, ties: int, scaled: int, lo: int, hi: int
) -> None:
    """Rank the members of each group on each day."""
    _sorted_rows(
        lambda keys, first: pack_groups(keys, values, codes, member, first),
        lambda keys, first: place_groups(out, keys, first, ties, scaled), out, lo, hi,
    )  # fmt: skip


def _bucket(x: Values, n: float) -> Values:
    """Return the ceiling of n times the percentile, in whole numbers."""
    twice = [Fraction(int(2 * rank), 2 * len(x)) for rank in places(x, 0, 3)]
    return np.array([math.ceil(int(n) * each) for each in twice], float)


RANK = across(
    "rank", "x", "rank",
    Prose("Rank among the names: ascending, average ties, percentile in (0, 1].", "the cross-sectional rank of {x}",
          "rank(returns)"),
    rank, TIES, SCALED, cost=8.0, scaling=ORDER, reference=lambda x, ties, scaled: places(x, ties, scaled),
)  # fmt: skip
GROUP_RANK = across(
    "group_rank", "x by@", "rank",
    Prose("Rank within the group: ascending, average ties, percentile in (0, 1].", "the rank of {x} within its {by}",
          "group_rank(returns, sector)"),
    group_rank, TIES, SCALED, cost=9.0, scaling=ORDER, nan=UNKNOWN_GROUP,
    reference=lambda x, ties, scaled: places(x, ties, scaled),
)  # fmt: skip
QUANTILE_BUCKET = across(
    "quantile_bucket", "x", "number",
    Prose("Bucket of x among the names, 1 (lowest) to n: the ceiling of n * rank(x).",
          "the bucket of {x} among {n} equal cross-sectional buckets", "quantile_bucket(returns, 5)"),
    quantile_bucket, Argument("n", "number", low=2, high=1000, whole=True), cost=8.0, scaling=ORDER,
    reference=_bucket,
)  # fmt: skip
