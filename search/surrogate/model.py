"""The surrogate model: forecasts of unscored formulas from the scored ones, without reading a return.

The mean RankIC of a factor is nearly linear in its ranks. The RankICs of all factors of a panel are therefore modelled
as one draw of a Gaussian process whose covariance is the rank correlation of their values (kriging with a linear
kernel). The scored factors then give the expected RankIC of an unscored one, and the share of it that they explain. A
forecast costs no evaluation. The gate's p-values are measured on other days and hold whatever the model chose; |t| on
search is biased upwards, since a choice by forecasts fits the luck of earlier scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...evidence import Window
from ...factors import Expression, FactorError
from ...market import Panel
from .acquisition import BasisComparison, Forecast, choose_dissimilar, promise_beside_leaders, rank_places
from .candidate_pool import CrossProducts, Sample, Samples
from .gaussian_process import GaussianProcess, ScoredFormula

Frame = NDArray[np.float64]

RANK_IC_DECIMALS = 3
"""Decimals of an expected RankIC: its error is in the third."""
NOVELTY_BONUS_T = 2.0
"""Bonus of an entirely unexplained change, in standard errors of RankIC: the spread of formulas."""
FIRST_BONUS_T = 1e3
"""Bonus of drafts that are to come first, more than any t."""
COPY_CORRELATION = 0.95
"""Absolute rank correlation with a scored factor at which a draft counts as its copy."""
NEWS_CORRELATION = 0.7
"""Absolute rank correlation with every scored factor below which a draft counts as new."""
TWIN_CORRELATION = 0.9
"""Absolute rank correlation of two drafts of which only one is chosen."""
NEAR_CORRELATION = 0.3
"""Least absolute rank correlation of a draft with the factor that it is to improve."""
UNEXPLORED_CORRELATION = 0.7
"""Absolute rank correlation at which only one of two unexplored formulas is shown."""
SHORTLIST = 1_500
"""Members of the pool whose worth is computed exactly, by promise and by information."""
SCORES_PER_TURN = 16
"""Scores after which the information of another part of the pool is computed."""
SURVEY_SHARE, MAX_SURVEY_SCORES, MIN_SURVEY_EVALUATIONS = 0.4, 800, 500
"""Exploration: share of a search, and most of its scores, that are chosen for information, whatever their promise.
Forecasts that rest on formulas chosen for promise overfit luck; after hundreds of other scores, true formulas stand
out. A search with fewer evaluations than `MIN_SURVEY_EVALUATIONS` does not explore.
"""
COMPARED_PER_TOLD = 8
"""So many times more of the best unexplored formulas are compared with each other than are shown."""


@dataclass(frozen=True)
class FormulaForecast:
    """The forecast of a formula.

    Attributes
    ----------
    rank_ic : float
        Expected mean RankIC.
    known : float
        Share of its ranks that the scored factors explain, from 0 to 1 (nearly a copy).
    nearest : str
        Id of the scored factor most correlated with it; empty without one.
    rank_correlation : float
        Signed rank correlation with that factor.
    thin : bool
        True where too few names have a value, or too many have the same.
    beside : float
        Expected RankIC beside the leaders of its run; see `SurrogateModel.choose`.
    """

    rank_ic: float
    known: float
    nearest: str
    rank_correlation: float
    thin: bool
    beside: float = 0.0

    def record(self) -> dict[str, Any]:
        """Return the JSON form, rounded, so that no later step depends on the last digits."""
        return {
            "rank_ic": round(self.rank_ic, RANK_IC_DECIMALS),
            "known": round(self.known, 2),
            "nearest": self.nearest,
            "rank_correlation": round(self.rank_correlation, 2),
            "thin": self.thin,
            "beside": round(self.beside, RANK_IC_DECIMALS),
        }


@dataclass(frozen=True)
class UnexploredFormula:
    """The text of a formula that is not written yet, and its forecast."""

    text: str
    foreseen: FormulaForecast

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        forecast = self.foreseen.record()
        return {"text": self.text, **{name: forecast[name] for name in ("rank_ic", "beside", "known")}}


@dataclass(frozen=True)
class Leader:
    """A scored factor with its expected RankIC alone and beside the other leaders.

    `kin` are the scored factors correlated with it, the strongest first.
    """

    id: str
    rank_ic: float
    beside: float
    kin: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return the JSON form, rounded as `FormulaForecast.record`."""
        return {
            "id": self.id,
            "rank_ic": round(self.rank_ic, RANK_IC_DECIMALS),
            "beside": round(self.beside, RANK_IC_DECIMALS),
            "kin": list(self.kin),
        }


