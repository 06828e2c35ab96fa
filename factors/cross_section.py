"""Declare the operators that compare the names of one day."""

from __future__ import annotations

from typing import Unpack

from .signature import DDOF, Argument, Operator, Prose, Traits, panels


def _across(name: str, takes: str, unit: str, prose: Prose, *numbers: Argument, **more: Unpack[Traits]) -> Operator:
    """Declare an operator over the names of the universe that day."""
    return Operator(name, "cross-section", (*panels(takes), *numbers), *prose, unit, **more)


LINEAR, ODD, ORDER = (("linear",), ("odd",), ("order",))
UNKNOWN_GROUP = "Names whose group is unknown are NaN."

CROSS_SECTION: tuple[Operator, ...] = (
    _across("rank", "x", "rank",
            Prose("Rank among the names: ascending, average ties, percentile in (0, 1].",
                  "the cross-sectional rank of {x}", "rank(returns)"),
            scaling=ORDER),
    _across("zscore", "x", "ratio",
            Prose("x less the mean of the names, over their standard deviation.",
                  "the cross-sectional z-score of {x}", "zscore(returns)"),
            DDOF, scaling=ODD, nan="A day on which all are equal gives NaN."),
    _across("scale", "x", "ratio",
            Prose("x scaled so that the absolute values of the day sum to `to`.",
                  "{x} scaled to a gross sum of {to}", "scale(returns)"),
            Argument("to", "number", 1.0, True, low=1e-9), scaling=ODD, nan="A day on which all are zero gives NaN."),
    _across("winsorize", "x", "same",
            Prose("x held within `limit` standard deviations (ddof 1) of the mean of the names.",
                  "{x} held within {limit} standard deviations of its mean", "winsorize(returns, 3)"),
            Argument("limit", "number", 3.0, low=1e-9), scaling=LINEAR),
    _across("demean", "x", "same",
            Prose("x less the mean of the names.", "{x} less its cross-sectional mean", "demean(returns)"),
            scaling=LINEAR),
    _across("group_demean", "x by@", "same",
            Prose("x less the mean of its group.", "{x} less the mean of its {by}", "group_demean(returns, sector)"),
            scaling=LINEAR, nan=UNKNOWN_GROUP),
    _across("group_rank", "x by@", "rank",
            Prose("Rank within the group: ascending, average ties, percentile in (0, 1].",
                  "the rank of {x} within its {by}", "group_rank(returns, sector)"),
            scaling=ORDER, nan=UNKNOWN_GROUP),
    _across("group_zscore", "x by@", "ratio",
            Prose("x less the mean of its group, over the group's standard deviation.",
                  "the z-score of {x} within its {by}", "group_zscore(returns, sector)"),
            DDOF, scaling=ODD, nan=UNKNOWN_GROUP + " A group of one, or of equal values, gives NaN."),
    _across("quantile_bucket", "x", "number",
            Prose("Bucket of x among the names, 1 (lowest) to n: the ceiling of n * rank(x).",
                  "the bucket of {x} among {n} equal cross-sectional buckets", "quantile_bucket(returns, 5)"),
            Argument("n", "number", low=2, high=1000, whole=True), scaling=ORDER),
)  # fmt: skip
