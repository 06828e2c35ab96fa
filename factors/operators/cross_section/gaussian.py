"""Turn the ranks of a day into the quantiles of a normal variable."""

from __future__ import annotations

import numpy as np

from ...kernels.cells import Array, Members
from ...kernels.ranking import SCALED_COUNT, TIES_AVERAGE
from ...language.declare import ODD, across
from ...language.obvious import Values, places
from ...language.signature import Prose
from .ranks import rank


def rank_gauss(out: Array, values: Array, member: Members, lo: int, hi: int) -> None:
    """Rank the members of each day and look up the normal quantile of each place."""
    from scipy.special import ndtri

    rank(out, values, member, TIES_AVERAGE, SCALED_COUNT, lo, hi)
    rows = out[lo:hi]
    count = np.isfinite(rows).sum(axis=1, keepdims=True)
    with np.errstate(all="ignore"):
        rows[:] = ndtri((rows.astype(np.float64) - 0.5) / count)


def _quantile(x: Values) -> Values:
    from statistics import NormalDist

    return np.array([NormalDist().inv_cdf((place - 0.5) / len(x)) for place in places(x, TIES_AVERAGE, SCALED_COUNT)])


RANK_GAUSS = across(
    "rank_gauss", "x", "ratio",
    Prose("Normal quantile of (r - 0.5) / n, r the rank of x among the n names, ties averaged: a z-score without outliers.",
          "the normal score of the cross-sectional rank of {x}", "rank_gauss(returns)"),
    rank_gauss, cost=40.0, scaling=ODD, reference=_quantile,
)  # fmt: skip
