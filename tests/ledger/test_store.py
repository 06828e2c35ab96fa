import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from alphaloom.ledger import (
    Attempt,
    Evaluation,
    Event,
    Ledger,
    LedgerConflict,
    LibraryRow,
    Look,
    ModelCall,
    Run,
    UnknownRun,
    VerdictRow,
    WindowKey,
)
from alphaloom.ledger.database.protocol import Transaction
from alphaloom.ledger.database.schema import TABLE_KEYS

ATTEMPT = Attempt("one", "k1", "h1", "rank(close)", None, "parse", "no such operator")
SCORED = Evaluation("one", "f1", "rank(close)", "h1", {"rank_ic": 0.0125, "decay": {"1": 0.1}}, None)
CALL = ModelCall("c1", "one", "idea", "new", "local", "small", "p", "q", "r", 10, 5, 0.01)
VERDICT = VerdictRow("one", "f1", "rejected", [{"step": "parse", "passed": True}], {"search": {"t": 1.5}})
ROW = LibraryRow("f1", "rank(close)", "rank(close)", "h1", "one", {"rank_ic": 0.02})


def test_a_record_comes_back_as_it_was_given(ledger: Ledger) -> None:
    assert ledger.record_attempt(ATTEMPT)
    assert ledger.record_evaluation(SCORED)
    assert ledger.record_call(CALL)
    assert ledger.record_verdict(VERDICT)
    assert ledger.add_to_library(ROW)
    assert ledger.attempts("one") == [ATTEMPT]
    assert ledger.evaluation("one", "f1") == SCORED
    assert ledger.evaluations("one") == [SCORED]
    assert ledger.call("c1") == ledger.call("c1", "one") == CALL
    assert ledger.calls("one") == [CALL]
    assert ledger.verdicts("one") == [VERDICT]
    assert ledger.library() == [ROW]


def test_nothing_is_found_under_an_unknown_key(ledger: Ledger) -> None:
    assert ledger.evaluation("one", "f9") is None
    assert ledger.call("c9") is None
    assert ledger.attempts("two") == []


def test_the_same_record_again_changes_nothing(ledger: Ledger) -> None:
    assert [ledger.record_attempt(ATTEMPT) for _ in range(3)] == [True, False, False]
    assert ledger.attempts("one") == [ATTEMPT]


