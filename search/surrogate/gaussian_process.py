"""The scored formulas on which forecasts rest, and the quantities derived from all of them together."""

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
"""Scored factors on which forecasts rest: the strongest, and of the others the first by id, a random sample, which
shows where RankIC is near zero.
"""
MAX_LEADERS = 16
"""Most leaders that drafts are compared with."""
MIN_NEIGHBOUR_CORRELATION, MAX_NEIGHBOURS = 0.45, 7
"""Least absolute rank correlation of a leader with its neighbours, and most neighbours that are shown."""
CLEAR_T = 2.0
"""Least absolute t with which RankIC over t measures the standard error of a mean RankIC on this panel."""


class ScoredFormula(NamedTuple):
    """A formula with its mean RankIC on search and the t of it."""

    expression: Expression
    rank_ic: float
    t: float


@dataclass(frozen=True, eq=False)
class GaussianProcess:
    """The scored formulas of a forecast; derived quantities are computed on demand.

    Attributes
    ----------
    ids, scored : sequence
        The ``K`` formulas, in the order of their ids.
    ranks : NDArray[np.float32]
        ``[K, cells]``: their ranks.
    products : NDArray[np.float32]
        ``[K, K]``: products of the ranks of each pair.
    others : NDArray[np.float32]
        ``[J, cells]``: ranks of the reference formulas, which represent the candidate pool.
    reach : NDArray[np.float32]
        ``[K, J]``: products of the ranks of scored and reference formulas.
    """

    ids: tuple[str, ...] = ()
    scored: tuple[ScoredFormula, ...] = ()
    ranks: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    products: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    others: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    reach: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))

    def with_references(self, others: NDArray[np.float32]) -> GaussianProcess:
        """Return the basis with other reference formulas."""
        if others is self.others:
            return self
        reach = self.ranks @ others.T if self.ids else np.zeros((0, len(others)), np.float32)
        return replace(self, others=others, reach=reach)

    def with_formulas(
        self, names: Sequence[str], scored: Sequence[ScoredFormula], ranks: NDArray[np.float32]
    ) -> GaussianProcess:
        """Return the basis with further formulas; which ones stay does not depend on the order of arrival."""
        old = len(self.ids)
        all_ranks = np.vstack([self.ranks, ranks]) if old else ranks
        across = ranks @ all_ranks.T
        products = np.zeros((len(all_ranks), len(all_ranks)), np.float32)
        products[:old, :old] = self.products
        products[old:, :], products[:, old:] = across, across.T
        ids, rows = (*self.ids, *names), (*self.scored, *scored)
        order = sorted(range(len(ids)), key=lambda place: (-abs(rows[place].rank_ic), ids[place]))
        others = sorted(order[MAX_STRONGEST_FACTORS:], key=ids.__getitem__)[:MAX_OTHER_FACTORS]
        keep = sorted([*order[:MAX_STRONGEST_FACTORS], *others], key=ids.__getitem__)
        kept_products = np.ascontiguousarray(products[np.ix_(keep, keep)])
        reference_products = ranks @ self.others.T if len(self.others) else np.zeros((len(names), 0), np.float32)
        reach = np.vstack([self.reach, reference_products]) if old else reference_products
        return GaussianProcess(
            tuple(ids[place] for place in keep),
            tuple(rows[place] for place in keep),
            all_ranks[keep],
            kept_products,
            self.others,
            reach[keep],
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
        return np.array([formula.rank_ic for formula in self.scored])

    @cached_property
    def unit(self) -> float:
        """Return the standard error of a mean RankIC on this panel: the median over factors with a clear t, else 1."""
        errors = [abs(formula.rank_ic / formula.t) for formula in self.scored if abs(formula.t) >= CLEAR_T]
        return float(np.median(errors)) if errors else 1.0

    @cached_property
    def dictionary(self) -> Dictionary:
        """Return the dictionary for the choice of leaders."""
        size = np.array([formula.expression.core.size for formula in self.scored])
        return Dictionary(self.rank_ic / self.unit, size, self.products / np.outer(self.lengths, self.lengths))

    @cached_property
    def _cholesky_factor(self) -> tuple[Frame, bool]:
        """Return the Cholesky factor of the covariance, which is the rank correlations plus noise."""
        from scipy.linalg import cho_factor

        return cho_factor(self.dictionary.alike + NOISE_VARIANCE_SHARE * np.eye(len(self.ids)), lower=True)

    @cached_property
    def weights(self) -> Frame:
        """Return the weights of the scored RankICs in a forecast, ``[K]``."""
        from scipy.linalg import cho_solve

        return np.asarray(cho_solve(self._cholesky_factor, self.rank_ic), np.float64)

    def forecast(self, across: Frame) -> Frame:
        """Return the expected mean RankICs ``[M]`` of formulas, from their correlations with the basis ``[M, K]``."""
        return np.asarray(across @ self.weights, np.float64) if self.ids else np.zeros(len(across))

    def decorrelate(self, across: Frame) -> Frame:
        """Return the coordinates of formulas in the decorrelated basis, ``[K, M]``, from correlations ``[M, K]``.

        Their squares add up to the share of a formula's ranks that the basis explains.
        """
        if not self.ids:
            return np.zeros((0, len(across)))
        from scipy.linalg import solve_triangular

        return np.asarray(solve_triangular(self._cholesky_factor[0], across.T, lower=True), np.float64)

    @cached_property
    def _reference_coordinates(self) -> Frame:
        """Return the coordinates of the reference formulas, ``[K, J]``."""
        return self.decorrelate(self.reach.T / np.outer(lengths(self.others), self.lengths))

    def measure_information(self, ranks: NDArray[np.float32], coordinates: Frame) -> Frame:
        """Return the information that the score of each formula would give about the candidate pool, ``[M]``.

        This is the mean share of variance by which the unexplained part of `others` would shrink (Cohn 1996, Neural
        Networks 9, 1071). A formula that is merely unlike all others informs only about itself.

        Parameters
        ----------
        ranks : NDArray[np.float32]
            ``[M, cells]``: ranks of the formulas.
        coordinates : NDArray[np.float64]
            ``[K, M]``: their coordinates, from `decorrelate`.
        """
        if not len(self.others):
            return np.zeros(len(ranks))
        correlation = (ranks @ self.others.T) / np.outer(lengths(ranks), lengths(self.others))
        residual = correlation - coordinates.T @ self._reference_coordinates
        return np.asarray(
            (residual**2).mean(axis=1) / (1.0 - explained_share(coordinates) + NOISE_VARIANCE_SHARE), np.float64
        )

    @cached_property
    def leading(self) -> Mapping[int, float]:
        """Return the places of the leaders, each with its contribution beside the others, in t."""
        return choose_leaders(self.dictionary, MAX_LEADERS) if self.ids else {}

    def across(self, ranks: NDArray[np.float32]) -> Frame:
        """Return the rank correlations of formulas with the basis, ``[M, K]``, from their ranks ``[M, cells]``."""
        if not self.ids or not len(ranks):
            return np.zeros((len(ranks), len(self.ids)))
        return self.correlations(ranks @ self.ranks.T, ranks)

    def correlations(self, products: NDArray[np.float32], ranks: NDArray[np.float32]) -> Frame:
        """Return rank correlations ``[M, K]`` from products ``[M, K]`` with the basis and ranks ``[M, cells]``."""
        return np.asarray(products / np.outer(lengths(ranks), self.lengths), np.float64)

    def kin(self, place: int) -> tuple[str, ...]:
        """Return the ids of the strongest formulas that are correlated with one."""
        correlation, worth = np.abs(self.dictionary.alike[place]), np.abs(self.rank_ic)
        near = [
            other
            for other in range(len(self.ids))
            if other != place and correlation[other] >= MIN_NEIGHBOUR_CORRELATION
        ]
        near.sort(key=lambda other: (-round(float(worth[other] * correlation[other]), 6), self.ids[other]))
        return tuple(self.ids[other] for other in near[:MAX_NEIGHBOURS])


def explained_share(coordinates: Frame) -> Frame:
    """Return the explained share of formulas' ranks ``[M]``, 0 to 1, from their coordinates ``[K, M]``."""
    return np.asarray(np.clip(np.einsum("ij,ij->j", coordinates, coordinates), 0.0, 1.0), np.float64)


def lengths(ranks: NDArray[np.float32]) -> Frame:
    """Return the Euclidean length of each row ``[M]`` of ranks ``[M, cells]``, at least 1."""
    squares: Frame = np.einsum("ij,ij->i", ranks, ranks).astype(np.float64)
    return np.sqrt(np.maximum(squares, 1.0))
