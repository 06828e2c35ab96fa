import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
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
    WorkspaceError,
)
from alphaloom.ledger.calls import CALLS_FOLDER, CallLog
from alphaloom.ledger.database.protocol import Transaction
from alphaloom.ledger.database.schema import TABLE_KEYS

ATTEMPT = Attempt("one", "k1", "h1", "rank(close)", None, "parse", "no such operator")
SCORED = Evaluation("one", "f1", "rank(close)", "h1", {"rank_ic": 0.0125, "decay": {"1": 0.1}}, None)
CALL = ModelCall("c1", "one", "idea", "new", "local", "small", "p", "q", "r", 10, 5, 0.01)
VERDICT = VerdictRow("one", "f1", "rejected", [{"step": "parse", "passed": True}], {"search": {"t": 1.5}})
ROW = LibraryRow("f1", "rank(close)", "rank(close)", "h1", "one", {"rank_ic": 0.02})


def test_a_record_comes_back_as_it_was_given(ledger: Ledger) -> None:
    assert ledger.attempts.add(ATTEMPT)
    assert ledger.evaluations.add(SCORED)
    assert ledger.calls.add(CALL)
    assert ledger.verdicts.add(VERDICT)
    assert ledger.library.add(ROW)
    assert ledger.attempts.of("one") == [ATTEMPT]
    assert ledger.evaluations.get("one", "f1") == SCORED
    assert ledger.evaluations.of("one") == [SCORED]
    assert ledger.calls.first("c1") == ledger.calls.get("one", "c1") == CALL
    assert ledger.calls.of("one") == [CALL]
    assert ledger.verdicts.of("one") == [VERDICT]
    assert ledger.library.rows() == [ROW]


def test_nothing_is_found_under_an_unknown_key(ledger: Ledger) -> None:
    assert ledger.evaluations.get("one", "f9") is None
    assert ledger.calls.first("c9") is None
    assert ledger.attempts.of("two") == []


def test_a_record_open_for_reading_writes_nothing_and_can_end_at_a_day(ledger: Ledger) -> None:
    fill(ledger)
    leaves = len(ledger.signer.run_query("SELECT id FROM leaves"))

    def read(reading: Ledger) -> tuple[object, ...]:
        with pytest.raises(WorkspaceError, match="open for reading"):
            reading.calls.add(replace(CALL, key="c3"))
        return reading.calls.of("one"), reading.runs.all(), reading.trials.all(), reading.library.sightings("f1")

    kept = ledger.calls.of("one"), ledger.runs.all(), ledger.trials.all(), ledger.library.sightings("f1")
    assert Ledger.read(ledger.workspace, read) == Ledger.read(ledger.workspace, read, date(2026, 1, 2)) == kept
    assert Ledger.read(ledger.workspace, read, date(2026, 1, 1)) == ([], [], [], [])
    assert len(ledger.signer.run_query("SELECT id FROM leaves")) == leaves


def test_the_same_record_again_changes_nothing(ledger: Ledger) -> None:
    assert [ledger.attempts.add(ATTEMPT) for _ in range(3)] == [True, False, False]
    assert ledger.attempts.of("one") == [ATTEMPT]


