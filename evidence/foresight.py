"""What was scored already says how a formula would score: no return is looked at.

The mean RankIC of a factor is nearly linear in its ranks. So the RankICs of all factors of a panel are taken for one draw
of a Gaussian process whose covariance is the rank correlation of their values (kriging with a linear kernel), and those
that were scored tell what to expect of one that was not, and how much of it they know. A forecast costs no evaluation and
makes no later p-value worse: it holds nothing that earlier scores do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..factors import Expression, FactorError
from ..market import Panel
from .pursuit import APART, Dictionary, beside, leading
from .thin import Thin
from .windows import Window

__all__ = ["Foreseen", "Foresight", "Leader", "Scored"]

Frame = NDArray[np.float64]

MOST = 1_500
"""Scored factors that forecasts rest on: the strongest."""
DOUBT = 0.03
"""Share of a factor's variance that thin looks get wrong; it keeps near-copies from being told apart by noise."""
FEWEST_VALUES = 0.5
"""Coverage and share of distinct values below which a formula is told to be thin."""
MOST_LEADERS = 16
"""Leaders that drafts are held against."""
EAGER = 2.0
"""What a formula of which nothing is known is worth, in standard errors of RankIC: how far formulas scatter."""
COPY = 0.95
"""Absolute rank correlation with a scored factor from which a draft is a copy of it."""
TWIN = 0.9
"""Absolute rank correlation of two drafts of which only one is chosen."""
NEAR = 0.3
"""Absolute rank correlation that a draft must have with the factor that it is to improve."""
KIN, MOST_KIN = 0.45, 7
"""Absolute rank correlation with a leader from which a factor is its kin, and how many of them are told."""
NODE_T = 0.15
"""Standard errors of RankIC that a further node of a draft must promise."""
CLEAR_T = 2.0
"""Absolute t from which RankIC over t tells how exact a mean RankIC of this panel is."""


