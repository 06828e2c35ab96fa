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
from itertools import zip_longest
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..factors import Expression, FactorError
from ..market import Panel
from .basis import Basis, Scored, lengths
from .pursuit import APART, left_beside
from .thin import Thin
from .windows import Window

__all__ = ["Foreseen", "Foresight", "Leader", "Scored"]

Frame = NDArray[np.float64]

DECIMALS = 4
"""Of a RankIC that is expected: its error is in the third."""
FEWEST_COVERED, FEWEST_DISTINCT = 0.5, 0.15
"""Coverage, and share of a day's values that differ, below which a formula is told to be thin: of 64 names ten values."""
EAGER = 2.0
"""What a formula of which nothing is known is worth, in standard errors of RankIC: how far formulas scatter."""
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


class Foresight:
    """Forecasts of one run, of formulas only: what Python code says is not known before it runs."""

    def __init__(self, thin: Thin) -> None:
        self._thin = thin
        self._turn = RLock()  # tools answer on threads
        self._basis = Basis()
        self._passed: set[str] = set()

    @classmethod
    def of(cls, panel: Panel, window: Window) -> Foresight:
        """Return forecasts for a panel that know nothing yet; no day after the window is looked at."""
        return cls(Thin(panel, window))

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
        were the rest like the part that earlier scores tell of; what leaders explain is left out of both. What is unknown
        of it is worth a bonus, and its nodes have a price. The choice goes by what is promised beside the leaders. Of drafts
        that are to improve a scored factor every other choice goes by what is promised at all, of those that are news:
        leaders that are blends explain away the very formulas that they are blends of, until one of those is scored.

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
            told, ranks = self._foreseen(expressions)
            basis, across = self._basis, self._basis.across(ranks)
            own = basis.places.get(like, -1)
            promised, left = self._promised(told, across, own)
            share = np.array([one.known for one in told])
            price = NODE_T * np.array([each.core.size for each in expressions]) - EAGER * np.sqrt(1.0 - share)
            fits = np.array([not one.thin and abs(one.rank_correlation) < COPY for one in told], bool)
            if own >= 0:
                price -= np.where(fits & (np.abs(across[:, own]) >= NEAR), FIRST, 0.0)
            plain = np.array([one.rank_ic for one in told]) / basis.unit
            news = np.array([abs(one.rank_correlation) < NEWS for one in told], bool)
            rest = np.maximum(share - (1.0 - left), 0.0)
            goals = [(promised, rest, fits), *([(plain, share, fits & news)] if own >= 0 else [])]
            orders = [
                _order(_in(direction, adds) / np.sqrt(known + LEAST_KNOWN) - price, fit) for adds, known, fit in goals
            ]
            told = [replace(one, beside=float(adds * basis.unit)) for one, adds in zip(told, promised, strict=True)]
            return told, _unlike(orders, ranks, count)

    def _promised(self, told: Sequence[Foreseen], across: Frame, own: int) -> tuple[Frame, Frame]:
        """Return the t that drafts promise beside the leaders that are unlike the one at place `own`; -1: beside all.

        Also the share of their ranks that those leaders leave.
        """
        basis = self._basis
        plain = np.array([one.rank_ic for one in told]) / basis.unit
        others = [at for at in basis.leading if own < 0 or np.abs(basis.dictionary.alike[own, at]) < APART]
        if not others or not len(told):
            return plain, np.ones(len(told))
        return left_beside(plain, across, basis.dictionary, others)

    def _foreseen(self, expressions: Sequence[Expression]) -> tuple[list[Foreseen], NDArray[np.float32]]:
        if any(each.code for each in expressions):
            raise FactorError("nothing can be foreseen of Python code", field="texts", hint="Score it.")
        basis, looks = self._basis, self._thin.look(expressions)
        thin = [look.coverage < FEWEST_COVERED or look.distinct < FEWEST_DISTINCT for look in looks]
        ranks = np.array([look.ranks for look in looks])
        if not basis.ids or not looks:
            return [Foreseen(0.0, 0.0, "", 0.0, each) for each in thin], ranks
        across = basis.across(ranks)
        shares = basis.explained(across)
        nearest = np.abs(across).argmax(axis=1)
        found = [
            Foreseen(float(rank_ic), float(share), basis.ids[near], float(row[near]), each)
            for rank_ic, share, near, row, each in zip(
                across @ basis.weights, shares, nearest, across, thin, strict=True
            )
        ]
        return found, ranks

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
    """Return places whose ranks are not alike, taken from the orders in turn."""
    chosen: list[int] = []
    norms = lengths(ranks)
    turns = [each for pair in zip_longest(*orders) for each in pair if each is not None]
    for place in dict.fromkeys(turns):
        if len(chosen) >= count:
            break
        alike = np.abs(ranks[chosen] @ ranks[place]) / (norms[chosen] * norms[place]) if chosen else np.zeros(0)
        if not (alike >= TWIN).any():
            chosen.append(place)
    return chosen
