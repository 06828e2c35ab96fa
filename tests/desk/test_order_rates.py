"""Order rates of books from the record: paper fills count at the opening, and each profile tells its busy days."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from alphaloom.campaign import BookSettings, open_book
from alphaloom.desk.cli.main import run_command
from alphaloom.ledger import Ledger

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
FILLS = {"2026-03-02": 3, "2026-03-03": 4, "2026-03-04": 0}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with Ledger.open(tmp_path, clock=lambda: NOON) as ledger:
        for name in ("one", "two"):
            book = open_book(ledger, name, BookSettings(), NOON)
            for day, fills in FILLS.items() if name == "one" else ():
                body = {"day": day, "fills": [["A", 1.0, 2.0, 0.0, 0.0]] * fills}
                ledger.events.record(book, "book.step", day, body)
    return tmp_path


def ask(place: Path, *words: str) -> int:
    return run_command(["record", "order-rates", *words, "--workspace", str(place)])


def test_fills_of_a_day_are_orders_at_the_opening(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(place, "one", "--profile", "mission_5x5", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["books"] == ["book-one"]
    days = report["profiles"]["mission_5x5"]["days"]
    assert [(day["day"], day["venue"], day["orders"]["total"], day["orders"]["rolling"]) for day in days] == [
        ("2026-03-02", "paper", 3, 3),
        ("2026-03-03", "paper", 4, 4),
    ]
    opening = datetime.fromisoformat("2026-03-03T09:30:00+08:00")
    assert days[1]["orders"]["rolling_us"] == days[1]["orders"]["calendar_us"] == opening.timestamp() * 1e6
    assert ask(place) == 0
    shown = capsys.readouterr().out
    assert "hft_300_20000" in shown
    assert "most used: 2026-03-03 book-one at paper" in shown
    assert "4 in a rolling second (to 09:30:00)" in shown


def test_unknown_names_are_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(place, "three") == ask(place, "--profile", "nix") == 2
    assert "mission_5x5" in capsys.readouterr().err
