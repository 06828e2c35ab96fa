"""What a run has scored and tried: a line of each in memory, the whole in the ledger, so that history costs little."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from threading import Lock
from typing import NamedTuple

from ..evidence import SET_PREFIX, Claim
from ..factors.describe import natural_sort_key
from ..ledger import Attempt, Evaluation, Ledger, Stage

__all__ = ["ProposalLog", "ScoreLine", "Scores"]

MAX_SHEETS_KEPT = 256
"""Whole sheets kept in memory: those that were read last."""
MAX_REFUSAL_CHARS = 200
"""Characters of a refused formula and of its reason that are kept at hand."""


class ScoreLine(NamedTuple):
    """The figures of a scored factor that are asked of all at once; None where undefined."""

    hypothesis: str
    t: float | None
    merit: float | None
    gross_sharpe: float | None
    rank_ic: float | None

    @classmethod
    def of(cls, row: Evaluation) -> ScoreLine:
        """Return the line of an evaluation."""
        return cls(row.hypothesis, *(row.sheet.get(name) for name in ("t", "merit", "gross_sharpe", "rank_ic")))


class Scores(Mapping[str, Evaluation]):
    """A run's evaluations by factor id; the run's lock keeps other processes from adding to them.

    Attributes
    ----------
    lines
        A line of every scored factor, in no order that means anything.
    singles
        How many of them are single factors, and no sets.
    best_t
        The largest absolute t on search, None while there is none.
    """

    def __init__(self, ledger: Ledger, run: str) -> None:
        self._ledger, self._run = ledger, run
        self._turn = Lock()  # tools answer on threads
        self._at_hand: OrderedDict[str, Evaluation] = OrderedDict()
        self.lines: dict[str, ScoreLine] = {}
        self.singles = 0
        self.best_t: float | None = None
        for _, row in ledger.evaluations_since(run):
            self.add(row)

    def add(self, row: Evaluation) -> None:
        """Take in an evaluation that the ledger holds."""
        if row.factor_id not in self.lines:
            self.singles += not row.hypothesis.startswith(SET_PREFIX)
            line = self.lines[row.factor_id] = ScoreLine.of(row)
            self.best_t = max(filter(None, (self.best_t, line.t and abs(line.t))), default=self.best_t)
        self._keep(row)

    def _keep(self, row: Evaluation) -> Evaluation:
        with self._turn:
            self._at_hand[row.factor_id] = row
            self._at_hand.move_to_end(row.factor_id)
            while len(self._at_hand) > MAX_SHEETS_KEPT:
                self._at_hand.popitem(last=False)
        return row

    def __getitem__(self, factor_id: str) -> Evaluation:
        """Return the whole evaluation of a factor."""
        if factor_id not in self.lines:
            raise KeyError(factor_id)
        row = self._at_hand.get(factor_id) or self._ledger.evaluation(self._run, factor_id)
        assert row is not None, "the ledger never loses a row"
        return self._keep(row)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the ids."""
        return iter(self.lines)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.lines)

    def __contains__(self, factor_id: object) -> bool:
        """Tell whether a factor was scored, without reading it."""
        return factor_id in self.lines


class ProposalLog:
    """What a run proposed, read from the ledger as it grows.

    Attributes
    ----------
    attempts
        How many proposals were recorded.
    hypotheses
        The ids of the hypotheses that they tested.
    refused
        By hypothesis, how many of its formulas each step refused before they were scored.
    examples
        By hypothesis, the refused formula with the smallest key: key, text, step, reason.
    """

    def __init__(self, ledger: Ledger, run: str) -> None:
        self._ledger, self._run = ledger, run
        self._turn = Lock()
        self._seen = 0
        self._first: dict[str, tuple[str, str]] = {}
        self._claims: dict[str, Claim] = {}
        self.refused: dict[str, Counter[str]] = {}
        self.examples: dict[str, tuple[str, str, Stage, str]] = {}
        self.attempts = 0
        self.hypotheses: set[str] = set()

    def refresh(self) -> ProposalLog:
        """Read what was recorded since the last time."""
        with self._turn:
            for place, attempt in self._ledger.attempts_since(self._run, self._seen):
                self._seen = place
                self._add(attempt)
        return self

    def _add(self, attempt: Attempt) -> None:
        self.attempts += 1
        self.hypotheses.add(attempt.hypothesis)
        if attempt.stage == "scored" and attempt.factor_id:
            mine = (attempt.key, attempt.hypothesis)
            self._first[attempt.factor_id] = min(mine, self._first.get(attempt.factor_id, mine), key=_attempt_order)
        elif attempt.stage != "scored":
            self.refused.setdefault(attempt.hypothesis, Counter())[attempt.stage] += 1
            said = (attempt.key, attempt.text[:MAX_REFUSAL_CHARS], attempt.stage, attempt.reason[:MAX_REFUSAL_CHARS])
            self.examples[attempt.hypothesis] = min(
                said, self.examples.get(attempt.hypothesis, said), key=_attempt_order
            )

    def claim(self, factor_id: str) -> Claim | None:
        """Return a scored factor's claim: that of the attempt with the smallest key, whatever came first in time."""
        first = self.refresh()._first.get(factor_id)
        return self._claim(first[1]) if first else None

    def claims(self) -> dict[str, Claim]:
        """Return the claim of every scored factor."""
        return {name: self._claim(hypothesis) for name, (_, hypothesis) in self.refresh()._first.items()}

    def told(self) -> dict[str, Claim]:
        """Return the claim of every hypothesis of which anything was tried, by id."""
        return {name: self._claim(name) for name in sorted(self.refresh().hypotheses)}

    def _claim(self, hypothesis: str) -> Claim:
        if hypothesis not in self._claims:
            event = self._ledger.event(self._run, "claim", hypothesis)
            assert event is not None, "a claim is recorded before its attempts"
            self._claims[hypothesis] = Claim.from_record(event.body)
        return self._claims[hypothesis]


def _attempt_order(row: tuple[str, ...]) -> tuple[object, ...]:
    """Return what sorts rows by their key, numbers in it as numbers, then by the rest."""
    return (natural_sort_key(row[0]), *row[1:])
