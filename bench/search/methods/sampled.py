"""Random search over the very grammar that the plants are drawn from: as strong as blind search can be here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from alphaloom.factors import Expression
from alphaloom.factors.space.planted import GRAMMAR, draw_plausible
from alphaloom.ledger import compute_digest

from ..market import PLANTS
from ..world import Ground
from .method import Allowance, Answer, tried

__all__ = ["Sampled"]

STREAM = 0x5A3B
"""Keeps its draws apart from those of the plants, which come from the same seed."""


@dataclass(frozen=True)
class Sampled:
    """Draws formulas with the sizes, operators, windows and wrappers of the plants."""

    name: str = "random, the plants' grammar"
    fixed: bool = False

    def missing(self) -> str:
        """Say nothing: it always runs."""
        return ""

    def state(self) -> str:
        """Return the digest of the grammar."""
        return compute_digest(repr(GRAMMAR))[:8]

    def search(self, ground: Ground, allowance: Allowance, seed: int) -> Answer:
        """Draw and score."""
        return tried(ground, _drawn(ground, seed), allowance)


def _drawn(ground: Ground, seed: int) -> Iterator[Expression]:
    """Draw without end what this panel's columns can express."""
    rng, columns = np.random.default_rng([seed, STREAM]), frozenset(ground.panel.fields)
    while True:
        yield from (expression for expression in draw_plausible(rng, PLANTS.nodes) if expression.fields <= columns)