class SurrogateModel:
    """Forecasts of one run, for formulas only: the values of Python code are unknown before it runs."""

    def __init__(self, sample: Sample, surveys: int = 0) -> None:
        self._subsample = sample.thin
        self._pool = sample.population
        self._survey_scores = surveys
        self._lock = sample.turn
        self._basis = GaussianProcess()
        self._cross_products = CrossProducts(sample.population)
        self._learnt: set[str] = set()

    @classmethod
    def of(
        cls, panel: Panel, window: Window, fields: Sequence[str], evaluations: int = 0, samples: Samples | None = None
    ) -> SurrogateModel:
        """Return a model of a panel without any score; it reads no day after the window.

        `fields` are the columns that formulas may read, `evaluations` is the budget of scores (see `SURVEY_SHARE`), and
        `samples` is shared with other runs.
        """
        surveys = (
            min(round(SURVEY_SHARE * evaluations), MAX_SURVEY_SCORES) if evaluations >= MIN_SURVEY_EVALUATIONS else 0
        )
        return cls((samples or Samples()).sample(panel, window, fields), surveys)

    @property
    def surveying(self) -> bool:
        """True while the search is still exploring (first 40 % of evaluations, at most 800)."""
        return len(self._learnt) < self._survey_scores

    def __contains__(self, factor_id: object) -> bool:
        """Tell whether a factor was learnt; it may have left the basis since."""
        return factor_id in self._learnt

    def may_see(self, expression: Expression) -> bool:
        """Tell whether a formula may be forecast: it is not code, and reads no level that contains later days."""
        return not expression.code and not self._subsample.reads_price_level(expression)

    def learn(self, scored: Mapping[str, ScoredFormula]) -> None:
        """Learn scored formulas by id; Python code and ids that were learnt before are skipped."""
        with self._lock:
            fresh = [name for name in scored if name not in self._learnt]
            self._learnt.update(fresh)
            fresh = [name for name in fresh if not scored[name].expression.code]
            fingerprints = self._subsample.fingerprint([scored[name].expression for name in fresh])
            ordering = [
                (name, fingerprint.ranks)
                for name, fingerprint in zip(fresh, fingerprints, strict=True)
                if fingerprint.ranks.any()
            ]
            if ordering:
                names = [name for name, _ in ordering]
                ranks = np.array([ranks for _, ranks in ordering])
                self._basis = self._basis.with_formulas(names, [scored[name] for name in names], ranks)

    def choose(
        self, expressions: Sequence[Expression], count: int, direction: int = 0, like: str = ""
    ) -> tuple[list[FormulaForecast], list[int]]:
        """Return the forecasts of drafts, and the places of the `count` drafts most worth scoring, best first.

        The promise of a draft is its forecast over the square root of its known share: the t of the whole draft if the
        unknown part were like the known part. The part that leaders explain is removed from both, and each node has a
        price. Choices alternate between the promise beside the leaders and the information of a score about the
        candidate pool; see `GaussianProcess.measure_information`.

        For drafts that are to improve a scored factor, every other choice is by the promise without removing leaders,
        among new drafts: a leader that is a blend explains the very formulas of which it is a blend, until one of those
        is scored. The unknown share of such a draft earns a bonus.

        Parameters
        ----------
        expressions : sequence of Expression
            The drafts.
        count : int
            Number to choose; fewer are chosen where the rest are thin, or copies of scored or chosen formulas.
        direction : {1, -1, 0}
            Wanted sign of the RankIC; 0 for either.
        like : str
            Id of a scored factor that drafts are to improve. Drafts correlated with it come first, and only leaders
            unlike it are removed. An unknown id counts as none.

        Raises
        ------
        FactorError
            A draft is Python code.
        """
        if not expressions:
            return [], []
        with self._lock:
            basis = self._update_reference()
            comparison, like_place = self._compare(basis, expressions), basis.places.get(like, -1)
            promise, price = comparison.promise(like_place), comparison.price
            fits = ~comparison.thin & (np.abs(comparison.near) < COPY_CORRELATION)
            if like_place >= 0:
                first = fits & (np.abs(comparison.across[:, like_place]) >= NEAR_CORRELATION)
                price = price - NOVELTY_BONUS_T * np.sqrt(1.0 - comparison.known) - FIRST_BONUS_T * first
            orders = [rank_places(_apply_direction(direction, promise.beside) - price, fits)]
            if like_place >= 0:
                orders.append(
                    rank_places(
                        _apply_direction(direction, promise.at_all) - price,
                        fits & (np.abs(comparison.near) < NEWS_CORRELATION),
                    )
                )
            if not like and not direction and self.surveying:
                orders = [rank_places(comparison.information, fits)]
            elif not like:
                orders.append(rank_places(comparison.information, fits))
                if len(self._learnt) % 2:  # so that both orders are used when one draft is chosen at a time
                    orders.reverse()
            forecasts = [_make_forecast(comparison, promise, place) for place in range(len(expressions))]
            return forecasts, choose_dissimilar(orders, comparison.ranks, count, TWIN_CORRELATION)

    def unexplored(self, limit: int) -> list[UnexploredFormula]:
        """Return the unwritten formulas most worth a score, at most `limit`, no two of them similar.

        They come from the candidate pool, alternately by the promise beside the leaders and by the information of a
        score about the pool; see `choose`. No return is read.
        """
        with self._lock:
            basis = self._update_reference()
            size = self._pool.size(len(self._learnt))
            self._cross_products.update(basis)
            orders = [self._rank_by_information(basis, size)]
            if basis.ids and not self.surveying:
                orders.insert(0, self._rank_by_promise(basis, size))
            places = list(dict.fromkeys(chain(*orders)))
            row = {place: index for index, place in enumerate(places)}
            best = [[row[place] for place in order[: COMPARED_PER_TOLD * limit]] for order in orders]
            chosen = choose_dissimilar(best, self._pool.ranks(places), limit, UNEXPLORED_CORRELATION)
            members = [self._pool.members[places[index]] for index in chosen]
            comparison = self._compare(basis, members)
            promise = comparison.promise()
            return [
                UnexploredFormula(formula.text, _make_forecast(comparison, promise, index))
                for index, formula in enumerate(members)
            ]

    def _rank_by_promise(self, basis: GaussianProcess, size: int) -> list[int]:
        """Return places of the first members by promise; only the known shares of the best are computed."""
        adds = [
            promise_beside_leaders(basis, self._cross_products.across(basis, part))[0]
            for part in range(len(self._pool.parts))
        ]
        shortlist = np.argsort(-np.round(np.abs(np.concatenate(adds)[:size]), 6), kind="stable")[:SHORTLIST]
        places = sorted(int(place) for place in shortlist)
        comparison = self._compare_members(basis, places)
        return [
            places[index]
            for index in rank_places(
                np.abs(comparison.promise().beside) - comparison.price, self._find_fitting(comparison, places)
            )
        ]

    def _rank_by_information(self, basis: GaussianProcess, size: int) -> list[int]:
        """Return places of members by information, from a part of the first members that changes with the scores."""
        stride = max(-(-size // SHORTLIST), 1)
        places = list(range(len(self._learnt) // SCORES_PER_TURN % stride, size, stride))
        comparison = self._compare_members(basis, places)
        return [places[index] for index in rank_places(comparison.information, self._find_fitting(comparison, places))]

    def _find_fitting(self, comparison: BasisComparison, places: Sequence[int]) -> NDArray[np.bool_]:
        is_new = [self._pool.members[place].id not in self._learnt for place in places]
        return ~comparison.thin & (np.abs(comparison.near) < COPY_CORRELATION) & np.array(is_new, np.bool_)

    def _compare_members(self, basis: GaussianProcess, places: Sequence[int]) -> BasisComparison:
        """Compare members of the pool with the scored formulas."""
        sample = self._pool
        size = np.array([sample.members[place].core.size for place in places], np.int64)
        thin = np.array([sample.thin[place] for place in places], np.bool_)
        return BasisComparison(basis, sample.ranks(places), thin, size, self._cross_products.rows(basis, places))

    def _update_reference(self) -> GaussianProcess:
        """Return the basis with the current reference formulas."""
        self._basis = self._basis.with_references(self._pool.get_reference_ranks(len(self._learnt)))
        return self._basis

    def _compare(self, basis: GaussianProcess, expressions: Sequence[Expression]) -> BasisComparison:
        if any(expression.code for expression in expressions):
            raise FactorError("nothing can be foreseen of Python code", field="texts", hint="Score it.")
        fingerprints = self._subsample.fingerprint(expressions)
        ranks = np.array([fingerprint.ranks for fingerprint in fingerprints]).reshape(-1, self._subsample.cells)
        thin = np.array([fingerprint.thin for fingerprint in fingerprints], np.bool_)
        size = np.array([expression.core.size for expression in expressions], np.int64)
        return BasisComparison(basis, ranks, thin, size, basis.across(ranks))

    def leaders(self, limit: int) -> list[Leader]:
        """Return the fewest scored factors that explain the best results, at most `limit`, strongest first."""
        with self._lock:
            basis = self._basis
            leaders = [
                Leader(basis.ids[at], float(basis.rank_ic[at]), float(adds * basis.unit), basis.kin(at))
                for at, adds in basis.leading.items()
            ]
        return sorted(leaders, key=lambda leader: (-abs(leader.beside), leader.id))[:limit]


def _make_forecast(comparison: BasisComparison, promise: Forecast, place: int) -> FormulaForecast:
    nearest = int(comparison.nearest[place])
    return FormulaForecast(
        rank_ic=float(comparison.rank_ic[place]),
        known=float(comparison.known[place]),
        nearest=comparison.basis.ids[nearest] if nearest >= 0 else "",
        rank_correlation=float(comparison.near[place]),
        thin=bool(comparison.thin[place]),
        beside=float(promise.rank_ic[place]),
    )


def _apply_direction(direction: int, promised: Frame) -> Frame:
    return direction * promised if direction else np.abs(promised)
