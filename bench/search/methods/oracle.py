"""Not a rival but the bar: the true formulas, with weights that are fitted on search days like everybody's."""

from __future__ import annotations

from dataclasses import dataclass

from alphaloom.factors import parse
from alphaloom.ledger import compute_digest

from ..world import Alpha, Ground
from .method import Allowance, Answer, Factor

__all__ = ["NAMES", "Oracle"]

NAMES = ("oracle", "oracle of the living")


@dataclass(frozen=True)
class Oracle:
    """Knows every planted formula, or those only that live in the sealed span."""

    alphas: tuple[Alpha, ...]
    living: bool = False
    fixed: bool = True

    @property
    def name(self) -> str:
        """Return what tables call it."""
        return NAMES[self.living]

    def missing(self) -> str:
        """Say nothing: it always runs."""
        return ""

    def state(self) -> str:
        """Return what it knows."""
        return self.name + compute_digest([alpha.text for alpha in self.alphas])[:8]

    def search(self, ground: Ground, allowance: Allowance, seed: int) -> Answer:
        """Return the truth."""
        told = [alpha for alpha in self.alphas if alpha.alive or not self.living]
        factors = [Factor(alpha.text, ground.score(parse(alpha.text)).t) for alpha in told]
        return Answer(tuple(sorted(factors, key=lambda factor: -abs(factor.t))), len(factors))
