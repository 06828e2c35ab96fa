"""Laws of a worthless factor's daily RankIC: those that the gate's size is claimed for, and its limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .paths import Paths, clustered, remembered

BURN_IN = 100
"""Days before the first one, in which a variance that remembers forgets where it began."""


@dataclass(frozen=True)
class Law:
    """How daily shocks are drawn, and how slowly the factor changes that collects them.

    Attributes
    ----------
    persistence
        Autocorrelation of the factor from one day to the next; 1 for one that never changes. It makes no difference to
        labels of one day.
    symmetric
        Whether both tails may be counted; if not, only the upper one is.
    claimed
        Whether the gate claims its size for it, or this only shows where the claim ends.
    share
        Part of the draws: 4 for a quarter, where the tail is far from nominal or the excess shows early.
    """

    name: str
    shocks: Callable[[np.random.Generator, int, int], Paths]
    persistence: float = 1.0
    symmetric: bool = True
    claimed: bool = True
    share: int = 1


def normal(rng: np.random.Generator, paths: int, days: int) -> Paths:
    """Draw independent standard normals."""
    return rng.standard_normal((paths, days), dtype=np.float32)


def heavy(rng: np.random.Generator, paths: int, days: int) -> Paths:
    """Draw Student-t shocks with four degrees of freedom: a normal over the root of an exponential sum."""
    both = rng.random((2, paths, days), dtype=np.float32)
    gamma = -np.log(np.maximum(both[0] * both[1], np.float32(1e-12)))
    return np.asarray(normal(rng, paths, days) * np.sqrt(2 / gamma), dtype=np.float32)


def calm_and_wild(rng: np.random.Generator, paths: int, days: int) -> Paths:
    """Draw normals whose variance clusters: GARCH(1, 1) with 0.1 and 0.88."""
    drawn = normal(rng, paths, days + BURN_IN)
    clustered(drawn, 0.1, 0.88, 0.0)
    return drawn[:, BURN_IN:]


def heavy_and_clustered(rng: np.random.Generator, paths: int, days: int) -> Paths:
    """Draw Student-t shocks whose variance clusters: the same GARCH, driven by t(4) of variance 1."""
    drawn = heavy(rng, paths, days + BURN_IN) * np.float32(np.sqrt(0.5))
    clustered(drawn, 0.1, 0.88, 0.0)
    return drawn[:, BURN_IN:]


def skewed(bend: float) -> Callable[[np.random.Generator, int, int], Paths]:
    """Return a law that falls further than it rises: `z - bend (z^2 - 1)`, skewness about `-6 bend`."""

    def draw(rng: np.random.Generator, paths: int, days: int) -> Paths:
        drawn = normal(rng, paths, days)
        return np.asarray(drawn - np.float32(bend) * (drawn**2 - 1), dtype=np.float32)

    return draw


def wilder_after_falls(rng: np.random.Generator, paths: int, days: int) -> Paths:
    """Draw normals whose variance rises after falls only: the leverage of a whole stock market."""
    drawn = normal(rng, paths, days + BURN_IN)
    clustered(drawn, 0.03, 0.88, 0.14)
    return drawn[:, BURN_IN:]


def with_memory(rng: np.random.Generator, paths: int, days: int) -> Paths:
    """Draw normals with an autocorrelation of 0.035 from one day to the next."""
    drawn = normal(rng, paths, days)
    remembered(drawn, 0.035)
    return drawn


LAWS = (
    Law("flat factor, normal shocks", normal),
    Law("factor that keeps 0.99 a day", normal, persistence=0.99, share=4),
    Law("factor that keeps 0.9 a day", normal, persistence=0.9, share=4),
    Law("factor that keeps 0.5 a day", normal, persistence=0.5, share=4),
    Law("flat factor, heavy tails (t4)", heavy),
    Law("flat factor, clustered (GARCH)", calm_and_wild),
    Law("flat factor, heavy and clustered", heavy_and_clustered),
)
LIMITS = (
    Law("skewness -0.13", skewed(0.0217), symmetric=False, claimed=False, share=10),
    Law("skewness -0.5", skewed(0.0845), symmetric=False, claimed=False, share=10),
    Law("wilder after falls (GJR 0.14)", wilder_after_falls, symmetric=False, claimed=False, share=10),
    Law("shocks that keep 0.035 a day", with_memory, claimed=False, share=10),
)
