"""What every method is given, and what it answers."""

from __future__ import annotations

import resource
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from alphaloom.factors import Expression, parse

from ..choice import centred_ranks
from ..pursuit import Distinct, by_gain
from ..world import Ground

__all__ = ["Allowance", "Answer", "Factor", "Meter", "Method", "cpu_seconds", "preferred", "tried"]

Values = NDArray[np.float32]
PUT_IN_ORDER = 400
"""How many that differ are put in order, the strongest of all that were tried, however many those are."""
TOGETHER, SKETCHED = 64, 10
"""How many are looked at together; of the days that are looked at, every tenth tells near-copies."""
ORDERED = 30
"""How many are put in order: ten, and some to spare where two turn out to be alike on all days."""
STEP = 5
"""Every fifth day is looked at for it: labels of five days overlap."""


@dataclass(frozen=True)
class Allowance:
    """What a method may spend: evaluations, or CPU seconds where they are given."""

    evaluations: int
    cpu_s: float | None = None

    def __str__(self) -> str:
        """Say it."""
        return f"{self.evaluations:,} evaluations" if self.cpu_s is None else f"{self.cpu_s:.0f} CPU seconds"


@dataclass(frozen=True)
class Factor:
    """One factor of an answer: a formula, or a name with values `[T, N]` on all days of the panel."""

    text: str
    t: float
    values: Values | None = None


@dataclass(frozen=True)
class Answer:
    """The factors of a method, best first; `combined` `[T, N]` is its own score (None: the common one)."""

    factors: tuple[Factor, ...]
    evaluations: int
    combined: Values | None = None
    more: dict[str, Any] = field(default_factory=dict)


class Method(Protocol):
    """A way to search.

    `fixed` says that it looks at a fixed list, which more time does not change.
    """

    @property
    def name(self) -> str:
        """Return what tables call it."""

    @property
    def fixed(self) -> bool:
        """Tell whether it tries a fixed list."""

    def missing(self) -> str:
        """Say why it cannot run here, or nothing."""

    def state(self) -> str:
        """Return a digest of what decides its findings besides its own module, or nothing."""

    def search(self, ground: Ground, allowance: Allowance, seed: int) -> Answer:
        """Search; labels of search days are all that may be fitted on."""


class Meter:
    """Counts what a method spends."""

    def __init__(self, allowance: Allowance) -> None:
        self.allowance = allowance
        self.evaluations = 0
        self._began = cpu_seconds()

    @property
    def open(self) -> bool:
        """Tell whether there is anything left."""
        if self.allowance.cpu_s is None:
            return self.evaluations < self.allowance.evaluations
        return self.spent < self.allowance.cpu_s

    @property
    def spent(self) -> float:
        """Return the CPU seconds since the meter was made, those of ended child processes included."""
        return cpu_seconds() - self._began


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of its children that have ended."""
    parts = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in parts)


def tried(ground: Ground, drawn: Iterable[Expression], allowance: Allowance) -> Answer:
    """Score formulas as they are drawn, each form once, until the allowance ends; in the order of what each adds."""
    meter, seen, found = Meter(allowance), set(), []
    for expression in drawn:
        if not meter.open:
            break
        if expression.core in seen:
            continue
        seen.add(expression.core)
        meter.evaluations += 1
        found.append(Factor(expression.text, ground.score(expression).t))
    return Answer(tuple(preferred(ground, found)), meter.evaluations)


def preferred(ground: Ground, found: Sequence[Factor]) -> list[Factor]:
    """Return the formulas in the order of what each adds to those before.

    The strongest are looked at, near-copies of stronger ones left out, or they would fill the places of what is faint.
    What reads the level of back-adjusted prices is left out too, as Alphaloom's evaluator does.
    """
    strongest = iter(sorted(found, key=lambda factor: (-abs(factor.t), factor.text)))
    days = slice(None, None, STEP)
    there = ~np.isnan(ground.label[days])
    label = centred_ranks(np.ascontiguousarray(ground.label[days]))[there]
    kept, factors, columns = Distinct(PUT_IN_ORDER), [], []
    while not kept.full and (some := list(islice(strongest, TOGETHER))):
        honest = [factor for factor in some if not ground.levels.objection(parse(factor.text))]
        for factor, values in zip(honest, ground.engine.stream([candidate.text for candidate in honest]), strict=True):
            ranks = centred_ranks(np.ascontiguousarray(values[days]))
            if kept.takes(ranks[::SKETCHED].ravel()):
                factors.append(factor)
                columns.append(ranks[there])
    return [factors[place] for place in by_gain(columns, label, most=ORDERED)]