def test_a_commit_whose_answer_was_lost_is_new_and_counted_once(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database on another machine may be lost after it has kept a write; the work is then done a second time."""
    write = ledger._database.write

    def twice(work: Callable[[Transaction], Any]) -> Any:
        write(work)
        return write(work)

    monkeypatch.setattr(ledger._database, "write", twice)
    assert ledger.calls.add(CALL)
    assert not ledger.calls.add(CALL)
    look = Look("one", "f1", WindowKey("data", "2020-01-01", "2020-12-31", ("A", "B")))
    assert ledger.trials.open(look).number == 1
    assert len(ledger.calls.of("one")) == len(ledger.trials.all()) == 1


def test_another_record_under_a_taken_key_is_refused_and_named(ledger: Ledger) -> None:
    ledger.evaluations.add(SCORED)
    with pytest.raises(LedgerConflict, match="evaluations: another record is kept under one / f1; it differs in sheet"):
        ledger.evaluations.add(replace(SCORED, sheet={"rank_ic": 0.02}))
    assert ledger.evaluations.get("one", "f1") == SCORED


def test_the_library_keeps_the_first_of_two_equal_factors(ledger: Ledger) -> None:
    ledger.library.add(ROW)
    assert not ledger.library.add(replace(ROW, hypothesis="h2"))
    assert ledger.library.rows() == [ROW]


def test_a_call_of_another_run_is_found_by_its_key_the_first_one_first(ledger: Ledger) -> None:
    ledger.runs.start(Run("another", {}, 1, "data", "2026"))
    ledger.calls.add(CALL)
    ledger.calls.add(replace(CALL, run="another", attempts=0))
    assert ledger.calls.first("c1") == CALL
    assert ledger.calls.of("another") == [replace(CALL, run="another", attempts=0)]


def test_events_and_artefacts_come_back_by_kind_and_name(ledger: Ledger) -> None:
    ledger.events.record("one", "critique", "b", {"weak": ["turnover"]})
    ledger.events.record("one", "critique", "a", None)
    ledger.events.record("one", "warning", "a", "late")
    ledger.artefacts.record("one", "results.json", "d1")
    assert [event.key for event in ledger.events.of("one", "critique")] == ["a", "b"]
    assert ledger.events.of("one")[-1] == Event("one", "warning", "a", "late")
    assert ledger.artefacts.digests("one") == {"results.json": "d1"}


@settings(max_examples=15)
@given(keys=st.lists(st.text(max_size=5), unique=True, max_size=8))
def test_the_order_of_reading_is_that_of_the_keys_not_of_writing(
    keys: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with Ledger.open(tmp_path_factory.mktemp("w"), clock=lambda: datetime(2026, 1, 2, tzinfo=UTC)) as ledger:
        ledger.runs.start(Run("one", {}, 1, "data", "2026"))
        keys = [key for key in keys if "\0" not in key]
        for key in keys:
            ledger.attempts.add(replace(ATTEMPT, key=key))
        assert [attempt.key for attempt in ledger.attempts.of("one")] == sorted(keys, key=str.encode)


def test_a_record_of_a_run_that_never_started_is_refused(ledger: Ledger) -> None:
    with pytest.raises(UnknownRun, match="a run that was never started"):
        ledger.attempts.add(replace(ATTEMPT, run="ghost"))


def test_a_number_that_is_none_reaches_no_record(ledger: Ledger) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        ledger.evaluations.add(replace(SCORED, sheet={"t": float("nan")}))
    assert ledger.evaluations.of("one") == []


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
        assert again.attempts.of("one") == [ATTEMPT]
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
    for record in (ledger.attempts.add(ATTEMPT), ledger.evaluations.add(SCORED), ledger.calls.add(CALL)):
        assert record
    held = ledger.holds.hold(Wish("one", "c2", "", 1, 0.1), [], 1.0)
    assert isinstance(held, Hold)
    ledger.holds.release(held)
    ledger.verdicts.add(VERDICT)
    ledger.library.add(ROW)
    ledger.events.record("one", "k", "k", 1)
    ledger.artefacts.record("one", "n", "d")
    ledger.trials.close(ledger.trials.open(Look("one", "f1", window)).id, {})
    ledger.trials.record_opening(Opening("one", window, "close"))
    ledger.trials.fix_boundaries(Boundaries("data", ("A",), *["2020-01-01"] * 6), fingerprint={"2020-01-01": [1, 2]})
    seen = Pass("f1", window, [Sighting("f1", "2021-01-04", 0.01)], {"panel": "p"})
    ledger.library.record(
        standings=[StatusChange("f1", "hand 1", "retired", "hand", "tired", "2021-01-04")], passes=[seen]
    )
    with CallLog.open(ledger.workspace / CALLS_FOLDER, clock=lambda: datetime(2026, 1, 2, tzinfo=UTC)):
        ledger._anchor_calls()
    ledger.erasures.erase_objects([ledger.objects.put(b"a text")], "Ada", "old")
    retired = {"vkey": "gone+0123abcd+AQ==", "why": "lost", "at": "2026-01-02T00:00:00+00:00"}
    ledger._database.write(lambda session: session.append("retirements", retired))
    ledger.signer.sign()


def test_a_reopened_workspace_holds_what_it_held(ledger: Ledger) -> None:
    fill(ledger)
    with Ledger.open(ledger.workspace, clock=lambda: datetime(2027, 1, 1, tzinfo=UTC)) as again:
        assert again.attempts.of("one") == [ATTEMPT]
        assert again.runs.find("latest").id == "one"


def test_closing_twice_is_allowed(ledger: Ledger) -> None:
    ledger.close()
    ledger.close()


def test_the_room_loads_without_heavy_libraries() -> None:
    root = Path(__file__).resolve().parents[2] / ".root"
    code = f"import sys; sys.path.insert(0, {str(root)!r}); import alphaloom.ledger; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "pandas", "pydantic", "yaml"} & set(loaded)


def test_words_are_found_backwards_in_bounded_steps_and_mean_themselves(ledger: Ledger) -> None:
    texts = ["rank(close)", 'RANK("100%_a!b\\")', "ts_mean(volume, 5)", "rank(Größe)"]
    for number, text in enumerate(texts):
        ledger.attempts.add(replace(ATTEMPT, key=f"k{number}", text=text, reason="rank of volume"))

    def find(*words: str, before: int = 0, rows: int = 100, most: int = 9) -> tuple[list[str], int]:
        found, place = ledger.attempts.search_back(words, '"text":"', before or ledger.attempts.end(), rows, most)
        return [entry.record.text for entry in found], place

    assert find("Rank") == ([texts[3], texts[1], texts[0]], 1)
    assert find("rank", "close") == ([texts[0]], 1)
    assert find("volume") == ([texts[2]], 1)
    for word in ("100%_", "%_a!b\\", '"100', "Größe"):
        assert len(find(word)[0]) == 1, word
    for word in ("1%b", "r_nk", "a!!b", "reason", "grÖße"):
        assert find(word) == ([], 1), word
    (first,), place = find("rank", rows=2)
    assert (first, find("rank", before=place, rows=2)) == (texts[3], ([texts[1], texts[0]], 1))
    (first,), place = find("rank", most=1)
    assert (first, find("rank", before=place, most=1)[0]) == (texts[3], [texts[1]])
    ledger.events.record("one", "agents.hypothesis", "h1", {"statement": "Prices revert"})
    assert [event.key for event in ledger.events.search("one", "agents.hypothesis", ["PRICES", "revert"], 5)] == ["h1"]
    assert ledger.events.search("one", "agents.hypothesis", ["prices", "trend"], 5) == []
    assert [entry.record.key for entry in ledger.events.latest(["agents.hypothesis", "other"], 5)] == ["h1"]
