"""Formulas held against those that were scored: what these let expect of them, and what that is worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .basis import Basis, explained_share, lengths
from .matching_pursuit import MAX_LEADER_CORRELATION, marginal_contribution

Frame = NDArray[np.float64]

KNOWN_OFFSET = 0.1
"""Added to how much of a formula is known, so that little is not blown up."""
NODE_T = 0.15
"""Standard errors of RankIC that a further node of a formula must promise."""
MIN_WORTH_SCALE = 1e-12


@dataclass(frozen=True, eq=False)
class BasisComparison:
    """Formulas, ``M`` of them, and the basis that they are held against.

    Attributes
    ----------
    basis : Basis
        Of the scored ones, ``K``.
    ranks : NDArray[np.float32]
        ``[M, cells]``: theirs.
    thin : NDArray[np.bool_]
        ``[M]``: too few names have a value, or too many have the same.
    size : NDArray
        ``[M]``: nodes.
    across : NDArray[np.float64]
        ``[M, K]``: rank correlations with the scored ones.
    """

    basis: Basis
    ranks: NDArray[np.float32]
    thin: NDArray[np.bool_]
    size: NDArray[np.int64]
    across: Frame

    @cached_property
    def coordinates(self) -> Frame:
        """Return them as `Basis.apart` does, ``[K, M]``."""
        return self.basis.apart(self.across)

    @cached_property
    def known(self) -> Frame:
        """Return how much of their ranks the scored ones explain, ``[M]``."""
        return explained_share(self.coordinates)

    @cached_property
    def rank_ic(self) -> Frame:
        """Return the mean RankICs that scored ones let expect, ``[M]``."""
        return self.basis.expected(self.across)

    @cached_property
    def nearest(self) -> NDArray[np.intp]:
        """Return the place of the scored formula that each is most like, ``[M]``; -1 where there is none."""
        return np.abs(self.across).argmax(axis=1) if self.basis.ids else np.full(len(self.thin), -1)

    @cached_property
    def near(self) -> Frame:
        """Return the signed rank correlation with that one, ``[M]``."""
        return self.across[np.arange(len(self.thin)), self.nearest] if self.basis.ids else np.zeros(len(self.thin))

    def promise(self, own: int = -1) -> Forecast:
        """Return what they promise beside the leaders that are unlike the one at place `own`; -1: beside all."""
        plain = self.rank_ic / self.basis.unit
        adds, left = promise_beside_leaders(self.basis, self.across, own)
        known = np.maximum(self.known - (1.0 - left), 0.0)
        return Forecast(adds * self.basis.unit, self._worth(adds, known), self._worth(plain, self.known))

    def _worth(self, promised: Frame, known: Frame) -> Frame:
        return np.asarray(promised / np.sqrt(known + KNOWN_OFFSET), np.float64)

    @property
    def price(self) -> Frame:
        """Return what their nodes cost, ``[M]``, in t."""
        return np.asarray(NODE_T * self.size, np.float64)

    @cached_property
    def tells(self) -> Frame:
        """Return what their scores would tell of all that could be written, ``[M]``; see `Basis.tells`."""
        return self.basis.tells(self.ranks, self.coordinates)


@dataclass(frozen=True, eq=False)
class Forecast:
    """What formulas promise.

    Attributes
    ----------
    rank_ic : NDArray[np.float64]
        ``[M]``: expected beside the leaders.
    beside, at_all : NDArray[np.float64]
        ``[M]``: what all of a formula would show, in t, were the rest like the part that is known; beside the leaders, and
        alone.
    """

    rank_ic: Frame
    beside: Frame
    at_all: Frame


def promise_beside_leaders(basis: Basis, across: Frame, own: int = -1) -> tuple[Frame, Frame]:
    """Return the t that formulas promise beside the leaders that are unlike the one at place `own`; -1: beside all.

    Also the share of their ranks that those leaders leave; both ``[M]``, from their rank correlations ``[M, K]``.
    """
    plain = basis.expected(across) / basis.unit
    others = [at for at in basis.leading if own < 0 or np.abs(basis.dictionary.alike[own, at]) < MAX_LEADER_CORRELATION]
    return marginal_contribution(plain, across, basis.dictionary, others) if others else (plain, np.ones(len(plain)))


def rank_places(worth: Frame, fits: NDArray[np.bool_]) -> list[int]:
    """Return the places that fit, the most worthy first; ties go to the first."""
    told = worth / max(float(np.abs(worth).max(initial=0.0)), MIN_WORTH_SCALE)
    return [int(place) for place in np.argsort(-np.round(told, 6), kind="stable") if fits[place]]


def choose_dissimilar(
    orders: Sequence[Sequence[int]], ranks: NDArray[np.float32], count: int, alike: float
) -> list[int]:
    """Return places whose ranks correlate less than `alike`, from the orders in turn: of each its first still to be had."""
    chosen: list[int] = []
    norms = lengths(ranks)

    def fresh(place: int) -> bool:
        near = np.abs(ranks[chosen] @ ranks[place]) / (norms[chosen] * norms[place])
        return place not in chosen and not (near >= alike).any()

    queues = [iter(each) for each in orders]
    while queues and len(chosen) < count:
        queue = queues.pop(0)
        place = next((each for each in queue if not chosen or fresh(each)), None)
        if place is not None:
            chosen.append(place)
            queues.append(queue)
    return chosen
