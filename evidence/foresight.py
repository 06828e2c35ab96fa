"""What was scored already says how a formula would score: no return is looked at.

The mean RankIC of a factor is nearly linear in its ranks. So the RankICs of all factors of a panel are taken for one draw
of a Gaussian process whose covariance is the rank correlation of their values (kriging with a linear kernel), and those
that were scored tell what to expect of one that was not, and how much of it they know. A forecast costs no evaluation.
The gate's p-values are taken on other days and hold whatever it chose; |t| on search is flattered, since a choice by
forecasts fits the luck of earlier scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from threading import RLock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..factors import Expression, FactorError
from ..market import Panel
from .basis import Basis, Scored, lengths, share
from .population import Population
from .pursuit import APART, left_beside
from .thin import Thin
from .windows import Window

__all__ = ["Foreseen", "Foresight", "Leader", "Scored"]

Frame = NDArray[np.float64]

DECIMALS = 3
"""Of a RankIC that is expected: its error is in the third, so that is the last that is told."""
FEWEST_COVERED, FEWEST_DISTINCT = 0.5, 0.15
"""Coverage, and share of a day's values that differ, below which a formula is told to be thin: of 64 names ten values."""
EAGER = 2.0
"""What a change of which nothing is known is worth, in standard errors of RankIC: how far formulas scatter."""
TINY = 1e-12
LEAST_KNOWN = 0.1
"""Added to how much of a draft is known, so that little is not blown up."""
FIRST = 1e3
"""Added to the worth of what is to come first, more than any t."""
COPY = 0.95
"""Absolute rank correlation with a scored factor from which a draft is a copy of it."""
NEWS = 0.7
"""Absolute rank correlation with every scored factor below which a draft is news."""
TWIN = 0.9
"""Absolute rank correlation of two drafts of which only one is chosen."""
NEAR = 0.3
"""Absolute rank correlation that a draft must have with the factor that it is to improve."""
NODE_T = 0.15
"""Standard errors of RankIC that a further node of a draft must promise."""


@dataclass(frozen=True)
class Foreseen:
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
        The RankIC that it promises beside the leaders of its run; see `Foresight.choose`.
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
            "rank_ic": round(self.rank_ic, DECIMALS),
            "known": round(self.known, 2),
            "nearest": self.nearest,
            "rank_correlation": round(self.rank_correlation, 2),
            "thin": self.thin,
            "beside": round(self.beside, DECIMALS),
        }


