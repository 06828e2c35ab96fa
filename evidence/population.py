"""Formulas drawn at random: they stand for all that could be written and that nobody has scored.

A search that is to find what nobody thought of asks first what there is. A sample of the plain part of the language tells it
(`factors.plain`: a few nodes, no groups, no conditions), and of each draft how much of that its score would tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..factors import Expression, FactorError, Node, express
from ..factors.plain import drawn_from, sample_plain
from .thin import Thin

__all__ = ["Population"]

COUNT = 320
"""Formulas of a sample."""
SCORES_A_SAMPLE = 64
"""Scores after which another sample is drawn: what is scored would grow to fit the few that it was chosen by."""
GIVE_UP = 20
"""Times as many draws after which a smaller sample will do: a panel of one field has few formulas."""


@dataclass(eq=False)
class Population:
    """Draws formulas of some fields and looks at them.

    Which ones depends on the panel, the fields and how many were scored, on no seed: a sample is a ruler, and every campaign
    of a panel measures by the same. One thread asks at a time.
    """

    thin: Thin
    fields: Sequence[str]
    _sample: int = field(default=-1, init=False)
    _ranks: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32), init=False)

    def ranks(self, scored: int) -> NDArray[np.float32]:
        """Return the ranks of the formulas, ``[J, cells]``, that stand for all where so many were scored."""
        if self._sample != scored // SCORES_A_SAMPLE:
            self._sample = scored // SCORES_A_SAMPLE
            looks = self.thin.look(self._drawn(np.random.default_rng(self._sample)))
            seen = [look.ranks for look in looks if look.ranks.any()]
            self._ranks = np.array(seen) if seen else np.zeros((0, self.thin.cells), np.float32)
        return self._ranks

    def _drawn(self, rng: np.random.Generator) -> list[Expression]:
        names = drawn_from(sorted(self.fields))
        found: dict[str, Expression] = {}
        for _ in range(GIVE_UP * COUNT):
            tree = sample_plain(rng, names)
            one = self._read(tree) if tree is not None else None
            if one is not None and one.id not in found and not self.thin.knows_later(one):
                found[one.id] = one
            if len(found) == COUNT:
                break
        return list(found.values())

    def _read(self, tree: Node) -> Expression | None:
        try:
            return express(tree, fields=tuple(self.fields))
        except FactorError:
            return None
