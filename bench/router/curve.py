"""From an order of the prompts to a curve of cost and quality, and to the figures that are read off it.

Whoever gives each prompt a number gives an order: the lowest go to the cheap way. Sending more and more of them there
leads from always-frontier to always-cheap. Quality is *recovered* quality: 0 at always-local's share of right replies,
1 at always-frontier's. The *saving at q* is the largest 1 - cost / cost(always-frontier) at which at least q is
recovered, read off at the best cut, for everybody alike; 0 where no cut but always-frontier recovers that much. The
*area* is that under recovered quality over cost, both from 0 (always-local) to 1 (always-frontier): 0.5 for chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bench.router.law import FRONTIER, LOCAL, Numbers, Table

__all__ = ["LEVELS", "Curve", "Ends", "Figures", "Way", "cascade", "tier"]

Counts = NDArray[np.int64]
LEVELS = (0.90, 0.95, 0.98)
"""Recovered quality at which savings are read."""
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Way:
    """What each call of a table cost by one way, US dollars, and whether its reply was right, 0 or 1."""

    cost: Numbers
    right: Numbers

    def mean(self, weights: Numbers) -> tuple[float, float]:
        """Return the mean cost and the share of right replies."""
        return float(weights @ self.cost), float(weights @ self.right)


def tier(table: Table, number: int) -> Way:
    """Return the way to one tier alone."""
    return Way(table.cost[number], table.success[number].astype(np.float64))


def cascade(table: Table, shown: float) -> Way:
    """Return the way to the local tier and, where its reply shows itself wrong, to the frontier."""
    local, frontier = tier(table, LOCAL), tier(table, FRONTIER)
    again = (local.right == 0) & (table.shown[LOCAL] < shown)
    return Way(local.cost + again * frontier.cost, np.where(again, frontier.right, local.right))


@dataclass(frozen=True)
class Ends:
    """Cost and share of right replies of always-local and always-frontier, by which all figures are scaled."""

    local: tuple[float, float]
    frontier: tuple[float, float]

    @classmethod
    def of(cls, table: Table, weights: Numbers) -> Ends:
        """Return the ends of a table whose calls are weighed."""
        return cls(tier(table, LOCAL).mean(weights), tier(table, FRONTIER).mean(weights))

    def saving(self, cost: float) -> float:
        """Return the share of always-frontier's cost that is saved."""
        return 1.0 - cost / self.frontier[0]

    def recovered(self, right: Numbers) -> Numbers:
        """Return shares of right replies as recovered quality."""
        return np.asarray((right - self.local[1]) / (self.frontier[1] - self.local[1]))


@dataclass(frozen=True)
class Figures:
    """What is read off a curve: area, savings at `LEVELS` and at a quality, quality at a cost (recovered)."""

    area: float
    savings: tuple[float, ...]
    saving_at: float
    quality_at: float


@dataclass(frozen=True, eq=False)
class Curve:
    """An order of all calls: the lowest `scores` take the cheap way first, equal ones by chance."""

    table: Table
    scores: Numbers
    cheap: Way
    seed: int = 0

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        luck = np.random.default_rng(self.seed).permutation(int(self.table.owner.max()) + 1)[self.table.owner]
        return np.lexsort((luck, self.scores))

    @cached_property
    def _steps(self) -> tuple[Numbers, Numbers]:
        """What each call in order saves and loses by going the cheap way."""
        dear = tier(self.table, FRONTIER)
        return (dear.cost - self.cheap.cost)[self._order], (dear.right - self.cheap.right)[self._order]

    def line(self, weights: Numbers) -> tuple[Numbers, Numbers]:
        """Return mean cost and share of right replies as one call after the other goes the cheap way."""
        cost, right = tier(self.table, FRONTIER).mean(weights)
        ordered = weights[self._order]
        saved, lost = self._steps
        return cost - np.cumsum(np.r_[0.0, ordered * saved]), right - np.cumsum(np.r_[0.0, ordered * lost])

    def figures(self, weights: Numbers, cost: float, quality: float) -> Figures:
        """Return what is read off; `cost` and `quality` are those of a way that it is compared with."""
        ends = Ends.of(self.table, weights)
        costs, right = self.line(weights)
        recovered = ends.recovered(right)
        share = (costs - ends.local[0]) / (ends.frontier[0] - ends.local[0])
        savings = [
            ends.saving(float(costs[recovered >= least - ROUNDING].min(initial=costs[0])))
            for least in (*LEVELS, quality)
        ]
        area = float(np.trapezoid(recovered[::-1], share[::-1]))
        return Figures(area, tuple(savings[:-1]), savings[-1], float(np.interp(cost, costs[::-1], recovered[::-1])))