@dataclass(frozen=True)
class Leader:
    """A scored factor that says something of its own: its RankIC, what is `beside` the other leaders, and its `kin`.

    Kin are scored factors that are like it, the strongest of them first.
    """

    id: str
    rank_ic: float
    beside: float
    kin: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return the JSON form, rounded as `Foreseen.record`."""
        return {
            "id": self.id,
            "rank_ic": round(self.rank_ic, DECIMALS),
            "beside": round(self.beside, DECIMALS),
            "kin": list(self.kin),
        }


class _Seen(NamedTuple):
    """What is known of drafts: in words, and as their ranks, their correlations and coordinates in the basis."""

    told: list[Foreseen]
    ranks: NDArray[np.float32]
    across: Frame
    coordinates: Frame


class Foresight:
    """Forecasts of one run, of formulas only: what Python code says is not known before it runs."""

    def __init__(self, thin: Thin, population: Population) -> None:
        self._thin = thin
        self._population = population
        self._turn = RLock()  # tools answer on threads
        self._basis = Basis()
        self._passed: set[str] = set()

    @classmethod
    def of(cls, panel: Panel, window: Window, fields: Sequence[str]) -> Foresight:
        """Return forecasts for a panel that know nothing yet; no day after the window is looked at.

        `fields` are the columns that formulas may read.
        """
        thin = Thin(panel, window)
        return cls(thin, Population(thin, tuple(fields)))

    def __contains__(self, factor_id: object) -> bool:
        """Tell whether a factor was learned, though it may have been forgotten since."""
        return factor_id in self._passed

    def may_see(self, expression: Expression) -> bool:
        """Tell whether a formula may be looked at: it is no code, and tells nothing of days after the window."""
        return not expression.code and not self._thin.knows_later(expression)

    def learn(self, scored: Mapping[str, Scored]) -> None:
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
    ) -> tuple[list[Foreseen], list[int]]:
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
            self._basis = self._basis.facing(self._population.ranks(len(self._passed)))
            basis, seen = self._basis, self._seen(expressions)
            told, own = seen.told, basis.places.get(like, -1)
            plain = np.array([one.rank_ic for one in told]) / basis.unit
            promised, left = self._beside(plain, seen.across, own)
            known = share(seen.coordinates)
            price = NODE_T * np.array([each.core.size for each in expressions])
            fits = np.array([not one.thin and abs(one.rank_correlation) < COPY for one in told], bool)
            news = np.array([abs(one.rank_correlation) < NEWS for one in told], bool)
            goals = [(promised, np.maximum(known - (1.0 - left), 0.0), fits)]
            if own >= 0:
                goals.append((plain, known, fits & news))
                near = np.abs(seen.across[:, own]) >= NEAR
                price -= EAGER * np.sqrt(1.0 - known) + np.where(fits & near, FIRST, 0.0)
            orders = [
                _order(_in(direction, adds) / np.sqrt(part + LEAST_KNOWN) - price, fit) for adds, part, fit in goals
            ]
            if not like:
                tells = basis.tells(seen.ranks, seen.coordinates)
                orders.append(_order(tells / max(float(tells.max()), TINY), fits))
                if len(self._passed) % 2:  # where one is chosen at a time, both have their turn
                    orders.reverse()
            told = [replace(one, beside=float(adds * basis.unit)) for one, adds in zip(told, promised, strict=True)]
            return told, _unlike(orders, seen.ranks, count)

    def _beside(self, plain: Frame, across: Frame, own: int) -> tuple[Frame, Frame]:
        """Return the t that drafts promise beside the leaders that are unlike the one at place `own`; -1: beside all.

        Also the share of their ranks that those leaders leave.
        """
        basis = self._basis
        others = [at for at in basis.leading if own < 0 or np.abs(basis.dictionary.alike[own, at]) < APART]
        if not others:
            return plain, np.ones(len(plain))
        return left_beside(plain, across, basis.dictionary, others)

    def _seen(self, expressions: Sequence[Expression]) -> _Seen:
        if any(each.code for each in expressions):
            raise FactorError("nothing can be foreseen of Python code", field="texts", hint="Score it.")
        basis, looks = self._basis, self._thin.look(expressions)
        thin = [look.coverage < FEWEST_COVERED or look.distinct < FEWEST_DISTINCT for look in looks]
        ranks = np.array([look.ranks for look in looks])
        across = basis.across(ranks)
        coordinates = basis.apart(across)
        if not basis.ids:
            return _Seen([Foreseen(0.0, 0.0, "", 0.0, each) for each in thin], ranks, across, coordinates)
        nearest = np.abs(across).argmax(axis=1)
        rows = zip(across @ basis.weights, share(coordinates), nearest, across, thin, strict=True)
        found = [
            Foreseen(float(rank_ic), float(known), basis.ids[near], float(row[near]), each)
            for rank_ic, known, near, row, each in rows
        ]
        return _Seen(found, ranks, across, coordinates)

    def leaders(self, limit: int) -> list[Leader]:
        """Return the scored factors that between them say what was found, at most `limit`, strongest first."""
        with self._turn:
            basis = self._basis
            found = [
                Leader(basis.ids[at], float(basis.rank_ic[at]), float(adds * basis.unit), basis.kin(at))
                for at, adds in basis.leading.items()
            ]
        return sorted(found, key=lambda one: (-abs(one.beside), one.id))[:limit]


def _in(direction: int, promised: Frame) -> Frame:
    return direction * promised if direction else np.abs(promised)


def _order(worth: Frame, fits: NDArray[np.bool_]) -> list[int]:
    """Return the places that fit, the most worthy first; ties go to the first."""
    return [int(place) for place in np.argsort(-np.round(worth, 4), kind="stable") if fits[place]]


def _unlike(orders: Sequence[Sequence[int]], ranks: NDArray[np.float32], count: int) -> list[int]:
    """Return places whose ranks are not alike, from the orders in turn: of each its first that is still to be had."""
    chosen: list[int] = []
    norms = lengths(ranks)

    def fresh(place: int) -> bool:
        alike = np.abs(ranks[chosen] @ ranks[place]) / (norms[chosen] * norms[place])
        return place not in chosen and not (alike >= TWIN).any()

    queues = [iter(order) for order in orders]
    while queues and len(chosen) < count:
        queue = queues.pop(0)
        place = next((each for each in queue if not chosen or fresh(each)), None)
        if place is not None:
            chosen.append(place)
            queues.append(queue)
    return chosen
