"""The counts of a run, read from its ledger row by row: each row once, and none is kept in memory.

It serves the process that runs the campaign and any other that watches it; its memory does not grow with the run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..evaluation import Reviews
from ..evidence import SET_PREFIX
from ..evidence.gate import UNTRADABLE, Word
from ..ledger import Attempt, Evaluation, Ledger, ModelCall

__all__ = ["Best", "Counts", "Funnel", "ModelSpend"]

Since = Callable[[str, int], Iterator[tuple[int, Any]]]
"""Yields the rows of a run after a place in the order of arrival."""

UNREADABLE_STAGES = ("parse", "types", "python")
"""Stages at which a proposal is not yet a factor."""


@dataclass(frozen=True)
class Best:
    """The strongest single factor so far by |t| on the search window."""

    id: str
    text: str
    t: float
    rank_ic: float | None


@dataclass(frozen=True)
class ModelSpend:
    """The models' spending so far: calls, tokens in and out, US dollars."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0


@dataclass(frozen=True)
class Counts:
    """The number of formulas that reached each stage, from proposed to decided."""

    hypotheses: int = 0
    proposed: int = 0
    readable: int = 0
    scored: int = 0
    sent: int = 0
    accepted: int = 0
    watched: int = 0
    rejected: int = 0
    awaiting: int = 0
    proven: int = 0


@dataclass
class Funnel:
    """Read a run's counts; every call of `read` adds the new rows."""

    reviews: Reviews
    counts: Counts = field(default_factory=Counts)
    best: Best | None = None
    spent: ModelSpend = field(default_factory=ModelSpend)

    def __post_init__(self) -> None:
        """Begin before the first row."""
        self._seen = dict.fromkeys(("attempts", "evaluations", "calls"), 0)
        self._proposed = self._readable = self._scored = 0
        self._hypotheses: set[str] = set()
        self._usd: list[float] = []

    @property
    def ledger(self) -> Ledger:
        """The ledger of the run."""
        return self.reviews.ledger

    def read(self) -> Funnel:
        """Add the rows since the last call."""
        self._take("attempts", self.ledger.attempts.since, self._add_attempt)
        self._take("evaluations", self.ledger.evaluations.since, self._add_evaluation)
        self._take("calls", self.ledger.calls.since, self._add_call)
        words = [self.reviews.word(row) for row in self.ledger.verdicts.of(self.reviews.run)]
        outcomes: dict[str, Word] = {
            "accepted": "accepted",
            "proven": UNTRADABLE,
            "watched": "watchlist",
            "rejected": "rejected",
            "awaiting": "awaiting approval",
        }
        verdicts = {name: words.count(word) for name, word in outcomes.items()}
        self.counts = Counts(
            len(self._hypotheses), self._proposed, self._readable, self._scored, len(words), **verdicts
        )
        return self

    def _take(self, name: str, since: Since, take: Callable[[Any], None]) -> None:
        """Pass each new row of a table to `take`."""
        for place, row in since(self.reviews.run, self._seen[name]):
            take(row)
            self._seen[name] = place

    def _add_attempt(self, row: Attempt) -> None:
        self._hypotheses.add(row.hypothesis)
        self._proposed += 1
        self._readable += row.stage not in UNREADABLE_STAGES

    def _add_evaluation(self, row: Evaluation) -> None:
        if row.hypothesis.startswith(SET_PREFIX):
            return
        self._scored += 1
        t = row.sheet["t"]
        if t is not None and (self.best is None or abs(t) > abs(self.best.t)):
            self.best = Best(row.factor_id, row.text, float(t), row.sheet["rank_ic"])

    def _add_call(self, row: ModelCall) -> None:
        self._usd = [math.fsum([*self._usd, row.cost_usd])]
        spent = self.spent
        self.spent = ModelSpend(spent.calls + 1, spent.tokens + row.tokens_in + row.tokens_out, self._usd[0])
