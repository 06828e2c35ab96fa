"""Order rates of books from the record: paper fills count at the opening, and each profile tells its busy days."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from alphaloom.campaign import BookSettings, open_book
from alphaloom.desk.cli.main import run_command
from alphaloom.desk.facts.order_rates import ENDED_HERE
from alphaloom.execution import US_PER_SECOND, ChildOrder, ExecutionReport, OrderRecord
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


def test_orders_on_record_count_in_place_of_the_fills_of_their_day(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opening = int(datetime.fromisoformat("2026-03-03T09:30:00+08:00").timestamp()) * US_PER_SECOND
    with Ledger.open(place, clock=lambda: NOON) as ledger:
        record = OrderRecord(ledger, "book-one", date(2026, 3, 3))
        record.record_plan({"venue": "sim"})
        orders = [ChildOrder(f"p-{n}", "p", "A", "buy", 1, "market", None, opening + n) for n in range(3)]
        passed = [{"passed": n != 2, "refusals": []} for n in range(3)]
        record.record_orders([(one, ruling, one.at_us) for one, ruling in zip(orders, passed, strict=True)])
        ends = [("p-0", "x1"), ("p-1", f"p-1{ENDED_HERE}")]  # the venue cancelled one; it never had the other
        record.record_reports([ExecutionReport(order, "cancelled", name, opening + 9) for order, name in ends])
    assert ask(place, "one", "--profile", "mission_5x5", "--json") == 0
    days = json.loads(capsys.readouterr().out)["profiles"]["mission_5x5"]["days"]
    assert [(day["venue"], day["day"], day["orders"]["total"], day["messages"]["total"]) for day in days] == [
        ("paper", "2026-03-02", 3, 3),
        ("sim", "2026-03-03", 2, 3),
    ]


def test_unknown_names_are_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(place, "three") == ask(place, "--profile", "nix") == 2
    assert "mission_5x5" in capsys.readouterr().err
