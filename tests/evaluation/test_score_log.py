"""What a run has scored and tried, told from a line of each: the same as reading the whole record again."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from alphaloom.evaluation.score_log import MAX_SHEETS_KEPT, ProposalLog, Scores
from alphaloom.evidence.archive import scored_claims
from alphaloom.ledger import Attempt, Evaluation, Journal, Ledger, Run
from alphaloom.ledger.store import AT_HAND_BYTES


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path, clock=lambda: datetime(2026, 1, 2, tzinfo=UTC)) as ledger:
        for run in ("one", "two"):
            ledger.runs.start(Run(run, {}, 1, "data", "2026-01-02"))
        yield ledger


def scored(run: str, number: int, hypothesis: str = "h") -> Evaluation:
    sheet = {"t": None if number % 7 == 0 else number / 10 - 3, "merit": 1.0, "rank_ic": 0.1, "gross_sharpe": 0.2}
    return Evaluation(run, f"f{number:04d}", "rank(close)", hypothesis, sheet)


def test_every_sheet_comes_back_though_few_are_at_hand(ledger: Ledger) -> None:
    rows = [scored("one", number) for number in range(MAX_SHEETS_KEPT + 300)]
    for row in rows:
        ledger.evaluations.add(row)
    ledger.evaluations.add(scored("two", 9_000))
    scores = Scores(ledger, "one")
    assert dict(scores) == {row.factor_id: row for row in rows}
    assert len(scores._cache) == MAX_SHEETS_KEPT
    assert scores.best_t == max(abs(row.sheet["t"]) for row in rows if row.sheet["t"] is not None)
    assert "f9000" not in scores


def test_sets_are_not_counted_as_single_factors(ledger: Ledger) -> None:
    scores = Scores(ledger, "one")
    for row in (scored("one", 1), scored("one", 2, "set-f2"), scored("one", 3)):
        ledger.evaluations.add(row)
        scores.add(row)
        scores.add(row)
    assert (scores.singles, len(scores)) == (2, 3)


def test_claims_are_those_of_the_whole_record_whenever_they_are_asked_for(ledger: Ledger) -> None:
    draw, tried = random.Random(3), ProposalLog(ledger, "one")
    for name in ("h0", "h1", "h2"):
        claim: dict[str, object] = {
            "id": name,
            "mechanism": "m",
            "statement": name,
            "direction": 1,
            "horizon_days": 5,
            "fields": [],
        }
        ledger.events.record("one", "claim", name, claim)
    for number in draw.sample(range(100), 60):
        stage = draw.choice(["scored", "scored", "parse"])
        factor = None if stage == "parse" else f"f{draw.randrange(20)}"
        ledger.attempts.add(Attempt("one", f"k{number:03d}", f"h{draw.randrange(3)}", "close", factor, stage, ""))  # type: ignore[arg-type]
        if number % 5 == 0:
            assert tried.claims() == scored_claims(ledger, "one")
    assert tried.claims() == scored_claims(ledger, "one")
    assert tried.attempts == 60
    assert tried.claim("f999") is None


def test_a_journal_returns_what_was_first_kept_though_little_of_it_is_in_memory(ledger: Ledger) -> None:
    journal = Journal(ledger, "one")
    for number in range(40):
        journal.record("note", str(number), {"b": number, "a": "x" * (AT_HAND_BYTES // 10)})
        journal.record("note", str(number), {"b": "too late"})
    again = Journal(ledger, "one")
    for number in range(40):
        kept = journal.read("note", str(number))
        assert kept is not None
        assert list(kept) == ["a", "b"]
        assert kept == again.read("note", str(number))
        assert kept["b"] == number
    assert journal._bytes <= AT_HAND_BYTES
    assert len(journal._at_hand) < 12
    assert journal.read("note", "40") is None
