"""The RankIC of factors drawn at random on the synthetic market, through the very labels of the gate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from alphaloom.evidence import EvidenceSettings
from alphaloom.evidence.scoring.scorer import Scorer
from alphaloom.factors import rank_rows
from alphaloom.market import Panel, SyntheticConfig, simulate

from .paths import Paths

NAMES = 100
POOL = 5_000
"""Orders of the names that are drawn for each window."""
KEPT = (None, 20, 5, 1)
"""Days for which a random factor keeps its order of names: for good, a month, a week, a day."""
EARLY = 250
"""Days before the first window, in which betas and sizes become known."""


@dataclass(frozen=True)
class Span:
    """The ranked labels of one window, `[days, names]`, each row of mean 0 and length 1."""

    ranks: NDArray[np.float32]

    def pool(self, rng: np.random.Generator, orders: int = POOL) -> Paths:
        """Return the RankIC of each day with each of so many random orders of the names, `[orders, days]`."""
        names = self.ranks.shape[1]
        drawn = rng.permuted(np.tile(np.arange(names, dtype=np.float32), (orders, 1)), axis=1)
        return unit(drawn) @ self.ranks.T


def unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return rows with mean 0 and length 1."""
    centred = rows - rows.mean(axis=1, keepdims=True)
    return np.asarray(centred / np.sqrt((centred**2).sum(axis=1, keepdims=True)), dtype=np.float32)


def held(pool: Paths, kept: int | None, rng: np.random.Generator) -> Paths:
    """Return series of factors that draw a new order every so many days, as many as the pool has orders."""
    if kept is None:
        return pool
    orders, days = pool.shape
    chosen = rng.integers(orders, size=(orders, -(-days // kept)))
    return np.take_along_axis(pool, np.repeat(chosen, kept, axis=1)[:, :days], axis=0)


def listed(seed: int, days: int) -> Panel:
    """Return a market with nothing in it, on which every name trades every day, so that all ranks are complete."""
    always = {"late_listings": 0.0, "delistings": 0.0, "halts": 0.0}
    return simulate(SyntheticConfig(seed=seed, days=days, names=NAMES, nothing=True, **always)).panel


def spans(panel: Panel, horizon: int, days: int) -> Iterator[Span]:
    """Yield the windows of a market, one after the other with no label in common."""
    label = Scorer(panel, EvidenceSettings(horizon_days=horizon)).label(horizon)
    for start in range(EARLY, panel.days - days - horizon, days + horizon + 1):
        yield Span(unit(np.asarray(rank_rows(label[start : start + days]), dtype=np.float32)))