def test_a_commit_whose_answer_was_lost_is_new_and_counted_once(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database on another machine may be lost after it has kept a write; the work is then done a second time."""
    write = ledger._database.write

    def twice(work: Callable[[Transaction], Any]) -> Any:
        write(work)
        return write(work)

    monkeypatch.setattr(ledger._database, "write", twice)
    assert ledger.record_call(CALL)
    assert not ledger.record_call(CALL)
    look = Look("one", "f1", WindowKey("data", "2020-01-01", "2020-12-31", ("A", "B")))
    assert ledger.open_trial(look).number == 1
    assert len(ledger.calls("one")) == len(ledger.trials()) == 1


def test_another_record_under_a_taken_key_is_refused_and_named(ledger: Ledger) -> None:
    ledger.record_evaluation(SCORED)
    with pytest.raises(LedgerConflict, match="evaluations: another record is kept under one / f1; it differs in sheet"):
        ledger.record_evaluation(replace(SCORED, sheet={"rank_ic": 0.02}))
    assert ledger.evaluation("one", "f1") == SCORED


def test_the_library_keeps_the_first_of_two_equal_factors(ledger: Ledger) -> None:
    ledger.add_to_library(ROW)
    assert not ledger.add_to_library(replace(ROW, hypothesis="h2"))
    assert ledger.library() == [ROW]


def test_a_call_of_another_run_is_found_by_its_key_the_first_one_first(ledger: Ledger) -> None:
    ledger.start_run(Run("another", {}, 1, "data", "2026"))
    ledger.record_call(CALL)
    ledger.record_call(replace(CALL, run="another", attempts=0))
    assert ledger.call("c1") == CALL
    assert ledger.calls("another") == [replace(CALL, run="another", attempts=0)]


def test_events_and_artefacts_come_back_by_kind_and_name(ledger: Ledger) -> None:
    ledger.record_event("one", "critique", "b", {"weak": ["turnover"]})
    ledger.record_event("one", "critique", "a", None)
    ledger.record_event("one", "warning", "a", "late")
    ledger.record_artefact("one", "results.json", "d1")
    assert [event.key for event in ledger.events("one", "critique")] == ["a", "b"]
    assert ledger.events("one")[-1] == Event("one", "warning", "a", "late")
    assert ledger.artefacts("one") == {"results.json": "d1"}


@settings(max_examples=15)
@given(keys=st.lists(st.text(max_size=5), unique=True, max_size=8))
def test_the_order_of_reading_is_that_of_the_keys_not_of_writing(
    keys: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with Ledger.open(tmp_path_factory.mktemp("w"), clock=lambda: datetime(2026, 1, 2, tzinfo=UTC)) as ledger:
        ledger.start_run(Run("one", {}, 1, "data", "2026"))
        keys = [key for key in keys if "\0" not in key]
        for key in keys:
            ledger.record_attempt(replace(ATTEMPT, key=key))
        assert [attempt.key for attempt in ledger.attempts("one")] == sorted(keys, key=str.encode)


def test_a_record_of_a_run_that_never_started_is_refused(ledger: Ledger) -> None:
    with pytest.raises(UnknownRun, match="a run that was never started"):
        ledger.record_attempt(replace(ATTEMPT, run="ghost"))


def test_a_number_that_is_none_reaches_no_record(ledger: Ledger) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        ledger.record_evaluation(replace(SCORED, sheet={"t": float("nan")}))
    assert ledger.evaluations("one") == []


@pytest.mark.parametrize("table", TABLE_KEYS)
@pytest.mark.parametrize("deed", ["UPDATE {} SET rowid = rowid", "DELETE FROM {}"])
def test_no_table_can_be_changed_even_from_outside(filed: Ledger, table: str, deed: str) -> None:
    fill(filed)
    with (
        sqlite3.connect(filed.workspace / "ledger.sqlite") as outside,
        pytest.raises(sqlite3.IntegrityError, match=f"{table} is append-only"),
    ):
        outside.execute(deed.format(table))
    outside.close()


@pytest.mark.parametrize("table", TABLE_KEYS)
def test_no_row_can_be_replaced_from_outside(filed: Ledger, table: str) -> None:
    """A replacement deletes what it meets and asks no trigger of deletions."""
    fill(filed)
    with sqlite3.connect(filed.workspace / "ledger.sqlite") as outside:
        before = outside.execute(f"SELECT * FROM {table}").fetchall()
        marks = ", ".join("?" * len(before[0]))
        outside.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", before)
        assert outside.total_changes == 0
        changed = [(*row[:-1], "{}") for row in before]
        outside.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", changed)
        assert outside.execute(f"SELECT * FROM {table}").fetchall() == before
    outside.close()


def test_a_workspace_of_before_is_guarded_when_it_is_opened(filed: Ledger) -> None:
    fill(filed)
    with sqlite3.connect(filed.workspace / "ledger.sqlite") as outside:
        outside.execute("DROP TRIGGER trials_stays")
        outside.execute("PRAGMA user_version = 1")
    outside.close()
    with Ledger.open(filed.workspace, clock=lambda: datetime(2027, 1, 1, tzinfo=UTC)) as again:
        assert again.attempts("one") == [ATTEMPT]
    with sqlite3.connect(filed.workspace / "ledger.sqlite") as outside:
        named = {name for (name,) in outside.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")}
    outside.close()
    assert "trials_stays" in named


def fill(ledger: Ledger) -> None:
    """Put at least one row into every table."""
    from alphaloom.ledger import Boundaries, Look, Opening, Sighting, StatusChange, WindowKey
    from alphaloom.ledger.library import Pass
    from alphaloom.ledger.reservations import Hold, Wish

    window = WindowKey("data", "2020-01-01", "2020-12-31", ("A", "B"))
    for record in (ledger.record_attempt(ATTEMPT), ledger.record_evaluation(SCORED), ledger.record_call(CALL)):
        assert record
    held = ledger.holds.hold(Wish("one", "c2", "", 1, 0.1), [], 1.0)
    assert isinstance(held, Hold)
    ledger.holds.release(held)
    ledger.record_verdict(VERDICT)
    ledger.add_to_library(ROW)
    ledger.record_event("one", "k", "k", 1)
    ledger.record_artefact("one", "n", "d")
    ledger.close_trial(ledger.open_trial(Look("one", "f1", window)).id, {})
    ledger.record_opening(Opening("one", window, "close"))
    ledger.fix_boundaries(Boundaries("data", ("A",), *["2020-01-01"] * 6), fingerprint={"2020-01-01": [1, 2]})
    seen = Pass("f1", window, [Sighting("f1", "2021-01-04", 0.01)], {"panel": "p"})
    ledger.kept.record(
        standings=[StatusChange("f1", "hand 1", "retired", "hand", "tired", "2021-01-04")], passes=[seen]
    )


def test_a_reopened_workspace_holds_what_it_held(ledger: Ledger) -> None:
    fill(ledger)
    with Ledger.open(ledger.workspace, clock=lambda: datetime(2027, 1, 1, tzinfo=UTC)) as again:
        assert again.attempts("one") == [ATTEMPT]
        assert again.run("latest").id == "one"


def test_closing_twice_is_allowed(ledger: Ledger) -> None:
    ledger.close()
    ledger.close()


def test_the_room_loads_without_heavy_libraries() -> None:
    root = Path(__file__).resolve().parents[2] / ".root"
    code = f"import sys; sys.path.insert(0, {str(root)!r}); import alphaloom.ledger; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "pandas", "pydantic", "yaml"} & set(loaded)
