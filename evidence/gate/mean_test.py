"""The test of a trial: the mean daily RankIC of a window, with its p-value, power and smallest significant RankIC."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..newey_west import LAG_PER_HORIZON, NullDistribution, newey_west_t, null_distribution
from ..scoring.metrics import round_significant

Series = NDArray[np.float64]
HOLDING_LAG_DAYS = 2
"""Twice the one day that a value of the held series spans; the lag of labels is likewise twice their horizon."""


@dataclass(frozen=True)
class MeanTest:
    """A one-sided test of a mean daily RankIC on one window.

    Attributes
    ----------
    test
        `labels`: the RankIC of overlapping h-day labels. `held`: the RankIC of the ranks held with one-day returns
        (`holding_ic.py`).
    t
        Newey-West t of the tested series with lag twice its horizon, in the sign of the factor as written.
    days
        Values of the tested series that are not NaN.
    horizon, lag
        Days that one value spans, and Newey-West lag.
    error
        Standard error that this test implies for the mean RankIC of the h-day label: that mean is t times the error.
    """

    test: str
    t: float
    days: int
    horizon: int
    lag: int
    error: float

    @property
    def null(self) -> NullDistribution | None:
        """Return the null distribution of t; None where the days are too few for the lag."""
        return null_distribution(self.days, self.horizon, self.lag) if self.days > max(self.lag, 2) else None

    @property
    def deviation(self) -> float:
        """Return the long-run standard deviation of one day's RankIC: the error times the root of the days."""
        return self.error * math.sqrt(self.days)

    def p_value(self, sign: int) -> float:
        """Return the one-sided p-value of a factor held in direction `sign`; 1 where the days are too few."""
        null = self.null
        return null.p_value(sign * self.t) if null else 1.0

    def power(self, level: float) -> dict[str, Any]:
        """Return what this window can prove at a significance level about a factor with this error, as JSON.

        `t_required` is the smallest significant t. `rank_ic_provable` is the mean RankIC of the h-day label at which a
        factor with this error reaches it. Both are None where no t is significant.
        """
        needed = self.null.t_required(level) if self.null else math.nan
        return {
            "test": self.test,
            "t": round_significant(self.t),
            "days": self.days,
            "t_required": round_significant(needed),
            "rank_ic_provable": round_significant(needed * self.error),
        }


def run_mean_test(rank_ic: Series, held_rank_ic: Series | None, horizon: int, lag: int) -> MeanTest:
    """Test whether the mean daily RankIC of a window differs from 0.

    Parameters
    ----------
    rank_ic
        RankIC of each day with the h-day label `[D]`, NaN where undefined.
    held_rank_ic
        RankIC of the ranks held on each day with its one-day return `[D]`, NaN where undefined; None tests `rank_ic`.
    horizon, lag
        Days h of the label, and Newey-West lag of its series; that of the held series is 2.
    """
    if held_rank_ic is None:
        labels = newey_west_t(rank_ic, lag)
        return MeanTest("labels", labels.t, labels.days, horizon, lag, labels.standard_error)
    holding = newey_west_t(held_rank_ic, HOLDING_LAG_DAYS)
    has_enough_days = np.count_nonzero(~np.isnan(rank_ic)) > lag  # with fewer days, neither test is significant
    error = holding.standard_error * estimate_label_slope(rank_ic, held_rank_ic, horizon)
    return MeanTest("held", holding.t if has_enough_days else math.nan, holding.days, 1, HOLDING_LAG_DAYS, error)


def confirm_p_value(tested: float, labels: float, bar: float) -> float:
    """Return the p-value of the test; where the p-value of the labels is above `bar`, the larger of both.

    Ranks of one-day returns and of h-day returns test different things: the first see more of a day's median, the
    second more of its mean. A name whose good days are rare and large has a low median, so held ranks find volatility
    on real prices (t -4.9) where the label has a RankIC of 0.0001. With this rule, no more is accepted than either test
    would accept of its own null at the bar, and an accepted or watched factor has labels that agree in direction.

    Parameters
    ----------
    tested, labels
        One-sided p-values of the test that decides and of the overlapping labels, in [0, 1].
    bar
        Largest p-value at which the labels count as agreeing, in (0, 0.5].
    """
    return tested if labels <= bar else max(tested, labels)


def find_null(test: str, horizon: int, window: int) -> NullDistribution:
    """Return the null distribution of t on a window.

    Parameters
    ----------
    test
        `labels` or `held`, as `evidence.test` names it.
    horizon
        Days of the label.
    window
        Days of the window; those whose label ends outside it are subtracted here.

    Raises
    ------
    ValueError
        The window is too short for the lag.
    """
    if test == "held":
        return null_distribution(max(window - 2, 1), 1, HOLDING_LAG_DAYS)
    return null_distribution(max(window - horizon - 1, 1), horizon, LAG_PER_HORIZON * horizon)


def estimate_label_slope(rank_ic: Series, held_rank_ic: Series, horizon: int) -> float:
    """Return the RankIC of the h-day label for each unit of RankIC of the held series.

    Parameters
    ----------
    rank_ic
        RankIC of each day with the h-day label `[D]`, NaN where undefined.
    held_rank_ic
        RankIC of the ranks held on each day with its one-day return `[D]`, NaN where undefined.
    horizon
        Days h of the label.

    Returns
    -------
    float
        Slope of a line through the origin, of each day's RankIC on the mean of the held series over the label's h days.
        It lies between 1, for a factor that is drawn anew each day, and the root of h, for one that never changes. NaN
        where either series is empty.
    """
    known = ~np.isnan(held_rank_ic)
    total, count = np.cumsum(np.where(known, held_rank_ic, 0.0)), np.cumsum(known)
    total[horizon:] -= total[:-horizon].copy()
    count[horizon:] -= count[:-horizon].copy()
    ahead = np.full(len(held_rank_ic), np.nan)
    complete = count[horizon - 1 :] == horizon
    ahead[: len(complete)] = np.where(complete, total[horizon - 1 :] / horizon, np.nan)
    both = ~np.isnan(ahead) & ~np.isnan(rank_ic)
    spread = float(ahead[both] @ ahead[both])
    return float(ahead[both] @ rank_ic[both]) / spread if spread > 0 else math.nan


@dataclass(frozen=True)
class Power:
    """The smallest effect that a window could have proven.

    Attributes
    ----------
    p_required
        Significance level of the stream at this trial: the largest p-value that is accepted.
    t_required
        Newey-West t with that p-value.
    rank_ic_provable
        Smallest mean daily RankIC, measured on the window, that would have been accepted. A factor with exactly this
        true RankIC is accepted about half of the time.
    """

    p_required: float
    t_required: float
    rank_ic_provable: float


def compute_power(null: NullDistribution, level: float, rank_ic_sd: float) -> Power:
    """Return the smallest RankIC that a window can prove at a significance level.

    Parameters
    ----------
    null
        Null distribution of t for the days, horizon and lag of the window.
    level
        Significance level of the trial, from `lond_level`.
    rank_ic_sd
        Long-run standard deviation of one day's RankIC (`NeweyWest.daily_deviation`), typical of the candidates.

    Returns
    -------
    Power
        A NaN deviation gives a NaN RankIC.
    """
    t_required = null.t_required(level)
    return Power(level, t_required, t_required * rank_ic_sd / math.sqrt(null.days))
