"""Tasks whose success is drawn by laws that may change half-way, for the router to learn (`bench/learning.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from alphaloom.router.config import LearningSettings, Tier
from alphaloom.router.policy.learning import TIERS, Learner, TierOutcome, Way

Cell: TypeAlias = tuple[str, str]
Laws: TypeAlias = Mapping[Cell, Mapping[Tier, float]]
Strategy: TypeAlias = Callable[[str, Cell, Laws], Way]

PRICE: dict[Tier, float] = {"local": 0.0004, "frontier": 0.01}
"""Mean US dollars of a call."""
FAILURE = 0.002
"""US dollars of an invalid reply beside its price: the time of who waits."""
LAWS: dict[Cell, tuple[float, float, float]] = {
    ("summary", "low"): (0.95, 0.97, 0.99),
    ("summary", "high"): (0.55, 0.80, 0.96),
    ("factor", "low"): (0.80, 0.30, 0.97),
    ("factor", "high"): (0.25, 0.10, 0.92),
    ("critique", "low"): (0.35, 0.85, 0.96),
    ("critique", "high"): (0.05, 0.60, 0.90),
    ("code", "low"): (0.10, 0.10, 0.95),
    ("code", "high"): (0.03, 0.03, 0.85),
}
"""Success of the local model in the first and in the second half, and of the frontier model."""


HALF_LIFE = 100.0


def laws(half: int) -> Laws:
    """Return the laws of a half."""
    return {cell: {"local": each[half], "frontier": each[2]} for cell, each in LAWS.items()}


@dataclass
class World:
    """One course of tasks: draws success and price of each attempt from the seed, the task and the attempt."""

    seed: int
    tasks: int
    spent: float = 0.0
    below_floor: int = 0

    def play(self, strategy: Strategy, learn: Callable[[TierOutcome], None], halves: Sequence[Laws]) -> float:
        """Return US dollars for a valid reply."""
        chosen = np.random.default_rng([self.seed, 0]).integers(len(LAWS), size=self.tasks)
        for task, number in enumerate(chosen):
            now = halves[task * len(halves) // self.tasks]
            cell = list(LAWS)[number]
            luck = np.random.default_rng([self.seed, 1, task])
            attempt = 0
            while not self.ask(strategy(f"{task}.{attempt}", cell, now), cell, now, luck, learn):
                attempt += 1
        return self.spent / self.tasks

    def ask(
        self, way: Way, cell: Cell, now: Laws, luck: np.random.Generator, learn: Callable[[TierOutcome], None]
    ) -> bool:
        """Return whether one ask by one way ends in a valid reply."""
        self.below_floor += way == "local" and cell[1] == "high" and now[cell]["local"] < LearningSettings().floor
        tiers: tuple[Tier, ...] = TIERS if way == "cascade" else (way,)
        for tier in tiers:
            success, price = bool(luck.random() < now[cell][tier]), PRICE[tier] * float(luck.gamma(4, 0.25))
            self.spent += price + (0.0 if success else FAILURE)
            learn(TierOutcome(cell[0], tier, success, price, cell[1]))
            if success:
                return True
        return False


def always(way: Way) -> Strategy:
    """Return the strategy that takes one way."""
    return lambda key, cell, now: way


def learner(seed: int, **limits: object) -> Learner:
    """Return a learner that has seen nothing."""
    settings = LearningSettings.model_validate({"half_life": HALF_LIFE, **limits})
    return Learner(settings, seed, failure_usd=FAILURE)
