"""The library's record: written whole or not at all, once, and never changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from alphaloom.ledger import Ledger, LibraryRow, Look, Sighting, StatusChange, WindowKey
from alphaloom.ledger.library import Pass

ROW = LibraryRow("f1", "rank(close)", "rank(close)", "h1", "one", {"rank_ic": 0.02})
DAYS = ("2021-01-04", "2021-01-05", "2021-01-06")
RETIRED = StatusChange("f1", "hand 1", "retired", "hand", "tired", "2021-01-06")


def window(first: str = DAYS[0], last: str = DAYS[-1], names: Sequence[str] = ("A", "B")) -> WindowKey:
    return WindowKey("data", first, last, tuple(names))


def passed(factor: str = "f1", values: Sequence[float | None] = (0.01, None, 0.03)) -> Pass:
    seen = [Sighting(factor, day, value) for day, value in zip(DAYS, values, strict=False)]
    return Pass(factor, window(), seen, {"panel": "p"})


def test_what_is_written_is_read_in_order(ledger: Ledger) -> None:
    added = StatusChange("f1", "added", "live", "hand", "added", "2021-01-01", {"place": 1})
    assert ledger.library.record(rows=[ROW], standings=[added, RETIRED], passes=[passed()]) == 1
    assert ledger.library.rows() == [ROW]
    assert ledger.library.standings("f1") == [added, RETIRED] == ledger.library.standings()
    assert [(one.day, one.rank_ic) for one in ledger.library.sightings("f1")] == [
        (DAYS[0], 0.01),
        (DAYS[1], None),
        (DAYS[2], 0.03),
    ]


def test_a_day_is_seen_once_and_its_first_reading_stands(ledger: Ledger) -> None:
    ledger.library.record(passes=[passed(values=(0.01,))])
    ledger.library.record(passes=[passed(values=(0.5, 0.02))])
    assert [one.rank_ic for one in ledger.library.sightings("f1")] == [0.01, 0.02]


def test_a_record_that_breaks_leaves_nothing(ledger: Ledger) -> None:
    broken = replace(RETIRED, numbers={"e": float("nan")})
    with pytest.raises(ValueError, match="not JSON"):
        ledger.library.record(rows=[ROW], standings=[broken], passes=[passed()])
    assert (ledger.library.rows(), ledger.library.sightings("f1")) == ([], [])


def test_what_was_watched_counts_against_a_later_look_at_the_same_days_and_names(ledger: Ledger) -> None:
    ledger.library.record(passes=[passed(), passed("f2")])
    ledger.library.record(passes=[passed()])  # seen again: no look
    assert ledger.library.watched(window()) == 2 == ledger.trials.prior(window())
    assert ledger.library.watched(window("2021-01-07", "2021-02-01")) == 0
    assert ledger.library.watched(window(names=("C",))) == 0
    trial = ledger.trials.open(Look("one", "f9", window("2021-01-06", "2021-03-01"), prior=1))
    assert (trial.number, trial.prior) == (4, 3)
    assert ledger.trials.open(Look("one", "f8", window("2021-01-06", "2021-03-01"))).number == 5


def test_a_workspace_of_the_first_format_is_opened_and_keeps_what_it_had(tmp_path: Path) -> None:
    def opened() -> Ledger:
        return Ledger.open(tmp_path, clock=lambda: datetime(2026, 1, 2, tzinfo=UTC))

    with opened() as ledger:
        ledger.library.add(ROW)
    with sqlite3.connect(tmp_path / "ledger.sqlite") as old:
        for table in ("standings", "sightings", "watches"):
            old.execute(f"DROP TABLE {table}")
        old.execute("DROP TRIGGER library_no_update")
        old.execute('UPDATE library SET body = json_remove(body, "$.origin", "$.terms")')
        old.execute("PRAGMA user_version = 1")
    old.close()
    with opened() as ledger:
        assert ledger.library.rows() == [ROW]
        assert ledger.library.standings() == []
        ledger.library.record(standings=[RETIRED], passes=[passed()])
        assert len(ledger.library.sightings("f1")) == 3
