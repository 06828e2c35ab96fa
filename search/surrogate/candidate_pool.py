"""Formulas drawn at random: they stand for all that could be written and that nobody has scored.

A search that is to find what nobody thought of asks first what there is. A large sample of the plain part of the language
tells it (`factors.space.search_space`: a few nodes, no groups, no conditions): where scores let expect something, and of each draft how
much of all this its score would tell. No return is looked at here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from ...factors import Expression, FactorError, Node, express
from ...factors.space import sample_plain, select_fields
from .subsample import SubsampledPanel

__all__ = ["CandidatePool"]

MAX_POOL_FORMULAS, POOL_STEP_FORMULAS = 24_000, 500
"""Formulas of the whole sample, and how many are drawn at a time: a short campaign need not look at all of them."""
FORMULAS_PER_SCORE = 16
"""Formulas that each score asks for beside the first `POOL_STEP_FORMULAS`."""
REFERENCE_FORMULAS = 320
"""Formulas of the part that others are measured by."""
SCORES_PER_REFERENCE = 64
"""Scores after which the next part is the ruler: what is scored would grow to fit the few that it was chosen by."""
MAX_REFERENCES_KEPT = 4
"""Rulers that are kept: runs that share a sample are not all as far."""
IDLE_DRAWS_PER_FORMULA = 20
"""Times as many draws after which a smaller sample will do: a panel of one field has few formulas."""


@dataclass(eq=False)
class CandidatePool:
    """Draws formulas of some fields and looks at them; it grows with what is scored, and what was drawn stays.

    Which ones depends on the panel, the fields and how many were scored, on no seed: a sample is a ruler, and every campaign
    of a panel measures by the same. One thread asks at a time.

    Attributes
    ----------
    members : list of Expression
        The formulas, ``J`` of them, in the order in which they were drawn.
    parts : list of NDArray[np.int8]
        Their ranks, ``[rows, cells]`` each, ``J`` rows between them: of at most `MAX_SAMPLE_NAMES` names, so within 127.
    thin : list of bool
        Whether too few names have a value, or too many the same.
    """

    at: SubsampledPanel
    fields: Sequence[str]
    members: list[Expression] = field(default_factory=list, init=False)
    parts: list[NDArray[np.int8]] = field(default_factory=list, init=False)
    thin: list[bool] = field(default_factory=list, init=False)
    _firsts: list[int] = field(default_factory=list, init=False)
    _rulers: OrderedDict[range, NDArray[np.float32]] = field(default_factory=OrderedDict, init=False)

    def size(self, scored: int) -> int:
        """Return how many of the first members stand for all after so many scores; what is missing is drawn."""
        asked = min(MAX_POOL_FORMULAS, POOL_STEP_FORMULAS + FORMULAS_PER_SCORE * scored)
        while len(self.members) < asked and self._draw_step():
            pass
        return min(len(self.members), asked)

    def ruler(self, scored: int) -> NDArray[np.float32]:
        """Return the ranks of the members, ``[at most RULER, cells]``, that others are measured by after so many scores.

        The same array while they are the same and few others are asked for.
        """
        turn = scored // SCORES_PER_REFERENCE
        size = self.size(turn * SCORES_PER_REFERENCE)
        first = turn % max(size // REFERENCE_FORMULAS, 1) * REFERENCE_FORMULAS
        asked = range(first, min(first + REFERENCE_FORMULAS, size))
        if asked not in self._rulers:
            self._rulers[asked] = self.ranks(asked)
        self._rulers.move_to_end(asked)
        while len(self._rulers) > MAX_REFERENCES_KEPT:
            self._rulers.popitem(last=False)
        return self._rulers[asked]

    def ranks(self, places: Sequence[int]) -> NDArray[np.float32]:
        """Return the ranks of some members, ``[places, cells]``."""
        found = np.zeros((len(places), self.at.cells), np.float32)
        for row, (part, at) in enumerate(map(self.place, places)):
            found[row] = self.parts[part][at]
        return found

    def place(self, member: int) -> tuple[int, int]:
        """Return the part in which a member lies, and its row there."""
        part = bisect_right(self._firsts, member) - 1
        return part, member - self._firsts[part]

    def _draw_step(self) -> bool:
        """Draw as many as a step holds; say whether any of them orders names."""
        drawn = list(islice(self._fresh, POOL_STEP_FORMULAS))
        looks = self.at.look(drawn)
        seen = [(one, look) for one, look in zip(drawn, looks, strict=True) if look.ranks.any()]
        if seen:
            self._firsts.append(len(self.members))
            self.members += [one for one, _ in seen]
            self.thin += [look.thin for _, look in seen]
            self.parts.append(np.array([look.ranks for _, look in seen]).astype(np.int8))
        return bool(seen)

    @cached_property
    def _fresh(self) -> Iterator[Expression]:
        """Yield formulas, each once, that may be looked at; it ends where nothing new is found."""
        rng, names, known, idle = np.random.default_rng(0), select_fields(sorted(self.fields)), set[str](), 0
        while idle < IDLE_DRAWS_PER_FORMULA * REFERENCE_FORMULAS:
            tree = sample_plain(rng, names)
            one = self._read(tree) if tree is not None else None
            idle += 1
            if one is not None and one.id not in known and not self.at.knows_later(one):
                known.add(one.id)
                idle = 0
                yield one

    def _read(self, tree: Node) -> Expression | None:
        try:
            return express(tree, fields=tuple(self.fields))
        except FactorError:
            return None
