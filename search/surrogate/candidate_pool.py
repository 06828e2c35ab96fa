"""The candidate pool: random formulas, which represent everything that could be written and is not scored.

The pool is a large sample of the plain part of the language (`factors.space`: a few nodes, no groups, no conditions).
It shows where the scores are promising, and how much information a score of each candidate would give about the rest.
No return is read here. `CrossProducts` caches the rank products between the pool and the scored formulas. `Samples`
shares a pool between the runs on one panel.
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
from .gaussian_process import GaussianProcess, lengths
from .subsample import SubsampledPanel

MAX_POOL_FORMULAS, POOL_STEP_FORMULAS = 24_000, 500
"""Largest size of the pool, and formulas per draw: a short campaign does not need them all."""
FORMULAS_PER_SCORE = 16
"""Formulas by which each score enlarges the pool, after the first `POOL_STEP_FORMULAS`."""
REFERENCE_FORMULAS = 320
"""Reference formulas: the part of the pool for which information is measured."""
SCORES_PER_REFERENCE = 64
"""Scores after which the next part of the pool is the reference, or scored formulas would overfit one reference."""
MAX_REFERENCES_KEPT = 4
"""References cached in memory: runs that share a pool have different numbers of scores."""
IDLE_DRAWS_PER_FORMULA = 20
"""Draws without a new formula, per reference formula, that end the pool: a panel of one field has few formulas."""

Frame = NDArray[np.float64]


@dataclass(eq=False)
class CandidatePool:
    """Draws random formulas of some fields and ranks their values; it grows with the number of scores.

    The members depend on the panel, the fields and the number of scores, not on a seed: every campaign on a panel uses
    the same pool. The pool is not thread-safe.

    Attributes
    ----------
    members : list of Expression
        The ``J`` formulas, in the order in which they were drawn.
    parts : list of NDArray[np.int8]
        Their ranks, ``[rows, cells]`` each, ``J`` rows together. They are of at most `MAX_SAMPLE_NAMES` names, so
        within 127.
    thin : list of bool
        Whether too few names have a value, or too many have the same.
    """

    at: SubsampledPanel
    fields: Sequence[str]
    members: list[Expression] = field(default_factory=list, init=False)
    parts: list[NDArray[np.int8]] = field(default_factory=list, init=False)
    thin: list[bool] = field(default_factory=list, init=False)
    _firsts: list[int] = field(default_factory=list, init=False)
    _references: OrderedDict[range, NDArray[np.float32]] = field(default_factory=OrderedDict, init=False)

    def size(self, scored: int) -> int:
        """Grow the pool to ``500 + 16 * scored`` members (at most 24,000) and return its size."""
        wanted_size = min(MAX_POOL_FORMULAS, POOL_STEP_FORMULAS + FORMULAS_PER_SCORE * scored)
        while len(self.members) < wanted_size and self._draw_step():
            pass
        return min(len(self.members), wanted_size)

    def get_reference_ranks(self, scored: int) -> NDArray[np.float32]:
        """Return the ranks of the reference formulas after so many scores, ``[at most REFERENCE_FORMULAS, cells]``.

        The array is cached: the same reference is the same array while at most `MAX_REFERENCES_KEPT` are in use.
        """
        reference_number = scored // SCORES_PER_REFERENCE
        size = self.size(reference_number * SCORES_PER_REFERENCE)
        first = reference_number % max(size // REFERENCE_FORMULAS, 1) * REFERENCE_FORMULAS
        places = range(first, min(first + REFERENCE_FORMULAS, size))
        if places not in self._references:
            self._references[places] = self.ranks(places)
        self._references.move_to_end(places)
        while len(self._references) > MAX_REFERENCES_KEPT:
            self._references.popitem(last=False)
        return self._references[places]

    def ranks(self, places: Sequence[int]) -> NDArray[np.float32]:
        """Return the ranks of members by place, ``[places, cells]``."""
        ranks = np.zeros((len(places), self.at.cells), np.float32)
        for row, (part, part_row) in enumerate(map(self.place, places)):
            ranks[row] = self.parts[part][part_row]
        return ranks

    def place(self, member: int) -> tuple[int, int]:
        """Return the part that has a member, and its row there."""
        part = bisect_right(self._firsts, member) - 1
        return part, member - self._firsts[part]

    def _draw_step(self) -> bool:
        """Draw the formulas of one step; return whether any of them orders names."""
        formulas = list(islice(self._new_formulas, POOL_STEP_FORMULAS))
        fingerprints = self.at.fingerprint(formulas)
        ordering = [
            (formula, fingerprint)
            for formula, fingerprint in zip(formulas, fingerprints, strict=True)
            if fingerprint.ranks.any()
        ]
        if ordering:
            self._firsts.append(len(self.members))
            self.members += [formula for formula, _ in ordering]
            self.thin += [fingerprint.thin for _, fingerprint in ordering]
            self.parts.append(np.array([fingerprint.ranks for _, fingerprint in ordering]).astype(np.int8))
        return bool(ordering)

    @cached_property
    def _new_formulas(self) -> Iterator[Expression]:
        """Yield formulas without look-ahead, each once; end after many draws without a new one."""
        rng, names, known_ids, idle = np.random.default_rng(0), select_fields(sorted(self.fields)), set[str](), 0
        while idle < IDLE_DRAWS_PER_FORMULA * REFERENCE_FORMULAS:
            tree = sample_plain(rng, names)
            formula = self._parse_tree(tree) if tree is not None else None
            idle += 1
            if formula is not None and formula.id not in known_ids and not self.at.reads_price_level(formula):
                known_ids.add(formula.id)
                idle = 0
                yield formula

    def _parse_tree(self, tree: Node) -> Expression | None:
        try:
            return express(tree, fields=tuple(self.fields))
        except FactorError:
            return None


@dataclass(eq=False)
class CrossProducts:
    """Caches the rank products between the parts of a pool and the scored formulas, so that each is computed once.

    Attributes
    ----------
    sample : CandidatePool
        The pool.
    ids : tuple of str
        The ``K`` scored formulas of the last update.
    products : list of NDArray[np.float32]
        ``[rows, K]`` for each part of the pool: integers, and therefore exact.
    """

    sample: CandidatePool
    ids: tuple[str, ...] = ()
    products: list[NDArray[np.float32]] = field(default_factory=list)
    _lengths: list[Frame] = field(default_factory=list, init=False)

    def update(self, basis: GaussianProcess) -> None:
        """Add the products of newly scored formulas and of new parts of the pool."""
        old = {name: place for place, name in enumerate(self.ids)}
        stay = [place for place, name in enumerate(basis.ids) if name in old]
        before = [old[basis.ids[place]] for place in stay]
        fresh = [place for place, name in enumerate(basis.ids) if name not in old]
        products, part_lengths = list(self.products), list(self._lengths)
        for place_of_part, part in enumerate(self.sample.parts):
            is_known = place_of_part < len(self.products)
            if is_known and self.ids == basis.ids:
                continue
            ranks = part.astype(np.float32)
            wanted_places = fresh if is_known else range(len(basis.ids))
            part_products = np.empty((len(part), len(basis.ids)), np.float32)
            if len(wanted_places):
                part_products[:, wanted_places] = ranks @ basis.ranks[wanted_places].T
            if is_known:
                part_products[:, stay] = self.products[place_of_part][:, before]
                products[place_of_part] = part_products
            else:
                products.append(part_products)
                part_lengths.append(lengths(ranks))
        self.products, self._lengths, self.ids = (
            products,
            part_lengths,
            basis.ids,
        )  # set together, so that running out of memory changes nothing

    def across(self, basis: GaussianProcess, part: int) -> Frame:
        """Return the rank correlations of a part with the scored formulas of the last update, ``[rows, K]``."""
        return np.asarray(self.products[part] / np.outer(self._lengths[part], basis.lengths), np.float64)

    def rows(self, basis: GaussianProcess, places: Sequence[int]) -> Frame:
        """Return the rank correlations of members by place with the scored formulas, ``[places, K]``."""
        products, row_lengths = np.zeros((len(places), len(basis.ids))), np.zeros(len(places))
        for row, (part, part_row) in enumerate(map(self.sample.place, places)):
            products[row], row_lengths[row] = self.products[part][part_row], self._lengths[part][part_row]
        return products / np.outer(row_lengths, basis.lengths) if basis.ids else products


@dataclass(frozen=True, eq=False)
class Sample:
    """A subsampled panel with its candidate pool, and the lock for them: tools run on threads."""

    thin: SubsampledPanel
    population: CandidatePool
    turn: AbstractContextManager[Any] = field(default_factory=RLock)


class Samples:
    """Caches a sample for each panel, window and set of fields, independent of any run.

    A sample takes 75 MB on a small panel, the buffers of a batch beside (64 arrays of at most 64 names), and more as
    scores enlarge the pool: too much for each run of a server with two hundred callers.
    """

    def __init__(self) -> None:
        self._samples: dict[tuple[Panel, Window, tuple[str, ...]], Sample] = {}
        self._lock = RLock()

    def sample(self, panel: Panel, window: Window, fields: Sequence[str]) -> Sample:
        """Return the sample of a panel's window and fields, the same object for all callers."""
        key = panel, window, tuple(fields)
        with self._lock:
            if key not in self._samples:
                thin = SubsampledPanel(panel, window)
                self._samples[key] = Sample(thin, CandidatePool(thin, key[2]))
            return self._samples[key]
