"""How much of a good Sharpe ratio is due to the search that found it; shown beside a verdict, never deciding it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "Overfitting",
    "ReturnMoments",
    "deflated_sharpe",
    "expected_maximum",
    "moments",
    "pbo",
    "probabilistic_sharpe",
]


@dataclass(frozen=True)
class ReturnMoments:
    """What the Sharpe formulas need of a series.

    Attributes
    ----------
    sharpe
        Mean over standard deviation (ddof 1) of one period, not annualised.
    skewness, kurtosis
        Population moments; kurtosis is plain, 3 for a normal.
    days
        Values that were present.
    """

    sharpe: float
    skewness: float
    kurtosis: float
    days: int


@dataclass(frozen=True)
class Overfitting:
    """Result of the combinatorially symmetric cross-validation.

    Attributes
    ----------
    probability
        Share of splits in which the best in sample is at or below the median out of sample.
    logits
        One per split, in lexicographic order of the blocks in sample.
    """

    probability: float
    logits: NDArray[np.float64]


def moments(returns: ArrayLike) -> ReturnMoments:
    """Measure the moments of a return series.

    Parameters
    ----------
    returns
        One value a period, shape ``[D]``; NaN is dropped.

    Returns
    -------
    Moments
        NaN for fewer than three values or no variation.
    """
    values = np.asarray(returns, dtype=np.float64)
    values = values[~np.isnan(values)]
    days = len(values)
    deviation = float(values.std()) if days >= 3 else 0.0
    if deviation <= 1e-13 * float(np.abs(values).max(initial=0.0)) or deviation == 0.0:
        return ReturnMoments(math.nan, math.nan, math.nan, days)
    mean = float(values.mean())
    standard = (values - mean) / deviation
    sharpe = mean / (deviation * math.sqrt(days / (days - 1)))
    return ReturnMoments(sharpe, float((standard**3).mean()), float((standard**4).mean()), days)


def probabilistic_sharpe(sample: ReturnMoments, benchmark: float = 0.0) -> float:
    """Return the probability that the true Sharpe ratio exceeds a benchmark.

    Parameters
    ----------
    sample
        Moments of the returns, per period.
    benchmark
        Sharpe ratio to beat, per period.

    Returns
    -------
    float
        NaN where the moments are NaN or leave no positive variance.

    References
    ----------
    Bailey and Lopez de Prado (2012), Journal of Risk 15(2), 3-44.
    """
    from scipy.special import ndtr

    sharpe = sample.sharpe
    variance = 1.0 - sample.skewness * sharpe + (sample.kurtosis - 1.0) / 4.0 * sharpe**2
    if not variance > 0 or sample.days < 2:
        return math.nan
    return float(ndtr((sharpe - benchmark) * math.sqrt(sample.days - 1) / math.sqrt(variance)))


def expected_maximum(trials: int) -> float:
    """Return the expected maximum of independent standard normals, to first order.

    Parameters
    ----------
    trials
        How many, at least 1; a single one has expectation 0.

    Returns
    -------
    float
        ``(1 - g) z(1 - 1/N) + g z(1 - 1/(N e))`` with Euler's constant g and the normal quantile z.

    References
    ----------
    Bailey and Lopez de Prado (2014), Journal of Portfolio Management 40(5), 94-107.
    """
    if trials < 1:
        raise ValueError(f"trials must be at least 1, got {trials}")
    if trials == 1:
        return 0.0
    from scipy.special import ndtri

    first = float(ndtri(1.0 - 1.0 / trials))
    second = float(ndtri(1.0 - 1.0 / (trials * math.e)))
    return (1.0 - np.euler_gamma) * first + np.euler_gamma * second


def deflated_sharpe(returns: ArrayLike | ReturnMoments, trials: int, variance: float) -> float:
    """Return the probability that a picked series has a true Sharpe ratio above the best of worthless trials.

    Parameters
    ----------
    returns
        One value a period, shape ``[D]``, NaN dropped; or its moments.
    trials
        Every trial that was run, also refused and failed ones, at least 1.
    variance
        Variance of the trials' Sharpe ratios, per period: an annualised one must be divided by the periods of a year.

    Returns
    -------
    float
        `probabilistic_sharpe` against ``sqrt(variance) * expected_maximum(trials)``; NaN where either is.

    References
    ----------
    Bailey and Lopez de Prado (2014), Journal of Portfolio Management 40(5), 94-107.
    """
    sample = returns if isinstance(returns, ReturnMoments) else moments(returns)
    if not variance >= 0:
        return math.nan
    return probabilistic_sharpe(sample, math.sqrt(variance) * expected_maximum(trials))


def pbo(returns: ArrayLike, blocks: int = 10) -> Overfitting:
    """Return the probability that the best candidate in sample is worse than the median out of sample.

    Parameters
    ----------
    returns
        Shape ``[D, K]``: one column for each of at least two candidates. A NaN counts as no position, a return of 0.
    blocks
        Even number of contiguous blocks; left-over days at the start are dropped.

    Returns
    -------
    Overfitting
        Sharpe ratios decide; a candidate that never varies has ratio 0, ties take the first candidate in sample and the
        average rank out of sample.

    Raises
    ------
    ValueError
        For an odd number of blocks, fewer than two candidates, or fewer than two days a block.

    References
    ----------
    Bailey, Borwein, Lopez de Prado and Zhu (2017), Journal of Computational Finance 20(4), 39-69.
    """
    table = np.nan_to_num(np.asarray(returns, dtype=np.float64))
    size = len(table) // blocks if blocks >= 2 else 0
    if blocks < 2 or blocks % 2 or table.ndim != 2 or table.shape[1] < 2 or size < 2:
        raise ValueError(f"needs an even number of blocks, 2 days each, and 2 candidates; got {blocks}, {table.shape}")
    cut = table[len(table) - size * blocks :].reshape(blocks, size, -1)
    sums, squares = cut.sum(axis=1), (cut**2).sum(axis=1)
    inside = np.zeros((math.comb(blocks, blocks // 2), blocks))
    for row, chosen in enumerate(combinations(range(blocks), blocks // 2)):
        inside[row, list(chosen)] = 1.0
    half = size * blocks // 2
    winners = _sharpe(inside @ sums, inside @ squares, half).argmax(axis=1)
    out = _sharpe((1 - inside) @ sums, (1 - inside) @ squares, half)
    best = out[np.arange(len(out)), winners][:, None]
    ranks = ((out < best).sum(axis=1) + ((out == best).sum(axis=1) + 1) / 2) / (out.shape[1] + 1)  # ties share one
    logits = np.log(ranks / (1.0 - ranks))
    return Overfitting(float((logits <= 0).mean()), logits)


def _sharpe(sums: NDArray[np.float64], squares: NDArray[np.float64], days: int) -> NDArray[np.float64]:
    """Return Sharpe ratios from sums and sums of squares; 0 where nothing varies."""
    mean = sums / days
    variance = squares / days - mean**2
    moving = variance > 1e-15 * squares / days
    return np.where(moving, mean / np.sqrt(np.where(moving, variance, 1.0)), 0.0)
