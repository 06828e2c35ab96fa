"""What was scored already says how a formula would score: no return is looked at.

The mean RankIC of a factor is nearly linear in its ranks. So the RankICs of all factors of a panel are taken for one draw
of a Gaussian process whose covariance is the rank correlation of their values (kriging with a linear kernel), and those
that were scored tell what to expect of one that was not, and how much of it they know. A forecast costs no evaluation.
The gate's p-values are taken on other days and hold whatever it chose; |t| on search is flattered, since a choice by
forecasts fits the luck of earlier scores.
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
from .basis import Basis, ScoredFormula
from .candidate_pool import CrossProducts, Sample, Samples

Frame = NDArray[np.float64]

RANK_IC_DECIMALS = 3
"""Of a RankIC that is expected: its error is in the third, so that is the last that is told."""
NOVELTY_BONUS_T = 2.0
"""What a change of which nothing is known is worth, in standard errors of RankIC: how far formulas scatter."""
FIRST_BONUS_T = 1e3
"""Added to the worth of what is to come first, more than any t."""
COPY_CORRELATION = 0.95
"""Absolute rank correlation with a scored factor from which a draft is a copy of it."""
NEWS_CORRELATION = 0.7
"""Absolute rank correlation with every scored factor below which a draft is news."""
TWIN_CORRELATION = 0.9
"""Absolute rank correlation of two drafts of which only one is chosen."""
NEAR_CORRELATION = 0.3
"""Absolute rank correlation that a draft must have with the factor that it is to improve."""
UNEXPLORED_CORRELATION = 0.7
"""Absolute rank correlation from which only one of two unexplored formulas is told."""
SHORTLIST = 1_500
"""Formulas of the sample whose worth is worked out to the end, of those that promise most, and of those that may tell most."""
SCORES_PER_TURN = 16
"""Scores after which other formulas of the sample are asked what they would tell."""
SURVEY_SHARE, MAX_SURVEY_SCORES, MIN_SURVEY_EVALUATIONS = 0.4, 800, 500
"""Share of a search, and most of its scores, that are to tell of all that could be written, whatever it promises. Forecasts
that rest on what was chosen for promise believe their own luck: after hundreds of scores that were not, true formulas stand
out of a sample. A search of fewer evaluations than `MIN_SURVEY_EVALUATIONS` has no time for it and follows what is loud.
"""
COMPARED_PER_TOLD = 8
"""Times as many of the most worthy unexplored formulas are held against each other as are told."""


@dataclass(frozen=True)
class FormulaForecast:
    """What is expected of a formula.

    Attributes
    ----------
    rank_ic : float
        The mean RankIC that scored factors let expect.
    known : float
        How much of its ranks they explain, from 0 (nothing is known of it) to 1 (nearly a copy).
    nearest : str
        The id of the scored factor that it is most like; empty where there is none.
    rank_correlation : float
        With that one, signed.
    thin : bool
        Too few names have a value, or too many have the same.
    beside : float
        The RankIC that it promises beside the leaders of its run; see `SurrogateModel.choose`.
    """

    rank_ic: float
    known: float
    nearest: str
    rank_correlation: float
    thin: bool
    beside: float = 0.0

    def record(self) -> dict[str, Any]:
        """Return the JSON form, rounded: nothing that follows may hang on the last digits."""
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
    """A formula that nobody wrote yet, in the text of the language, and what is expected of it."""

    text: str
    foreseen: FormulaForecast

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        told = self.foreseen.record()
        return {"text": self.text, **{name: told[name] for name in ("rank_ic", "beside", "known")}}


@dataclass(frozen=True)
class Leader:
    """A scored factor that says something of its own: its RankIC, what is `promise_beside_leaders` the other leaders, and its `kin`.

    Kin are scored factors that are like it, the strongest of them first.
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
    """Forecasts of one run, of formulas only: what Python code says is not known before it runs."""

    def __init__(self, sample: Sample, surveys: int = 0) -> None:
        self._thin = sample.thin
        self._population = sample.population
        self._surveys = surveys
        self._turn = sample.turn
        self._basis = Basis()
        self._reach = CrossProducts(sample.population)
        self._passed: set[str] = set()

    @classmethod
    def of(
        cls, panel: Panel, window: Window, fields: Sequence[str], evaluations: int = 0, samples: Samples | None = None
    ) -> SurrogateModel:
        """Return forecasts for a panel that know nothing yet; no day after the window is looked at.

        `fields` are the columns that formulas may read, `evaluations` how many are to be scored: see `SURVEY_SHARE`. `samples`
        is what other runs stand on too.
        """
        surveys = (
            min(round(SURVEY_SHARE * evaluations), MAX_SURVEY_SCORES) if evaluations >= MIN_SURVEY_EVALUATIONS else 0
        )
        return cls((samples or Samples()).sample(panel, window, fields), surveys)

    @property
    def surveying(self) -> bool:
        """Tell whether what is scored now is to tell of all that could be written, whatever it promises."""
        return len(self._passed) < self._surveys

    def __contains__(self, factor_id: object) -> bool:
        """Tell whether a factor was learned, though it may have been forgotten since."""
        return factor_id in self._passed

    def may_see(self, expression: Expression) -> bool:
        """Tell whether a formula may be looked at: it is no code, and tells nothing of days after the window."""
        return not expression.code and not self._thin.knows_later(expression)

    def learn(self, scored: Mapping[str, ScoredFormula]) -> None:
        """Take in scored formulas by id; what is known already, was forgotten, or is Python code is passed over."""
        with self._turn:
            fresh = [name for name in scored if name not in self._passed]
            self._passed.update(fresh)
            fresh = [name for name in fresh if not scored[name].expression.code]
            looks = self._thin.look([scored[name].expression for name in fresh])
            kept = [(name, look.ranks) for name, look in zip(fresh, looks, strict=True) if look.ranks.any()]
            if kept:
                names = [name for name, _ in kept]
                ranks = np.array([ranks for _, ranks in kept])
                self._basis = self._basis.joined(names, [scored[name] for name in names], ranks)

    def choose(
        self, expressions: Sequence[Expression], count: int, direction: int = 0, like: str = ""
    ) -> tuple[list[FormulaForecast], list[int]]:
        """Return what is expected of drafts, and the places of the `count` that are most worth scoring, best first.

        A draft promises what is expected of it over the square root of how much of it is known: what all of it would show,
        were the rest like the part that earlier scores tell of; what leaders explain is left out of both. Its nodes have a
        price. The choice goes by what is promised beside the leaders, and every other one by what a score would tell of all
        that could be written; see `Basis.tells`.

        Of drafts that are to improve a scored factor every other choice goes by what is promised at all, of those that are
        news: leaders that are blends explain away the very formulas that they are blends of, until one of those is scored.
        What is unknown of such a draft is worth a bonus.

        Parameters
        ----------
        expressions : sequence of Expression
            The drafts.
        count : int
            How many to choose; fewer are chosen where the rest are thin, or copies of what was scored or chosen.
        direction : {1, -1, 0}
            Sign in which the RankIC is wanted; 0 for either.
        like : str
            The id of a scored factor that drafts are to improve: what is like it comes first, and is held against those
            leaders only that are unlike it. An id that is not known counts as none.

        Raises
        ------
        FactorError
            One of them is Python code.
        """
        if not expressions:
            return [], []
        with self._turn:
            basis = self._update_reference()
            seen, own = self._seen(basis, expressions), basis.places.get(like, -1)
            promise, price = seen.promise(own), seen.price
            fits = ~seen.thin & (np.abs(seen.near) < COPY_CORRELATION)
            if own >= 0:
                first = fits & (np.abs(seen.across[:, own]) >= NEAR_CORRELATION)
                price = price - NOVELTY_BONUS_T * np.sqrt(1.0 - seen.known) - FIRST_BONUS_T * first
            orders = [rank_places(_turn_promise(direction, promise.beside) - price, fits)]
            if own >= 0:
                orders.append(
                    rank_places(
                        _turn_promise(direction, promise.at_all) - price, fits & (np.abs(seen.near) < NEWS_CORRELATION)
                    )
                )
            if not like and not direction and self.surveying:
                orders = [rank_places(seen.tells, fits)]
            elif not like:
                orders.append(rank_places(seen.tells, fits))
                if len(self._passed) % 2:  # where one is chosen at a time, both have their turn
                    orders.reverse()
            told = [_make_forecast(seen, promise, place) for place in range(len(expressions))]
            return told, choose_dissimilar(orders, seen.ranks, count, TWIN_CORRELATION)

    def unexplored(self, limit: int) -> list[UnexploredFormula]:
        """Return formulas that nobody wrote yet and that are most worth a score, at most `limit`, no two alike.

        They come from a large random sample of the language: in turn the one that promises most beside the leaders, and the
        one whose score would tell most of all that could be written; see `choose`. No return is looked at.
        """
        with self._turn:
            basis = self._update_reference()
            size = self._population.size(len(self._passed))
            self._reach.follow(basis)
            orders = [self._rank_by_information(basis, size)]
            if basis.ids and not self.surveying:
                orders.insert(0, self._rank_by_promise(basis, size))
            places = list(dict.fromkeys(chain(*orders)))
            row = {place: at for at, place in enumerate(places)}
            best = [[row[place] for place in each[: COMPARED_PER_TOLD * limit]] for each in orders]
            chosen = choose_dissimilar(best, self._population.ranks(places), limit, UNEXPLORED_CORRELATION)
            members = [self._population.members[places[at]] for at in chosen]
            seen = self._seen(basis, members)
            promise = seen.promise()
            return [UnexploredFormula(one.text, _make_forecast(seen, promise, at)) for at, one in enumerate(members)]

    def _rank_by_promise(self, basis: Basis, size: int) -> list[int]:
        """Return the places of the first members that promise most; how much is known is asked of the best only."""
        adds = [
            promise_beside_leaders(basis, self._reach.across(basis, part))[0]
            for part in range(len(self._population.parts))
        ]
        hopeful = np.argsort(-np.round(np.abs(np.concatenate(adds)[:size]), 6), kind="stable")[:SHORTLIST]
        places = sorted(int(place) for place in hopeful)
        seen = self._of(basis, places)
        return [places[at] for at in rank_places(np.abs(seen.promise().beside) - seen.price, self._fits(seen, places))]

    def _rank_by_information(self, basis: Basis, size: int) -> list[int]:
        """Return the places of the members that would tell most, of a part of the first ones: another part at every round."""
        stride = max(-(-size // SHORTLIST), 1)
        places = list(range(len(self._passed) // SCORES_PER_TURN % stride, size, stride))
        seen = self._of(basis, places)
        return [places[at] for at in rank_places(seen.tells, self._fits(seen, places))]

    def _fits(self, seen: BasisComparison, places: Sequence[int]) -> NDArray[np.bool_]:
        new = [self._population.members[place].id not in self._passed for place in places]
        return ~seen.thin & (np.abs(seen.near) < COPY_CORRELATION) & np.array(new, np.bool_)

    def _of(self, basis: Basis, places: Sequence[int]) -> BasisComparison:
        """Return members of the sample, held against what was scored."""
        sample = self._population
        size = np.array([sample.members[place].core.size for place in places], np.int64)
        thin = np.array([sample.thin[place] for place in places], np.bool_)
        return BasisComparison(basis, sample.ranks(places), thin, size, self._reach.rows(basis, places))

    def _update_reference(self) -> Basis:
        """Return what is known, held against the part of the sample that is the ruler now."""
        self._basis = self._basis.facing(self._population.ruler(len(self._passed)))
        return self._basis

    def _seen(self, basis: Basis, expressions: Sequence[Expression]) -> BasisComparison:
        if any(each.code for each in expressions):
            raise FactorError("nothing can be foreseen of Python code", field="texts", hint="Score it.")
        looks = self._thin.look(expressions)
        ranks = np.array([look.ranks for look in looks]).reshape(-1, self._thin.cells)
        thin = np.array([look.thin for look in looks], np.bool_)
        size = np.array([each.core.size for each in expressions], np.int64)
        return BasisComparison(basis, ranks, thin, size, basis.across(ranks))

    def leaders(self, limit: int) -> list[Leader]:
        """Return the scored factors that between them say what was found, at most `limit`, strongest first."""
        with self._turn:
            basis = self._basis
            found = [
                Leader(basis.ids[at], float(basis.rank_ic[at]), float(adds * basis.unit), basis.kin(at))
                for at, adds in basis.leading.items()
            ]
        return sorted(found, key=lambda one: (-abs(one.beside), one.id))[:limit]


def _make_forecast(seen: BasisComparison, promise: Forecast, place: int) -> FormulaForecast:
    nearest = int(seen.nearest[place])
    return FormulaForecast(
        rank_ic=float(seen.rank_ic[place]),
        known=float(seen.known[place]),
        nearest=seen.basis.ids[nearest] if nearest >= 0 else "",
        rank_correlation=float(seen.near[place]),
        thin=bool(seen.thin[place]),
        beside=float(promise.rank_ic[place]),
    )


def _turn_promise(direction: int, promised: Frame) -> Frame:
    return direction * promised if direction else np.abs(promised)
