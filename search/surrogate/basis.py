"""The scored formulas that forecasts rest on, and what follows from them all at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...factors import Expression
from .matching_pursuit import NOISE_VARIANCE_SHARE, Dictionary, choose_leaders

Frame = NDArray[np.float64]

MAX_STRONGEST_FACTORS, MAX_OTHER_FACTORS = 1_000, 1_000
"""Scored factors that forecasts rest on: the strongest, and of the others the first by id, which are any: they tell where
nothing is.
"""
MAX_LEADERS = 16
"""Leaders that drafts are held against."""
MIN_NEIGHBOUR_CORRELATION, MAX_NEIGHBOURS = 0.45, 7
"""Absolute rank correlation with a leader from which a factor is its kin, and how many of them are told."""
CLEAR_T = 2.0
"""Absolute t from which RankIC over t tells how exact a mean RankIC of this panel is."""


class ScoredFormula(NamedTuple):
    """A formula with its mean RankIC on search and the t of it."""

    expression: Expression
    rank_ic: float
    t: float


@dataclass(frozen=True, eq=False)
class Basis:
    """What scored formulas say between them; nothing is worked out before it is asked for.

    Attributes
    ----------
    ids, scored : sequence
        The formulas, ``K`` of them, in the order of their ids.
    looks : NDArray[np.float32]
        ``[K, cells]``: their ranks.
    products : NDArray[np.float32]
        ``[K, K]``: of each with each.
    others : NDArray[np.float32]
        ``[J, cells]``: ranks of formulas that stand for all that could be written.
    reach : NDArray[np.float32]
        ``[K, J]``: products of the scored ones with those.
    """

    ids: tuple[str, ...] = ()
    scored: tuple[ScoredFormula, ...] = ()
    looks: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    products: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    others: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    reach: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))

    def facing(self, others: NDArray[np.float32]) -> Basis:
        """Return the same with other formulas to stand for all that could be written."""
        if others is self.others:
            return self
        reach = self.looks @ others.T if self.ids else np.zeros((0, len(others)), np.float32)
        return replace(self, others=others, reach=reach)

    def joined(self, names: Sequence[str], scored: Sequence[ScoredFormula], ranks: NDArray[np.float32]) -> Basis:
        """Return what is known with further formulas: where there are too many the same ones, whenever they came."""
        old = len(self.ids)
        looks = np.vstack([self.looks, ranks]) if old else ranks
        across = ranks @ looks.T
        products = np.zeros((len(looks), len(looks)), np.float32)
        products[:old, :old] = self.products
        products[old:, :], products[:, old:] = across, across.T
        ids, rows = (*self.ids, *names), (*self.scored, *scored)
        order = sorted(range(len(ids)), key=lambda at: (-abs(rows[at].rank_ic), ids[at]))
        others = sorted(order[MAX_STRONGEST_FACTORS:], key=ids.__getitem__)[:MAX_OTHER_FACTORS]
        keep = sorted([*order[:MAX_STRONGEST_FACTORS], *others], key=ids.__getitem__)
        kept = np.ascontiguousarray(products[np.ix_(keep, keep)])
        seen = ranks @ self.others.T if len(self.others) else np.zeros((len(names), 0), np.float32)
        reach = np.vstack([self.reach, seen]) if old else seen
        return Basis(
            tuple(ids[at] for at in keep), tuple(rows[at] for at in keep), looks[keep], kept, self.others, reach[keep]
        )

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Return the place of each id."""
        return {name: place for place, name in enumerate(self.ids)}

    @cached_property
    def lengths(self) -> Frame:
        """Return the lengths of the ranks, ``[K]``."""
        return np.sqrt(np.diag(self.products).astype(np.float64))

    @cached_property
    def rank_ic(self) -> Frame:
        """Return the mean RankICs, ``[K]``."""
        return np.array([one.rank_ic for one in self.scored])

    @cached_property
    def unit(self) -> float:
        """Return the standard error of a mean RankIC on this panel: that of the median factor with a clear t."""
        clear = [abs(one.rank_ic / one.t) for one in self.scored if abs(one.t) >= CLEAR_T]
        return float(np.median(clear)) if clear else 1.0

    @cached_property
    def dictionary(self) -> Dictionary:
        """Return what leaders are chosen from."""
        size = np.array([one.expression.core.size for one in self.scored])
        return Dictionary(self.rank_ic / self.unit, size, self.products / np.outer(self.lengths, self.lengths))

    @cached_property
    def _cholesky_factor(self) -> tuple[Frame, bool]:
        """Return the Cholesky factor of the covariance."""
        from scipy.linalg import cho_factor

        return cho_factor(self.dictionary.alike + NOISE_VARIANCE_SHARE * np.eye(len(self.ids)), lower=True)

    @cached_property
    def weights(self) -> Frame:
        """Return the weights of the scored RankICs in a forecast, ``[K]``."""
        from scipy.linalg import cho_solve

        return np.asarray(cho_solve(self._cholesky_factor, self.rank_ic), np.float64)

    def expected(self, across: Frame) -> Frame:
        """Return the mean RankICs that the scored ones let expect of others, ``[M]``, from ``[M, K]`` correlations."""
        return np.asarray(across @ self.weights, np.float64) if self.ids else np.zeros(len(across))

    def apart(self, across: Frame) -> Frame:
        """Return coordinates of other formulas in which these are no longer alike, ``[K, M]``, from ``[M, K]`` correlations.

        Their squares add up to the share of a formula's ranks that these explain.
        """
        if not self.ids:
            return np.zeros((0, len(across)))
        from scipy.linalg import solve_triangular

        return np.asarray(solve_triangular(self._cholesky_factor[0], across.T, lower=True), np.float64)

    @cached_property
    def _reference_coordinates(self) -> Frame:
        """Return the coordinates of what stands for all that could be written, ``[K, J]``."""
        return self.apart(self.reach.T / np.outer(lengths(self.others), self.lengths))

    def tells(self, ranks: NDArray[np.float32], coordinates: Frame) -> Frame:
        """Return how much of all that could be written, and is not known, the score of each formula would tell, ``[M]``.

        The mean share of variance by which what is not known of `others` would shrink (Cohn 1996, Neural Networks 9, 1071).
        A formula that is merely unlike all others tells of nothing but itself.

        Parameters
        ----------
        ranks : NDArray[np.float32]
            ``[M, cells]``: of the formulas.
        coordinates : NDArray[np.float64]
            ``[K, M]``: theirs, as `apart` returns them.
        """
        if not len(self.others):
            return np.zeros(len(ranks))
        alike = (ranks @ self.others.T) / np.outer(lengths(ranks), lengths(self.others))
        left = alike - coordinates.T @ self._reference_coordinates
        return np.asarray(
            (left**2).mean(axis=1) / (1.0 - explained_share(coordinates) + NOISE_VARIANCE_SHARE), np.float64
        )

    @cached_property
    def leading(self) -> Mapping[int, float]:
        """Return the places of the leaders with what each adds to the others, in t."""
        return choose_leaders(self.dictionary, MAX_LEADERS) if self.ids else {}

    def across(self, ranks: NDArray[np.float32]) -> Frame:
        """Return the rank correlations of other formulas with these, ``[M, K]``."""
        if not self.ids or not len(ranks):
            return np.zeros((len(ranks), len(self.ids)))
        return self.correlations(ranks @ self.looks.T, ranks)

    def correlations(self, products: NDArray[np.float32], ranks: NDArray[np.float32]) -> Frame:
        """Return rank correlations, ``[M, K]``, from the products of other formulas' ranks with these and those ranks."""
        return np.asarray(products / np.outer(lengths(ranks), self.lengths), np.float64)

    def kin(self, place: int) -> tuple[str, ...]:
        """Return the strongest formulas that are like one."""
        alike, worth = np.abs(self.dictionary.alike[place]), np.abs(self.rank_ic)
        near = [at for at in range(len(self.ids)) if at != place and alike[at] >= MIN_NEIGHBOUR_CORRELATION]
        near.sort(key=lambda at: (-round(float(worth[at] * alike[at]), 6), self.ids[at]))
        return tuple(self.ids[at] for at in near[:MAX_NEIGHBOURS])


def explained_share(coordinates: Frame) -> Frame:
    """Return how much of formulas' ranks is explained, 0 to 1, ``[M]``, from their coordinates ``[K, M]``."""
    return np.asarray(np.clip(np.einsum("ij,ij->j", coordinates, coordinates), 0.0, 1.0), np.float64)


def lengths(ranks: NDArray[np.float32]) -> Frame:
    """Return the length of each row, at least 1."""
    squares: Frame = np.einsum("ij,ij->i", ranks, ranks).astype(np.float64)
    return np.sqrt(np.maximum(squares, 1.0))
