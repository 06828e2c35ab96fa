"""Daily second moments of ranks and labels.

The daily RankIC of any weighting follows from them, so a combiner can try many weightings without reading frames again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..factors import rank_rows

Series = NDArray[np.float64]
Frame = NDArray[np.float32]

MIN_MOMENT_NAMES = 10
"""Fewest names with a label on a day that is learnt from."""
RANK_SCALE = float(np.sqrt(12.0))
"""Factor that scales a centred percentile rank to standard deviation 1."""


@dataclass(frozen=True, eq=False)
class RankMoments:
    """Second moments of the names that have a label.

    Attributes
    ----------
    gram
        ``[T, K, K]``: mean product of two factors' standard ranks; a missing value counts as the middle rank, 0.
    covariance
        ``[T, K]``: mean product of a factor's standard ranks with those of the label.
    names
        ``[T]``: number of names with a label; 0 on a day with fewer than 10, whose moments are 0.
    """

    gram: Series
    covariance: Series
    names: Series

    @property
    def days(self) -> int:
        """Count the days."""
        return len(self.names)

    @property
    def factors(self) -> int:
        """Count the factors."""
        return int(self.covariance.shape[1])

    def turned(self, signs: Sequence[int] | NDArray[np.int64]) -> RankMoments:
        """Return the moments of factors multiplied by signs ``[K]``, 1 or -1 each."""
        turn = np.asarray(signs, dtype=np.float64)
        return RankMoments(self.gram * turn[:, None] * turn, self.covariance * turn, self.names)

    def signs(self, allowed: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the sign of each factor's mean RankIC over allowed days ``[T]``, as ``[K]``; 1 where it is 0."""
        return np.where(self.covariance[allowed].sum(axis=0) < 0, -1, 1)

    def loss(self, weights: Series) -> Series:
        """Return the daily mean squared error of a weighting less that of a zero prediction, ``[T]``.

        `weights` is ``[T, K]``, in standard deviations of the label per standard rank.
        """
        square = np.einsum("tk,tkl,tl->t", weights, self.gram, weights)
        loss: Series = square - 2.0 * np.einsum("tk,tk->t", weights, self.covariance)
        return loss


def measure_moments(ranks: Sequence[Frame] | NDArray[np.floating], labels: NDArray[np.floating]) -> RankMoments:
    """Return the second moments of factors and labels.

    Parameters
    ----------
    ranks
        K frames ``[T, N]`` from `standard_ranks`, NaN missing.
    labels
        Labels ``[T, N]``, NaN where there is none; only their order within a day matters.
    """
    target = standard_ranks(labels)
    has_label = ~np.isnan(target)
    count = has_label.sum(axis=1)
    names = np.where(count >= MIN_MOMENT_NAMES, count, 0)
    days, size = len(target), len(ranks)
    gram, covariance = np.zeros((days, size, size)), np.zeros((days, size))
    for day in np.flatnonzero(names):
        row = has_label[day]
        day_ranks = np.nan_to_num(np.stack([frame[day][row] for frame in ranks]).astype(np.float64))
        gram[day] = day_ranks @ day_ranks.T / names[day]
        covariance[day] = day_ranks @ target[day][row] / names[day]
    return RankMoments(gram, covariance, names.astype(np.float64))


def standard_ranks(values: NDArray[np.floating]) -> Frame:
    """Return each day's percentile ranks, centred at 0 with deviation 1, ``[T, N]``; NaN stays NaN."""
    ranks = RANK_SCALE * (rank_rows(np.ascontiguousarray(values)) - 0.5)
    return ranks.astype(np.float32)


def last_known_rows(allowed: NDArray[np.bool_], horizon: int) -> NDArray[np.int64]:
    """Return the last row that each day may learn from, ``[T]``, -1 where there is none.

    The label of row s ends at the open of s + 1 + `horizon`, so it is known from the close of that day on. Rows that
    are not `allowed` (``[T]``) are not learnt from.
    """
    rows = np.where(allowed, np.arange(len(allowed)), -1)
    last = np.full(len(allowed), -1, dtype=np.int64)
    if len(allowed) > horizon + 1:
        last[horizon + 1 :] = np.maximum.accumulate(rows)[: -horizon - 1]
    return last
