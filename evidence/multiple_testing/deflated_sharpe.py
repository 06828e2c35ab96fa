"""Deflated Sharpe ratio: the probability that a Sharpe ratio exceeds the best of that many worthless trials.

It is shown beside a verdict and never decides one. `count_clusters` counts the different bets among the trials of a
campaign, a second number of trials for the ratio.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

MAX_CLUSTERS = 50
MIN_SILHOUETTE = 0.1
"""Mean silhouette that a cut must exceed to show clusters."""


@dataclass(frozen=True)
class ReturnMoments:
    """Moments of a return series that the Sharpe formulas need.

    Attributes
    ----------
    sharpe
        Mean over standard deviation (ddof 1) of one period, not annualised.
    skewness, kurtosis
        Population moments; kurtosis is plain, 3 for a normal.
    days
        Values that are not NaN.
    """

    sharpe: float
    skewness: float
    kurtosis: float
    days: int


def measure_return_moments(returns: ArrayLike) -> ReturnMoments:
    """Measure the moments of a return series.

    Parameters
    ----------
    returns
        One return per period, shape ``[D]``; NaN is dropped.

    Returns
    -------
    ReturnMoments
        NaN for fewer than three values or without variation.
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
        Number of normals, at least 1; the expectation of a single one is 0.

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
    """Return the probability that a selected series has a true Sharpe ratio above the best of worthless trials.

    Parameters
    ----------
    returns
        One return per period, shape ``[D]``, NaN dropped; or its moments.
    trials
        Number of all trials that were run, refused and failed ones included, at least 1.
    variance
        Variance of the trials' Sharpe ratios per period: an annualised one must be divided by the periods of a year.

    Returns
    -------
    float
        `probabilistic_sharpe` against ``sqrt(variance) * expected_maximum(trials)``; NaN where either is.

    References
    ----------
    Bailey and Lopez de Prado (2014), Journal of Portfolio Management 40(5), 94-107.
    """
    sample = returns if isinstance(returns, ReturnMoments) else measure_return_moments(returns)
    if not variance >= 0:
        return math.nan
    return probabilistic_sharpe(sample, math.sqrt(variance) * expected_maximum(trials))


def count_clusters(returns: ArrayLike) -> int:
    """Count the groups of candidates whose returns move together.

    Parameters
    ----------
    returns
        Shape ``[D, K]``, one column for each candidate; a NaN counts as a return of 0.

    Returns
    -------
    int
        From 1 to K. A column without variation is a cluster of its own.

    Notes ----- Average linkage on the distance ``sqrt((1 - correlation) / 2)``, cut where the mean silhouette is
    highest; up to 50 clusters are tried, and the smaller number wins a tie. If no cut has a mean silhouette above 0.1,
    each candidate is a cluster: too large a number is the safe side, since a smaller one raises the deflated ratio.

    References ---------- Lopez de Prado and Lewis (2019), Quantitative Finance 19, 1555-1565 (clusters of trials);
    Rousseeuw (1987), Journal of Computational and Applied Mathematics 20, 53-65 (silhouette).
    """
    table = np.nan_to_num(np.asarray(returns, dtype=np.float64))
    varies = table.std(axis=0) > 1e-13 * np.abs(table).max(axis=0, initial=0.0)
    constant_count = int((~varies).sum())
    varying = table[:, varies]
    if varying.shape[1] < 3:
        return int(varying.shape[1]) + constant_count
    correlation = np.clip(np.corrcoef(varying, rowvar=False), -1.0, 1.0)
    return _choose_cluster_count(np.sqrt((1.0 - correlation) / 2.0)) + constant_count


def _choose_cluster_count(distance: NDArray[np.float64]) -> int:
    """Return the number of clusters with the highest mean silhouette; one per item if no cut is clear."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    count = len(distance)
    tree = linkage(squareform(distance, checks=False), method="average")
    best, clusters = MIN_SILHOUETTE, count
    for number in range(2, min(count - 1, MAX_CLUSTERS) + 1):
        labels = fcluster(tree, number, criterion="maxclust")
        score = float(silhouette(distance, labels).mean())
        if score > best + 1e-9:
            best, clusters = score, len(set(labels.tolist()))
    return clusters


def silhouette(distance: NDArray[np.float64], labels: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return the silhouette of each item: how much nearer it is to its own cluster than to the next.

    Parameters
    ----------
    distance
        ``[K, K]``, symmetric, 0 on the diagonal.
    labels
        ``[K]``: the cluster of each item; at least two clusters.

    Returns
    -------
    NDArray[np.float64]
        ``[K]`` in [-1, 1]; 0 for an item that is alone in its cluster.

    References
    ----------
    Rousseeuw (1987), Journal of Computational and Applied Mathematics 20, 53-65.
    """
    member = labels[:, None] == np.unique(labels)[None, :]
    sizes = member.sum(axis=0)
    sums = distance @ member
    cluster = member.argmax(axis=1)
    rows = np.arange(len(labels))
    alone = sizes[cluster] == 1
    inside = sums[rows, cluster] / np.maximum(sizes[cluster] - 1, 1)
    means = sums / sizes
    means[rows, cluster] = np.inf
    outside = means.min(axis=1)
    widths = (outside - inside) / np.maximum(np.maximum(inside, outside), 1e-300)
    return np.asarray(np.where(alone, 0.0, widths))
