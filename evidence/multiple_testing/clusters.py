"""How many different bets a campaign's candidates are, counted by clusters: a second number, never instead of the count."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["cluster_count", "silhouette"]

MAX_CLUSTERS = 50
MIN_SILHOUETTE = 0.1
"""A mean silhouette up to this shows no clusters."""


def cluster_count(returns: ArrayLike) -> int:
    """Count the groups of candidates whose returns move together.

    Parameters
    ----------
    returns
        Shape ``[D, K]``, one column for each candidate; a NaN counts as a return of 0.

    Returns
    -------
    int
        From 1 to K. A column that never varies is a cluster of its own.

    Notes
    -----
    Average linkage on the distance ``sqrt((1 - correlation) / 2)``, cut where the mean silhouette is highest; up to 50
    clusters are tried, the smaller number wins a tie. If no cut has a mean silhouette above 0.1, the candidates count one
    by one: too many is the safe side, since a smaller number flatters.

    References
    ----------
    Lopez de Prado and Lewis (2019), Quantitative Finance 19, 1555-1565 (clusters of trials); Rousseeuw (1987), Journal of
    Computational and Applied Mathematics 20, 53-65 (silhouette).
    """
    table = np.nan_to_num(np.asarray(returns, dtype=np.float64))
    moving = table.std(axis=0) > 1e-13 * np.abs(table).max(axis=0, initial=0.0)
    still = int((~moving).sum())
    varying = table[:, moving]
    if varying.shape[1] < 3:
        return int(varying.shape[1]) + still
    correlation = np.clip(np.corrcoef(varying, rowvar=False), -1.0, 1.0)
    return _cut(np.sqrt((1.0 - correlation) / 2.0)) + still


def _cut(distance: NDArray[np.float64]) -> int:
    """Return the number of clusters with the highest mean silhouette; every candidate its own if none is clear."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    count = len(distance)
    tree = linkage(squareform(distance, checks=False), method="average")
    best, found = MIN_SILHOUETTE, count
    for number in range(2, min(count - 1, MAX_CLUSTERS) + 1):
        labels = fcluster(tree, number, criterion="maxclust")
        clear = float(silhouette(distance, labels).mean())
        if clear > best + 1e-9:
            best, found = clear, len(set(labels.tolist()))
    return found


def silhouette(distance: NDArray[np.float64], labels: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return how much nearer each item is to its own cluster than to the next, `[K]`, in [-1, 1]; 0 for one alone."""
    member = labels[:, None] == np.unique(labels)[None, :]
    sizes = member.sum(axis=0)
    sums = distance @ member
    own = member.argmax(axis=1)
    rows = np.arange(len(labels))
    alone = sizes[own] == 1
    inside = sums[rows, own] / np.maximum(sizes[own] - 1, 1)
    means = sums / sizes
    means[rows, own] = np.inf
    outside = means.min(axis=1)
    found = (outside - inside) / np.maximum(np.maximum(inside, outside), 1e-300)
    return np.asarray(np.where(alone, 0.0, found))
