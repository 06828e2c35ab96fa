"""Test whether a mean daily RankIC is above chance, given every trial that was taken before.

One trial is a one-sided test of the mean with Newey-West errors against the null distribution of `newey_west_null.py`: of a constant mean
in this window, with independent shocks that overlap by the horizon. A style that has good and bad years has no such mean. On 250
S&P names, 2008 to 2017, the means of blocks of 299 days scattered by 1.81 times the variance that Newey-West errors promise, over
83 published factors; on the same panel made null by coins 0.88 to 1.71 times (ten seeds, 1.17 on average; `python -m
benchmarks.blocks`). So a p-value here says nothing of whether the mean of this window stays.

The stream of trials is controlled by LOND, divided by the harmonic number, which holds whatever the dependence between trials.
It holds for trials that were not chosen by what earlier ones showed. Agents are told accepted, watchlist or rejected: if whoever
is told always tried what is nearest (rank correlation 0.69) to the best of what was watched, something false would be accepted in
1.0 % of campaigns of 10 trials and 2.6 % of those of 20, where the levels add up to 0.41 % and 0.45 %: above the sum, and below
the level of the stream. Whoever adds up the formulas that a window was kind to does better: on simulated independent ones whose t
he sees, the sum of those with a positive t is accepted in 7.5 % of cases after 20 looks and in 80 % after 60, since the sum
is one formula and no earlier trial is held against it (`python -m benchmarks.adaptive` plays this against the real gate).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .newey_west_null import NullDistribution, null_distribution

__all__ = [
    "NeweyWest",
    "NullDistribution",
    "Power",
    "compute_power",
    "gamma",
    "lond_level",
    "newey_west_t",
    "null_distribution",
]


@dataclass(frozen=True)
class NeweyWest:
    """A mean and how well it is known.

    Attributes
    ----------
    mean, standard_error
        In the units of the series.
    t
        Mean over standard error; NaN where the error is zero or too few days are there.
    days
        Values that were present.
    """

    mean: float
    standard_error: float
    t: float
    days: int

    @property
    def daily_deviation(self) -> float:
        """Return the long-run standard deviation of one day: the error times the root of the days."""
        return self.standard_error * math.sqrt(self.days)


def newey_west_t(series: ArrayLike, lag: int) -> NeweyWest:
    """Measure a mean with Newey-West standard errors.

    Parameters
    ----------
    series
        Daily values, shape ``[D]``, in order of time. NaN is a missing day and is dropped.
    lag
        Bartlett weights ``1 - l / (lag + 1)`` on autocovariances (divided by D) up to this lag, which is cut to the
        number of days less one.

    Returns
    -------
    NeweyWest
        A constant series has a NaN t; an empty one NaN throughout. With lag 0, t is Student's times
        ``sqrt(D / (D - 1))``.

    References
    ----------
    Newey and West (1987), Econometrica 55, 703-708.
    """
    values = np.asarray(series, dtype=np.float64)
    values = values[~np.isnan(values)]
    days = len(values)
    if days == 0:
        return NeweyWest(math.nan, math.nan, math.nan, 0)
    mean = float(values.mean())
    centred = values - mean
    variance = float(centred @ centred)
    for step in range(1, min(lag, days - 1) + 1):
        variance += 2.0 * (1.0 - step / (lag + 1)) * float(centred[step:] @ centred[:-step])
    error = math.sqrt(max(variance, 0.0)) / days
    constant = error <= 1e-13 * max(abs(mean), float(np.abs(values).max()))
    return NeweyWest(mean, error, math.nan if days < 2 or constant else mean / error, days)


def gamma(number: int) -> float:
    """Return the share of the level that is set aside for the trial with this number.

    Parameters
    ----------
    number
        1 for the first trial.

    Returns
    -------
    float
        ``.07720838 ln(max(j, 2)) / (j exp(sqrt(ln j)))``; the shares of all trials sum to 1.

    References
    ----------
    Javanmard and Montanari (2018), Annals of Statistics 46, 526-554; the constant of the onlineFDR package.
    """
    if number < 1:
        raise ValueError(f"number must be at least 1, got {number}")
    return 0.07720838 * math.log(max(number, 2)) / (number * math.exp(math.sqrt(math.log(number))))


def lond_level(number: int, discoveries_before: int, alpha: float = 0.05) -> float:
    """Return the level at which a trial is a discovery, under any dependence between trials.

    Parameters
    ----------
    number
        1 for the first trial of the stream.
    discoveries_before
        Discoveries among the trials with smaller numbers.
    alpha
        False discovery rate to hold, in (0, 1).

    Returns
    -------
    float
        ``alpha gamma_number (discoveries_before + 1) / H_number``, H being the harmonic number.

    References
    ----------
    Javanmard and Montanari (2015), arXiv:1502.06197; harmonic correction: Zrnic, Ramdas and Jordan (2021), JMLR 22.
    """
    if not 0 <= discoveries_before < number:
        raise ValueError(f"discoveries_before must be in [0, {number}), got {discoveries_before}")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be in (0, 1), got {alpha}")
    harmonic = math.fsum(1.0 / step for step in range(1, number + 1))
    return alpha * gamma(number) * (discoveries_before + 1) / harmonic


@dataclass(frozen=True)
class Power:
    """What a window could have proved.

    Attributes
    ----------
    p_required
        Level of the stream at this trial: the p-value that it may have at most.
    t_required
        Newey-West t with that p-value.
    rank_ic_provable
        Smallest mean daily RankIC, measured on the window, that would have been accepted. A factor whose true RankIC
        is exactly this is accepted about every other time.
    """

    p_required: float
    t_required: float
    rank_ic_provable: float


def compute_power(null: NullDistribution, level: float, rank_ic_sd: float) -> Power:
    """Say which RankIC a window can prove at a given level.

    Parameters
    ----------
    null
        Distribution of t without any effect, for the days, horizon and lag of the window.
    level
        Level of the trial in question, from `lond_level`.
    rank_ic_sd
        Long-run standard deviation of one day's RankIC (`NeweyWest.daily_deviation`), typical of the candidates.

    Returns
    -------
    Power
        A NaN deviation gives a NaN RankIC.
    """
    t_required = null.t_required(level)
    return Power(level, t_required, t_required * rank_ic_sd / math.sqrt(null.days))
