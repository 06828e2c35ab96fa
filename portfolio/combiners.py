"""How accepted factors are weighed: equally, by ridge regression, or adapted to what is recent and to the market's state.

Every combiner answers one question, the weight of each factor at the close of each day, from the same small record
(`moments.py`). The weights of day t rest on labels that ended by t, of days that it may learn from, and on nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from .moments import RankMoments, last_known_rows

__all__ = [
    "COMBINER_KINDS",
    "Combiner",
    "CombinerKind",
    "Equal",
    "Ridge",
    "combiner",
    "equal_weights",
    "expanding_sums",
]

Series = NDArray[np.float64]
Flags = NDArray[np.bool_]
CombinerKind = Literal["equal", "ridge", "adaptive"]

COMBINER_KINDS: tuple[CombinerKind, ...] = ("equal", "ridge", "adaptive")
MIN_KNOWN_DAYS = 60
"""Known days before which nothing is learnt: weights are equal."""
STRENGTHS = (5.0, 20.0, 80.0, 320.0, 1280.0)
"""Candidates for the strength of ridge, in days of evidence."""


class Combiner(Protocol):
    """Weighs factors. Frozen, without memory: equal moments, equal weights."""

    @property
    def name(self) -> CombinerKind:
        """Return what settings call it."""
        ...

    def weights(self, moments: RankMoments, allowed: Flags, states: Series | None = None) -> Series:
        """Return the weight of each factor at the close of each day, ``[T, K]``, absolute ones adding up to 1.

        Parameters
        ----------
        moments
            Of the factors, turned so that more is better.
        allowed
            ``[T]``: days whose labels may be learnt from. Weights of later days rest on what was learnt by then.
        states
            ``[S, T]`` as of `market_state.market_states`; None learns nothing of the market's state.
        """
        ...


@dataclass(frozen=True)
class Equal:
    """All factors weigh the same."""

    name: CombinerKind = "equal"

    def weights(self, moments: RankMoments, allowed: Flags, states: Series | None = None) -> Series:
        """Return equal weights."""
        return equal_weights(moments)


@dataclass(frozen=True)
class Ridge:
    """Ridge regression of label ranks on factor ranks, over all days known so far.

    Attributes
    ----------
    horizon
        Days of the label.
    strengths
        Candidates, each in days: that of the smallest squared error in walk-forward so far is taken, every day anew. The
        error of a day counts once its label has ended, so the walk is purged by `horizon` + 1 days.
    """

    horizon: int
    strengths: tuple[float, ...] = STRENGTHS
    name: CombinerKind = "ridge"

    def weights(self, moments: RankMoments, allowed: Flags, states: Series | None = None) -> Series:
        """Return the weights of the strength that did best so far."""
        last = last_known_rows(allowed, self.horizon)
        gram, covariance = expanding_sums(moments, allowed, last)
        tried = [_ridge(gram, covariance, each) for each in self.strengths]
        losses = np.stack([moments.loss(each) for each in tried])
        so_far = np.cumsum(np.where(allowed, losses * moments.names, 0.0), axis=1)
        best = np.argmin(np.where(last >= 0, so_far[:, last], 0.0), axis=0)
        found = np.stack(tried)[best, np.arange(moments.days)]
        return _scale_weights(found, moments, allowed, last)


def combiner(kind: CombinerKind, horizon: int) -> Combiner:
    """Return a combiner by its name, for labels of `horizon` days."""
    from .adaptive import Adaptive

    built: dict[CombinerKind, Combiner] = {"equal": Equal(), "ridge": Ridge(horizon), "adaptive": Adaptive(horizon)}
    return built[kind]


def equal_weights(moments: RankMoments) -> Series:
    """Return equal weights for every day, ``[T, K]``."""
    return np.full((moments.days, moments.factors), 1.0 / moments.factors)


def expanding_sums(moments: RankMoments, allowed: Flags, last: NDArray[np.int64]) -> tuple[Series, Series]:
    """Return sums of gram and covariance over all days known by each day, ``[T, K, K]`` and ``[T, K]``."""
    use = (allowed & (moments.names > 0)).astype(np.float64)
    gram = np.cumsum(moments.gram * use[:, None, None], axis=0)[last]
    covariance = np.cumsum(moments.covariance * use[:, None], axis=0)[last]
    none = last < 0
    gram[none], covariance[none] = 0.0, 0.0
    return gram, covariance


def _ridge(gram: Series, covariance: Series, strength: float) -> Series:
    held = gram + strength * np.eye(gram.shape[1])
    return np.asarray(np.linalg.solve(held, covariance[..., None])[..., 0], dtype=np.float64)


def _scale_weights(weights: Series, moments: RankMoments, allowed: Flags, last: NDArray[np.int64]) -> Series:
    """Scale weights to an absolute sum of 1; equal where too little is known, or where all are 0."""
    known = np.cumsum(allowed & (moments.names > 0))
    total = np.abs(weights).sum(axis=1)
    usable = (last >= 0) & (known[last] >= MIN_KNOWN_DAYS) & (total > 0)
    return np.where(usable[:, None], weights / np.where(usable, total, 1.0)[:, None], equal_weights(moments))
