"""Acquisition: forecasts of unscored formulas from the scored ones, and the worth of scoring them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .gaussian_process import GaussianProcess, explained_share, lengths
from .matching_pursuit import MAX_LEADER_CORRELATION, marginal_contribution

Frame = NDArray[np.float64]

KNOWN_OFFSET = 0.1
"""Added to the known share of a formula, so that a small share does not inflate its worth."""
NODE_T = 0.15
"""Price of each node of a formula, in standard errors of RankIC."""
MIN_WORTH_SCALE = 1e-12


@dataclass(frozen=True, eq=False)
class BasisComparison:
    """``M`` formulas, compared with the basis of the scored ones.

    Attributes
    ----------
    basis : GaussianProcess
        The process of the ``K`` scored formulas.
    ranks : NDArray[np.float32]
        ``[M, cells]``: ranks of the formulas.
    thin : NDArray[np.bool_]
        ``[M]``: True where too few names have a value, or too many have the same.
    size : NDArray
        ``[M]``: nodes.
    across : NDArray[np.float64]
        ``[M, K]``: rank correlations with the scored formulas.
    """

    basis: GaussianProcess
    ranks: NDArray[np.float32]
    thin: NDArray[np.bool_]
    size: NDArray[np.int64]
    across: Frame

    @cached_property
    def coordinates(self) -> Frame:
        """Return the coordinates of the formulas in the basis, ``[K, M]``; see `GaussianProcess.decorrelate`."""
        return self.basis.decorrelate(self.across)

    @cached_property
    def known(self) -> Frame:
        """Return the share of their ranks that the scored formulas explain, ``[M]``."""
        return explained_share(self.coordinates)

    @cached_property
    def rank_ic(self) -> Frame:
        """Return the expected mean RankICs, ``[M]``."""
        return self.basis.forecast(self.across)

    @cached_property
    def nearest(self) -> NDArray[np.intp]:
        """Return the place of the scored formula most correlated with each, ``[M]``; -1 without scored formulas."""
        return np.abs(self.across).argmax(axis=1) if self.basis.ids else np.full(len(self.thin), -1)

    @cached_property
    def near(self) -> Frame:
        """Return the signed rank correlation with that one, ``[M]``."""
        return self.across[np.arange(len(self.thin)), self.nearest] if self.basis.ids else np.zeros(len(self.thin))

    def promise(self, kept_place: int = -1) -> Forecast:
        """Return the forecast without the leaders' part; leaders similar to `kept_place` stay (-1: none)."""
        plain = self.rank_ic / self.basis.unit
        adds, left = promise_beside_leaders(self.basis, self.across, kept_place)
        share = np.maximum(self.known - (1.0 - left), 0.0)
        return Forecast(
            adds * self.basis.unit, self._compute_worth(adds, share), self._compute_worth(plain, self.known)
        )

    def _compute_worth(self, promised: Frame, known: Frame) -> Frame:
        return np.asarray(promised / np.sqrt(known + KNOWN_OFFSET), np.float64)

    @property
    def price(self) -> Frame:
        """Return the price of their nodes, ``[M]``, in t."""
        return np.asarray(NODE_T * self.size, np.float64)

    @cached_property
    def information(self) -> Frame:
        """Return the information of their scores about the candidate pool, ``[M]``; see `measure_information`."""
        return self.basis.measure_information(self.ranks, self.coordinates)


@dataclass(frozen=True, eq=False)
class Forecast:
    """Forecasts of formulas.

    Attributes
    ----------
    rank_ic : NDArray[np.float64]
        ``[M]``: expected RankIC beside the leaders.
    beside, at_all : NDArray[np.float64]
        ``[M]``: the t of the whole formula if its unknown part were like its known part; beside the leaders, and alone.
    """

    rank_ic: Frame
    beside: Frame
    at_all: Frame


def promise_beside_leaders(basis: GaussianProcess, across: Frame, kept_place: int = -1) -> tuple[Frame, Frame]:
    """Return the expected t of formulas after removing the leaders' part, and the share of ranks that is left.

    Parameters
    ----------
    basis
        The process of the ``K`` scored formulas, with the leaders.
    across
        Rank correlations of the formulas with the scored ones ``[M, K]``.
    kept_place
        Place of a scored formula; leaders similar to it are kept. -1 removes all leaders.

    Returns
    -------
    tuple
        Expected t and share of ranks, both ``[M]``.
    """
    plain = basis.forecast(across) / basis.unit
    others = [
        place
        for place in basis.leading
        if kept_place < 0 or np.abs(basis.dictionary.alike[kept_place, place]) < MAX_LEADER_CORRELATION
    ]
    return marginal_contribution(plain, across, basis.dictionary, others) if others else (plain, np.ones(len(plain)))


def rank_places(worth: Frame, fits: NDArray[np.bool_]) -> list[int]:
    """Return the places that fit, in falling order of worth; ties go to the first."""
    scaled = worth / max(float(np.abs(worth).max(initial=0.0)), MIN_WORTH_SCALE)
    return [int(place) for place in np.argsort(-np.round(scaled, 6), kind="stable") if fits[place]]


def choose_dissimilar(
    orders: Sequence[Sequence[int]], ranks: NDArray[np.float32], count: int, alike: float
) -> list[int]:
    """Return up to `count` places with correlations below `alike`: the first free one of each order in turn."""
    chosen: list[int] = []
    norms = lengths(ranks)

    def is_dissimilar(place: int) -> bool:
        near = np.abs(ranks[chosen] @ ranks[place]) / (norms[chosen] * norms[place])
        return place not in chosen and not (near >= alike).any()

    queues = [iter(order) for order in orders]
    while queues and len(chosen) < count:
        queue = queues.pop(0)
        place = next((candidate for candidate in queue if not chosen or is_dissimilar(candidate)), None)
        if place is not None:
            chosen.append(place)
            queues.append(queue)
    return chosen
