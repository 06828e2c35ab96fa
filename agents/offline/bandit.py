"""Which change to try next: Thompson sampling over operators, given the parent's weakness.

Every operator's chance to better its parent has a Beta belief; one value is drawn of each, and the operator of the highest
is tried (Thompson 1933, Biometrika 25, 285). The prior of an operator with weight w is Beta(w, 1): minus the logarithm of a
draw is then exponential with rate w, so without data each operator is tried in proportion to its weight, exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..memory.operators import ANY_WEAKNESS, NO_WEAKNESS

__all__ = ["Bandit"]

OTHER_WEAKNESS_WEIGHT, MAX_OTHER_WEAKNESS_TRIES = 0.2, 8.0
"""What a try on parents with other weaknesses counts, and how many all of these count at most: they are a first guess."""
MAX_EFFECTIVE_TRIES = 40.0
"""Tries that a belief rests on at most: what helps changes while a search goes on, and an operator may win again."""


@dataclass(frozen=True)
class Bandit:
    """Chooses operators by what they did; `seen` holds `(tried, better)` by operator and weakness, `any` for all together."""

    seen: Mapping[tuple[str, str], tuple[float, float]]

    @classmethod
    def taught(cls, rows: Sequence[Any]) -> Bandit:
        """Return the bandit that has read the rows of a prompt, `{operator, where, tried, better}`; others are passed over."""
        told = [row for row in rows if isinstance(row, dict) and {"operator", "where", "tried", "better"} <= {*row}]
        return cls({(row["operator"], row["where"]): (float(row["tried"]), float(row["better"])) for row in told})

    def choose(self, weights: Mapping[str, float], where: str, rng: np.random.Generator) -> str:
        """Return one operator of those with a weight above 0, for a parent with this weakness."""
        drawn = {}
        for name, weight in weights.items():
            tried, better = self.evidence(name, where)
            drawn[name] = rng.beta(weight + better, 1.0 + tried - better)
        return max(drawn, key=lambda name: drawn[name])

    def evidence(self, operator: str, where: str = NO_WEAKNESS) -> tuple[float, float]:
        """Return the tries and successes that the belief of an operator rests on."""
        tried, better = self.seen.get((operator, where), (0.0, 0.0))
        all_tried, all_better = self.seen.get((operator, ANY_WEAKNESS), (tried, better))
        other, share = all_tried - tried, _try_weight(all_tried - tried)
        tried, better = tried + share * other, better + share * (all_better - better)
        whole = min(1.0, MAX_EFFECTIVE_TRIES / tried) if tried else 1.0
        return whole * tried, whole * better


def _try_weight(tried: float) -> float:
    """Return what each of so many tries on parents with other weaknesses counts."""
    return min(OTHER_WEAKNESS_WEIGHT, MAX_OTHER_WEAKNESS_TRIES / tried) if tried else 0.0
