"""One replay with all that is read off it, and how far chance in the prompts may have moved that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.router.curve import LEVELS, Curve, Ends, Figures, Way
from bench.router.law import Numbers, Table
from bench.router.prompts import resampled
from bench.router.scorers import OWN, ROUTER

__all__ = ["CASCADE", "ORACLE", "PRIMARY", "SHIPPED", "THEN_CASCADE", "Measured", "Replay"]

ORACLE, SHIPPED, THEN_CASCADE = "oracle", "router as shipped", "router, then cascade"
CASCADE = " + cascade"
PRIMARY = LEVELS.index(0.95)


@dataclass(frozen=True, eq=False)
class Replay:
    """One table with all who choose on it."""

    table: Table
    curves: Mapping[str, Curve]
    cascaded: Mapping[str, Curve]
    points: Mapping[str, Way]

    def weights(self, counts: NDArray[np.int64]) -> Numbers:
        """Return the weight of each call where prompts are drawn so often."""
        given = counts[self.table.owner].astype(np.float64)
        return np.asarray(given / given.sum())

    def figures(self, counts: NDArray[np.int64]) -> dict[str, Figures]:
        """Return what is read off each curve beside the router as it ships, of a cascade beside the router with one."""
        weights = self.weights(counts)
        ends = Ends.of(self.table, weights)
        found: dict[str, Figures] = {}
        for curves, point in ((self.curves, SHIPPED), (self.cascaded, THEN_CASCADE)):
            cost, right = self.points[point].mean(weights)
            quality = float(ends.recovered(np.array(right)))
            found |= {name: each.figures(weights, cost, quality) for name, each in curves.items()}
        return found

    def place(self, point: str, counts: NDArray[np.int64]) -> tuple[float, float]:
        """Return what a way that is one point saves, and what it recovers."""
        weights = self.weights(counts)
        ends = Ends.of(self.table, weights)
        cost, right = self.points[point].mean(weights)
        return ends.saving(cost), float(ends.recovered(np.array(right)))


@dataclass(frozen=True, eq=False)
class Measured:
    """Figures of one replay, and of its bootstrap samples."""

    replay: Replay
    once: NDArray[np.int64]
    samples: NDArray[np.int64]
    found: Mapping[str, Figures]
    again: Sequence[Mapping[str, Figures]]

    @classmethod
    def of(cls, replay: Replay, times: int, seed: int) -> Measured:
        """Return the figures with those of so many samples of the prompts."""
        once = np.ones(int(replay.table.owner.max()) + 1, dtype=np.int64)
        samples = resampled(len(once), times, seed)
        return cls(replay, once, samples, replay.figures(once), [replay.figures(counts) for counts in samples])

    def rivals(self) -> list[str]:
        """Return the names of those the router must lie above."""
        return [name for name in self.replay.curves if name not in (*OWN, ORACLE)]

    def behind(self) -> list[str]:
        """Return the rivals above which the router does not lie, with and without a cascade for everybody."""
        own = self.found[ROUTER]
        found = [
            name
            for name in self.rivals()
            if not (own.area > self.found[name].area and own.savings[PRIMARY] > self.found[name].savings[PRIMARY])
        ]
        saved, recovered = self.replay.place("always cascade", self.once)
        alone = saved if recovered >= LEVELS[PRIMARY] else 0.0
        most = self.found[ROUTER + CASCADE].savings[PRIMARY]
        found += [f"{name}{CASCADE}" for name in self.rivals() if self.found[name + CASCADE].savings[PRIMARY] >= most]
        return found + (["always cascade"] if most <= alone else [])

    def level(self) -> list[str]:
        """Return the rivals that are not significantly worse: the interval of the difference holds 0."""
        names = []
        for name in self.rivals():
            pairs = [(sample[ROUTER], sample[name]) for sample in self.again]
            area = np.quantile([own.area - other.area for own, other in pairs], 0.025)
            saving = np.quantile([own.savings[PRIMARY] - other.savings[PRIMARY] for own, other in pairs], 0.025)
            if min(area, saving) <= 0:
                names.append(name)
        return names
