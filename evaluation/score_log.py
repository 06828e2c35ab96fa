"""What a run recorded: scores, proposals, refused code; a line of each in memory, the full records in the ledger."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple

from ..evidence import MECHANISM_EVENT, SET_PREFIX, Claim, EvidenceError
from ..factors.describe import natural_sort_key
from ..ledger import Attempt, Evaluation, Ledger, Stage

RAN_EVENT = "ran"
"""Kind of the events that hold the refusals of code that ran."""

MAX_SHEETS_KEPT = 256
"""Full evaluations cached in memory: those that were read last."""
MAX_REFUSAL_CHARS = 200
"""Characters of a refused formula and of its reason that are kept in memory."""


class ScoreLine(NamedTuple):
    """The figures that are read of all scored factors at once; None where undefined."""

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
    """A run's evaluations by factor id; the lock of the run keeps other processes from adding to them.

    Attributes
    ----------
    lines
        A line of every scored factor, in no defined order.
    singles
        Number of scored single factors, without sets.
    best_t
        The largest absolute t on search, None before the first.
    """

    def __init__(self, ledger: Ledger, run: str) -> None:
        self._ledger, self._run = ledger, run
        self._lock = Lock()  # tools answer on threads
        self._cache: OrderedDict[str, Evaluation] = OrderedDict()
        self.lines: dict[str, ScoreLine] = {}
        self.singles = 0
        self.best_t: float | None = None
        for _, row in ledger.evaluations.since(run):
            self.add(row)

    def add(self, row: Evaluation) -> None:
        """Add an evaluation that is in the ledger."""
        if row.factor_id not in self.lines:
            self.singles += not row.hypothesis.startswith(SET_PREFIX)
            line = self.lines[row.factor_id] = ScoreLine.of(row)
            self.best_t = max(filter(None, (self.best_t, line.t and abs(line.t))), default=self.best_t)
        self._cache_row(row)

    def _cache_row(self, row: Evaluation) -> Evaluation:
        with self._lock:
            self._cache[row.factor_id] = row
            self._cache.move_to_end(row.factor_id)
            while len(self._cache) > MAX_SHEETS_KEPT:
                self._cache.popitem(last=False)
        return row

    def __getitem__(self, factor_id: str) -> Evaluation:
        """Return the full evaluation of a factor."""
        if factor_id not in self.lines:
            raise KeyError(factor_id)
        row = self._cache.get(factor_id) or self._ledger.evaluations.get(self._run, factor_id)
        assert row is not None, "the ledger never loses a row"
        return self._cache_row(row)

    def __iter__(self) -> Iterator[str]:
        """Yield the ids of the scored factors."""
        return iter(self.lines)

    def __len__(self) -> int:
        """Return the number of scored factors and sets."""
        return len(self.lines)

    def __contains__(self, factor_id: object) -> bool:
        """Tell whether a factor was scored, without reading its evaluation."""
        return factor_id in self.lines


class ProposalLog:
    """The proposals of a run, read from the ledger as it grows.

    Attributes
    ----------
    attempts
        Number of recorded proposals.
    hypotheses
        The ids of the hypotheses that they tested.
    refused
        By hypothesis, the number of its formulas that each step refused before scoring.
    examples
        By hypothesis, the refused formula with the smallest key: key, text, step, reason.
    """

    def __init__(self, ledger: Ledger, run: str) -> None:
        self._ledger, self._run = ledger, run
        self._lock = Lock()
        self._last_place = 0
        self._first: dict[str, tuple[str, str]] = {}
        self._claims: dict[str, Claim] = {}
        self.refused: dict[str, Counter[str]] = {}
        self.examples: dict[str, tuple[str, str, Stage, str]] = {}
        self.attempts = 0
        self.hypotheses: set[str] = set()

    def refresh(self) -> ProposalLog:
        """Read the proposals recorded since the last call."""
        with self._lock:
            for place, attempt in self._ledger.attempts.since(self._run, self._last_place):
                self._last_place = place
                self._add(attempt)
        return self

    def _add(self, attempt: Attempt) -> None:
        self.attempts += 1
        self.hypotheses.add(attempt.hypothesis)
        if attempt.stage == "scored" and attempt.factor_id:
            entry = (attempt.key, attempt.hypothesis)
            self._first[attempt.factor_id] = min(entry, self._first.get(attempt.factor_id, entry), key=_sort_key)
        elif attempt.stage != "scored":
            self.refused.setdefault(attempt.hypothesis, Counter())[attempt.stage] += 1
            example = (attempt.key, attempt.text[:MAX_REFUSAL_CHARS], attempt.stage, attempt.reason[:MAX_REFUSAL_CHARS])
            self.examples[attempt.hypothesis] = min(
                example, self.examples.get(attempt.hypothesis, example), key=_sort_key
            )

    def claim(self, factor_id: str) -> Claim | None:
        """Return the claim of a scored factor: that of the attempt with the smallest key, whatever its time.

        A mechanism that was stated after scoring, and stands, takes its place.
        """
        first = self.refresh()._first.get(factor_id)
        statement = self._ledger.events.get(self._run, MECHANISM_EVENT, factor_id)
        return self._read_claim(first[1]).restated(statement.body if statement else None) if first else None

    def claims(self) -> dict[str, Claim]:
        """Return the claim of every scored factor."""
        statements = {event.key: event.body for event in self._ledger.events.of(self._run, MECHANISM_EVENT)}
        return {
            name: self._read_claim(hypothesis).restated(statements.get(name))
            for name, (_, hypothesis) in self.refresh()._first.items()
        }

    def read_hypothesis_claims(self) -> dict[str, Claim]:
        """Return the claim of every hypothesis with a proposal, by id."""
        return {name: self._read_claim(name) for name in sorted(self.refresh().hypotheses)}

    def _read_claim(self, hypothesis: str) -> Claim:
        if hypothesis not in self._claims:
            event = self._ledger.events.get(self._run, "claim", hypothesis)
            assert event is not None, "a claim is recorded before its attempts"
            self._claims[hypothesis] = Claim.from_record(event.body)
        return self._claims[hypothesis]


class RefusedRuns:
    """Refusals of code that ran, by the key of their attempt: each costs an evaluation, as a score does.

    Code can pass data of the panel on in the text of an error, so a refusal is charged too. A repeated attempt returns
    the recorded refusal and runs nothing.
    """

    def __init__(self, ledger: Ledger, run: str) -> None:
        self._ledger, self._run = ledger, run
        self._refusals = {event.key: event.body for event in ledger.events.of(run, RAN_EVENT)}

    def __len__(self) -> int:
        """Return the number of refusals."""
        return len(self._refusals)

    def find_refusal(self, key: str) -> dict[str, Any] | None:
        """Return the refusal of an attempt whose code ran; None if there is none."""
        return self._refusals.get(key)

    def add(self, key: str, answer: dict[str, Any]) -> dict[str, Any]:
        """Record a refusal, and return it."""
        self._ledger.events.record(self._run, RAN_EVENT, key, answer)
        self._refusals[key] = answer
        return answer


@dataclass(frozen=True)
class RunLog:
    """What a run recorded, read once and then kept up with: scores, proposals, refusals of code that ran."""

    ledger: Ledger
    run: str

    @cached_property
    def scores(self) -> Scores:
        """Return the run's evaluations by factor id."""
        return Scores(self.ledger, self.run)

    @cached_property
    def proposals(self) -> ProposalLog:
        """Return the proposals of the run."""
        return ProposalLog(self.ledger, self.run)

    @cached_property
    def refused_runs(self) -> RefusedRuns:
        """Return the refusals of code that ran."""
        return RefusedRuns(self.ledger, self.run)

    def read_scored(self, factor_id: str) -> tuple[Evaluation, Claim]:
        """Return the score and the claim of a factor.

        Raises
        ------
        EvidenceError
            The run scored no such factor.
        """
        row, claim = self.scores.get(factor_id), self.proposals.claim(factor_id)
        if row is None or claim is None:
            raise EvidenceError(
                f"No factor {factor_id!r} was scored in this campaign.",
                field="id",
                got=factor_id,
                allowed="the id of a factor that score_factor answered with",
                hint="Score the formula first; its answer carries the id.",
                code="unknown_factor",
            )
        return row, claim


def _sort_key(row: tuple[str, ...]) -> tuple[object, ...]:
    """Return the sort key of a row: its key with numbers compared as numbers, then the rest."""
    return (natural_sort_key(row[0]), *row[1:])
