"""Marks: the ids and small scores that stand for formulas in the graph's state; and one branch's piece of work."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..factors.describe import natural_sort_key
from .search_context import AgentJournal

MAX_BRANCHES = 1_000


class Mark(NamedTuple):
    """A scored formula: t of its search RankIC, its id, the key of the attempt that found it, and its place in the archive."""

    t: float
    id: str
    key: str
    niche: str = ""

    @property
    def branch(self) -> str:
        """Return the key of its hypothesis."""
        return "/".join(self.key.split("/")[:2])


def finite_or_none(value: object) -> float | None:
    """Return a number as a float, and None for what is missing or not finite."""
    if isinstance(value, (int, float)) and math.isfinite(value):
        return float(value)
    return None


def round_for_prompt(value: Any) -> Any:
    """Return plain data as a prompt tells it: numbers by three digits that count, and None for what is not finite.

    A RankIC is known to a tenth of itself at best; more digits say nothing to a reader, and each is paid for.
    """
    if isinstance(value, dict):
        return {name: round_for_prompt(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [round_for_prompt(each) for each in value]
    if isinstance(value, float):
        return finite_or_none(float(f"{value:.3g}"))
    return value


def rank_marks(marks: Iterable[Mark], limit: int) -> list[Mark]:
    """Return the strongest by |t|, one per id; ties by id, so that the order of arrival never shows."""
    ordered = sorted(marks, key=lambda mark: (-abs(mark.t), mark.id, natural_sort_key(mark.key)))
    first: dict[str, Mark] = {}
    for mark in ordered:
        first.setdefault(mark.id, mark)
    return list(first.values())[:limit]


@dataclass(frozen=True)
class Work:
    """One branch's piece of work in one super-step; all that it sees was recorded before the step began."""

    branch: str
    step: int
    attempt: int
    count: int
    best: tuple[Mark, ...] = ()
    elite: tuple[Mark, ...] = ()
    refused: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Return the key of the proposal: branch, step and attempt."""
        return f"{self.branch}/s{self.step}/a{self.attempt}"

    @property
    def round_key(self) -> str:
        """Return the key of the round."""
        return self.branch.split("/")[0]

    def attempts(self) -> list[str]:
        """Return the keys of the formulas to come; a repaired formula keeps its number."""
        if self.refused:
            return [f"{key.rpartition('/')[0]}/a{self.attempt}" for key in self.refused]
        return [f"{self.branch}/s{self.step}/c{number}/a0" for number in range(self.count)]


def round_branches(journal: AgentJournal, round_number: int, letters: str = "ha") -> Iterator[str]:
    """Yield the keys of a round's branches: of new hypotheses (`h`), then of those that a person sent back (`a`)."""
    for letter in letters:
        for index in range(MAX_BRANCHES):
            branch = f"r{round_number:02d}/{letter}{index:02d}"
            if journal.read("hypothesis", branch) is None:
                break
            yield branch