class Scored(NamedTuple):
    """A formula with its mean RankIC on search and the t of it."""

    expression: Expression
    rank_ic: float
    t: float


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
    """

    rank_ic: float
    known: float
    nearest: str
    rank_correlation: float
    thin: bool

    def record(self) -> dict[str, Any]:
        """Return the JSON form, rounded: nothing that follows may hang on the last digits."""
        return {
            "rank_ic": round(self.rank_ic, 5),
            "known": round(self.known, 3),
            "nearest": self.nearest,
            "rank_correlation": round(self.rank_correlation, 3),
            "thin": self.thin,
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


class Foresight:
    """Forecasts of one run, of formulas only: what Python code says is not known before it runs."""

    def __init__(self, thin: Thin) -> None:
        self._thin = thin
        self._turn = RLock()  # tools answer on threads
        self._ids: list[str] = []
        self._scored: list[Scored] = []
        self._looks = np.zeros((0, 0), np.float32)
        self._products = np.zeros((0, 0), np.float32)
        self._solved: tuple[Frame, Frame] | None = None
        self._led: list[int] | None = None
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
        """Take in scored formulas by id; what is known already, or was forgotten, is passed over."""
        with self._turn:
            fresh = [name for name in scored if name not in self._passed]
            self._passed.update(fresh)
            looks = self._thin.look([scored[name].expression for name in fresh])
            kept = [(name, look.ranks) for name, look in zip(fresh, looks, strict=True) if look.ranks.any()]
            if kept:
                self._add([name for name, _ in kept], np.array([ranks for _, ranks in kept]))
                self._scored += [scored[name] for name, _ in kept]
                self._settle()
                self._solved = self._led = None

    def _add(self, names: Sequence[str], ranks: NDArray[np.float32]) -> None:
        old = len(self._ids)
        looks = np.vstack([self._looks, ranks]) if old else ranks
        across = ranks @ looks.T
        products = np.zeros((len(looks), len(looks)), np.float32)
        products[:old, :old] = self._products
        products[old:, :], products[:, old:] = across, across.T
        self._looks, self._products = looks, products
        self._ids += names

    def _settle(self) -> None:
        """Keep the strongest where there are too many, and put them in the order of their ids, whenever they came."""
        order = sorted(range(len(self._ids)), key=lambda at: (-abs(self._scored[at].rank_ic), self._ids[at]))
        keep = sorted(order[:MOST], key=self._ids.__getitem__)
        self._ids, self._scored = [self._ids[at] for at in keep], [self._scored[at] for at in keep]
        self._looks, self._products = self._looks[keep], np.ascontiguousarray(self._products[np.ix_(keep, keep)])

    @property
    def _lengths(self) -> Frame:
        return np.sqrt(np.diag(self._products).astype(np.float64))

    @property
    def _alike(self) -> Frame:
        return self._products / np.outer(self._lengths, self._lengths)

    def _solve(self) -> tuple[Frame, Frame]:
        """Return the weights of the scored RankICs in a forecast, and the inverse covariance."""
        if self._solved is None:
            inverse: Frame = np.asarray(np.linalg.inv(self._alike + DOUBT * np.eye(len(self._ids))), np.float64)
            self._solved = inverse @ np.array([one.rank_ic for one in self._scored]), inverse
        return self._solved

    def choose(
        self, expressions: Sequence[Expression], count: int, direction: int = 0, like: str = ""
    ) -> tuple[list[Foreseen], list[int]]:
        """Return what is expected of drafts, and the places of the `count` that are most worth scoring, best first.

        Parameters
        ----------
        expressions : sequence of Expression
            The drafts.
        count : int
            How many to choose; fewer are chosen where the rest are thin, or copies of what was scored or chosen.
        direction : {1, -1, 0}
            Sign in which the RankIC is wanted; 0 for either.
        like : str
            The id of a scored factor that a draft is to improve: only what is like it is chosen, where there is any.

        Raises
        ------
        FactorError
            One of them is Python code.
        """
        with self._turn:
            told, ranks = self._foreseen(expressions)
            across, unit = self._across(ranks), self._unit()
            promised = self._promised(told, across, like)
            sign = direction * promised if direction else np.abs(promised)
            worth = np.array([
                value / unit + EAGER * np.sqrt(1.0 - one.known) - NODE_T * each.core.size
                for value, one, each in zip(sign, told, expressions, strict=True)
            ])  # fmt: skip
            fits = np.array([not one.thin and abs(one.rank_correlation) < COPY for one in told], bool)
            if like in self._ids:
                near = fits & (np.abs(across[:, self._ids.index(like)]) >= NEAR)
                worth = worth + np.where(near, 1e3, 0.0)
            return told, _unlike(np.round(worth, 4), fits, ranks, count)

    def _promised(self, told: Sequence[Foreseen], across: Frame, like: str) -> Frame:
        """Return the RankIC that drafts promise: of what is to improve a leader, that beside the other leaders."""
        plain = np.array([one.rank_ic for one in told])
        if like not in self._ids or not len(told):
            return plain
        own = self._alike_to(self._ids.index(like))
        others = [at for at in self._leading() if np.abs(own[at]) < APART]
        return self._unit() * beside(plain / self._unit(), across, self._dictionary(), others) if others else plain

    def foresee(self, expressions: Sequence[Expression]) -> list[Foreseen]:
        """Return what is expected of formulas, in order.

        Raises
        ------
        FactorError
            One of them is Python code.
        """
        with self._turn:
            return self._foreseen(expressions)[0]

    def _foreseen(self, expressions: Sequence[Expression]) -> tuple[list[Foreseen], NDArray[np.float32]]:
        if any(each.code for each in expressions):
            raise FactorError("nothing can be foreseen of Python code", field="texts", hint="Score it.")
        looks = self._thin.look(expressions)
        thin = [min(look.coverage, look.distinct) < FEWEST_VALUES for look in looks]
        ranks = np.array([look.ranks for look in looks])
        if not self._ids or not looks:
            return [Foreseen(0.0, 0.0, "", 0.0, each) for each in thin], ranks
        weights, inverse = self._solve()
        across = self._across(ranks)
        known = np.clip(np.einsum("ij,ij->i", across @ inverse, across), 0.0, 1.0)
        nearest = np.abs(across).argmax(axis=1)
        found = [
            Foreseen(float(rank_ic), float(share), self._ids[near], float(row[near]), each)
            for rank_ic, share, near, row, each in zip(across @ weights, known, nearest, across, thin, strict=True)
        ]
        return found, ranks

    def _across(self, ranks: NDArray[np.float32]) -> Frame:
        """Return the rank correlations of drafts with scored factors."""
        if not self._ids or not len(ranks):
            return np.zeros((len(ranks), len(self._ids)))
        return np.asarray((ranks @ self._looks.T) / np.outer(_lengths(ranks), self._lengths), np.float64)

    def leaders(self, limit: int) -> list[Leader]:
        """Return the scored factors that between them say what was found, at most `limit`, strongest first."""
        with self._turn:
            unit, rank_ic = self._unit(), self._rank_ic
            chosen = leading(self._dictionary(), limit) if self._ids else {}
            found = [
                Leader(self._ids[at], float(rank_ic[at]), float(adds * unit), self._kin(at, rank_ic))
                for at, adds in chosen.items()
            ]
        return sorted(found, key=lambda one: (-abs(one.beside), one.id))

    @property
    def _rank_ic(self) -> Frame:
        return np.array([one.rank_ic for one in self._scored])

    def _dictionary(self) -> Dictionary:
        size = np.array([one.expression.core.size for one in self._scored])
        return Dictionary(self._rank_ic / self._unit(), size, self._alike)

    def _leading(self) -> list[int]:
        """Return the places of the leaders, found once for all that is known now."""
        if self._led is None:
            self._led = list(leading(self._dictionary(), MOST_LEADERS))
        return self._led

    def _alike_to(self, place: int) -> Frame:
        return np.asarray(self._products[place] / (self._lengths * self._lengths[place]), np.float64)

    def _kin(self, place: int, rank_ic: Frame) -> tuple[str, ...]:
        alike = np.abs(self._alike_to(place))
        near = [at for at in range(len(self._ids)) if at != place and alike[at] >= KIN]
        near.sort(key=lambda at: (-round(float(abs(rank_ic[at]) * alike[at]), 6), self._ids[at]))
        return tuple(self._ids[at] for at in near[:MOST_KIN])

    def _unit(self) -> float:
        """Return the standard error of a mean RankIC on this panel: that of the median factor with a clear t."""
        clear = [abs(one.rank_ic / one.t) for one in self._scored if abs(one.t) >= CLEAR_T]
        return float(np.median(clear)) if clear else 1.0


def _lengths(ranks: NDArray[np.float32]) -> Frame:
    squares: Frame = np.einsum("ij,ij->i", ranks, ranks).astype(np.float64)
    return np.sqrt(np.maximum(squares, 1.0))


def _unlike(worth: Frame, fits: NDArray[np.bool_], ranks: NDArray[np.float32], count: int) -> list[int]:
    """Return the most worthy places whose ranks are not alike; ties go to the first."""
    chosen: list[int] = []
    lengths = _lengths(ranks)
    for place in np.argsort(-worth, kind="stable"):
        if len(chosen) >= count:
            break
        alike = np.abs(ranks[chosen] @ ranks[place]) / (lengths[chosen] * lengths[place]) if chosen else np.zeros(0)
        if fits[place] and not (alike >= TWIN).any():
            chosen.append(int(place))
    return chosen
