"""The candidate pool: formulas drawn at random, which represent everything that could be written and is not scored.

The pool is a large sample of the plain part of the language (`factors.space`: a few nodes, no groups, no conditions). It
shows where the scores promise something, and how much a score of each candidate would tell about the rest. No return is read
here. `CrossProducts` keeps the rank products between the pool and the scored formulas. `Samples` shares a pool between the
runs on one panel.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...evidence import Window
from ...factors import Expression, FactorError, Node, express
from ...factors.space import sample_plain, select_fields
from ...market import Panel
from .basis import Basis, lengths
from .subsample import SubsampledPanel

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

Frame = NDArray[np.float64]


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
        """Return the ranks of the members, ``[at most REFERENCE_FORMULAS, cells]``, that others are measured by after so many scores.

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


@dataclass(eq=False)
class CrossProducts:
    """Keeps products of ranks, so that each is worked out once.

    Attributes
    ----------
    sample : CandidatePool
        Its parts are followed.
    ids : tuple of str
        The scored formulas, ``K``, of the last time.
    products : list of NDArray[np.float32]
        ``[rows, K]`` for each part of the sample: whole numbers, so exact.
    """

    sample: CandidatePool
    ids: tuple[str, ...] = ()
    products: list[NDArray[np.float32]] = field(default_factory=list)
    _lengths: list[Frame] = field(default_factory=list, init=False)

    def follow(self, basis: Basis) -> None:
        """Work out what is new: formulas that were scored since, and further parts of the sample."""
        old = {name: place for place, name in enumerate(self.ids)}
        stay = [place for place, name in enumerate(basis.ids) if name in old]
        before = [old[basis.ids[place]] for place in stay]
        fresh = [place for place, name in enumerate(basis.ids) if name not in old]
        products, own = list(self.products), list(self._lengths)
        for at, part in enumerate(self.sample.parts):
            known = at < len(self.products)
            if known and self.ids == basis.ids:
                continue
            ranks = part.astype(np.float32)
            asked = fresh if known else range(len(basis.ids))
            found = np.empty((len(part), len(basis.ids)), np.float32)
            if len(asked):
                found[:, asked] = ranks @ basis.looks[asked].T
            if known:
                found[:, stay] = self.products[at][:, before]
                products[at] = found
            else:
                products.append(found)
                own.append(lengths(ranks))
        self.products, self._lengths, self.ids = products, own, basis.ids  # all or, where memory ends before, nothing

    def across(self, basis: Basis, part: int) -> Frame:
        """Return the rank correlations of a part with the scored formulas that were followed last, ``[rows, K]``."""
        return np.asarray(self.products[part] / np.outer(self._lengths[part], basis.lengths), np.float64)

    def rows(self, basis: Basis, places: Sequence[int]) -> Frame:
        """Return those of some members, ``[places, K]``."""
        found, own = np.zeros((len(places), len(basis.ids))), np.zeros(len(places))
        for row, (part, at) in enumerate(map(self.sample.place, places)):
            found[row], own[row] = self.products[part][at], self._lengths[part][at]
        return found / np.outer(own, basis.lengths) if basis.ids else found


@dataclass(frozen=True, eq=False)
class Sample:
    """Looks at a panel, the sample of what could be written, and whose turn it is to ask them: tools answer on threads."""

    thin: SubsampledPanel
    population: CandidatePool
    turn: AbstractContextManager[Any] = field(default_factory=RLock)


class Samples:
    """Keeps a sample for each panel, window and set of fields.

    It hangs on no run. It takes 75 MB on a small panel, and more as scores ask for a larger part of the language; where
    two hundred callers have runs of their own, that is not to be had for each.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[Panel, Window, tuple[str, ...]], Sample] = {}
        self._turn = RLock()

    def sample(self, panel: Panel, window: Window, fields: Sequence[str]) -> Sample:
        """Return the sample of a panel's window and fields; the same for whoever asks."""
        key = panel, window, tuple(fields)
        with self._turn:
            if key not in self._kept:
                thin = SubsampledPanel(panel, window)
                self._kept[key] = Sample(thin, CandidatePool(thin, key[2]))
            return self._kept[key]
