"""A session of a book over FIX, against `alphaloom serve venue` as a process of its own: sent once, and taken in."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import pytest

from alphaloom.campaign import (
    BookData,
    BookSettings,
    PlanRequest,
    SessionRun,
    execute_session,
    open_book,
    preview_session,
    read_step,
    replay_book,
    step_book,
)
from alphaloom.campaign.session import venues
from alphaloom.desk.cli.main import run_command
from alphaloom.execution import ExecutionError, HaltSwitch, OrderRecord, engine, list_tripped
from alphaloom.execution.fix import decode, drop_copy
from alphaloom.execution.fix.journal import LineJournal
from alphaloom.execution.schedule import Algorithm
from alphaloom.ledger import Ledger
from alphaloom.market import Panel

from . import markets

LATER = datetime(2199, 7, 9, tzinfo=UTC)
pytestmark = pytest.mark.integration


@pytest.fixture
def ledger(later_ledger: Ledger) -> Ledger:
    return later_ledger


@contextmanager
def serve_venue(folder: Path, *options: str) -> Iterator[int]:
    """Serve a venue and give its port."""
    command = [sys.executable, "-m", "alphaloom", "serve", "venue", "--folder", str(folder), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"127\.0\.0\.1:(\d+)", process.stdout.readline())
            assert found
            yield int(found[1])
        finally:
            process.terminate()


def execute(  # noqa: PLR0913 - what a test varies
    ledger: Ledger,
    panel: Panel,
    port: int,
    days: int,
    sender: str = "DESK",
    copy: str = "null",
    schedule: Algorithm = "market",
    terms: str = "",
) -> SessionRun:
    """Step the book to a day and send its next session over FIX; the panel lacks that session's day."""
    fix = f"fix: {{port: {port}, sender: {sender}, drop_copy: {copy}, rehearsal: true}}\n"
    (ledger.workspace / "execution.yaml").write_text(terms + fix)
    known = BookData(panel.rows(0, days), "small")
    step_book(ledger, "fix", known, lambda: LATER)
    return execute_session(ledger, "fix", known, PlanRequest("fix", schedule=schedule), LATER)


def list_fills(run: SessionRun) -> list[tuple[str, int, int, int]]:
    """Return symbol, time, shares and price of each fill of a session."""
    rows = [(state.order.asset, report) for state in run.orders.orders.values() for report in state.reports]
    return [(asset, one.at_us, one.shares, one.price_e4) for asset, one in rows if one.kind == "filled"]


def test_a_session_over_fix_is_sent_once_and_taken_in_by_the_book(ledger: Ledger, panel: Panel, tmp_path: Path) -> None:
    """The venue is fed from the panel, so a rehearsal fills as at the paper venue."""
    file = markets.write(markets.tidy(panel), tmp_path / "panel.parquet")
    for name in ("fix", "paper"):
        open_book(ledger, name, BookSettings(max_volume_share=0.0), LATER)
    with serve_venue(tmp_path / "venue", "--panel", str(file)) as port:
        run = execute(ledger, panel, port, panel.days - 1)
        again = execute(ledger, panel, port, panel.days - 1)
        known = BookData(panel.rows(0, panel.days - 1), "small")
        step_book(ledger, "paper", known, lambda: LATER)
        with pytest.raises(ExecutionError) as raised:  # it decides the same, so its orders have the same ids
            execute_session(ledger, "paper", known, PlanRequest("fix"), LATER)
        assert raised.value.code == "orders_known"
    paper = execute_session(ledger, "paper", BookData(panel, "small"), PlanRequest("paper"), LATER)
    states = run.orders.orders.values()
    assert run.orders.done is not None
    assert len(states) == len(run.plan.children) > 10
    assert list_fills(run) == list_fills(paper) != []
    assert [one.reports for one in again.orders.orders.values()] == [one.reports for one in states]

    step_book(ledger, "fix", BookData(panel, "small"), lambda: LATER)
    step = read_step(ledger.events.last("book-fix", "book.step").body)  # type: ignore[union-attr]  # there is one
    bought = {one.order.asset: one.order.signed_shares // one.order.shares * one.filled_shares for one in states}
    assert {name: one.shares for name, one in step.account.holdings.items()} == {
        name: shares for name, shares in bought.items() if shares
    }
    assert [parts for _, parts in replay_book(ledger, "fix") if parts] == []


@pytest.mark.slow
def test_quickfix_as_the_engine_trades_as_our_own_session_does(ledger: Ledger, panel: Panel, tmp_path: Path) -> None:
    """`make fix` builds QuickFIX and runs this; the drop copy goes over a second QuickFIX session."""
    pytest.importorskip("quickfix", reason="QuickFIX is not installed: make fix builds it")
    file = markets.write(markets.tidy(panel), tmp_path / "panel.parquet")
    open_book(ledger, "fix", BookSettings(max_volume_share=0.0), LATER)
    with serve_venue(tmp_path / "venue", "--panel", str(file), "--drop-copy", "COPY") as port:
        run = execute(ledger, panel, port, panel.days - 1, copy="COPY, engine: quickfix")
        again = execute(ledger, panel, port, panel.days - 1, copy="COPY, engine: quickfix")
    assert run.orders.done is not None
    assert sum(one.filled_shares > 0 for one in run.orders.orders.values()) > 10
    assert run.orders.breaks == []
    assert again.orders.trail == run.orders.trail
    step_book(ledger, "fix", BookData(panel, "small"), lambda: LATER)
    assert [parts for _, parts in replay_book(ledger, "fix") if parts] == []


def test_a_schedule_over_fix_is_sent_slice_by_slice(ledger: Ledger, panel: Panel, tmp_path: Path) -> None:
    """No price but that of a fill comes over FIX: slices of a name without one wait in vain for a fresh price."""
    open_book(ledger, "fix", BookSettings(max_volume_share=0.0), LATER)
    closes = zip(panel.symbols, panel.fields["close"][-2], strict=True)
    (tmp_path / "prices.csv").write_text(
        "\n".join(["symbol,price", *(f"{name},{one:.4f}" for name, one in closes if one > 0)])
    )
    with serve_venue(tmp_path / "venue", "--prices", str(tmp_path / "prices.csv")) as port:
        terms = "orders: {max_quote_age_s: 7200}\nschedule: {slices: 4, participation_bp: 10000}\n"
        run = execute(ledger, panel, port, panel.days - 1, schedule="twap", terms=terms)
    states = [*run.orders.orders.values()]
    assert run.orders.done is not None
    assert [one.order for one in states] == [*run.plan.children]
    assert len({one.order.at_us for one in states}) == 4
    assert {rule for one in states for rule in one.refusals} <= {"stale_quote"}
    later = [one for one in states if one.order.at_us > run.plan.opens_us]
    assert sum(one.filled_shares for one in later) > 0
    assert run.orders.measured is not None
    assert {row["against_e4"] for row in run.orders.measured["parents"].values()} == {None}
    step_book(ledger, "fix", BookData(panel, "small"), lambda: LATER)
    assert [parts for _, parts in replay_book(ledger, "fix") if parts] == []


def test_a_venue_that_rejects_trips_a_breaker_until_two_people_clear_it(
    ledger: Ledger, panel: Panel, tmp_path: Path
) -> None:
    open_book(ledger, "fix", BookSettings(max_volume_share=0.0), LATER)
    with serve_venue(tmp_path / "venue", "--rejects", "100%") as port:
        run = execute(ledger, panel, port, panel.days - 3)
    states = run.orders.orders.values()
    assert {one.status for one in states} == {"rejected"}
    trips = list_tripped(ledger, "book-fix")
    assert [(trip.breaker, trip.mode) for trip in trips] == [("reject_ratio", "reducing")]
    with serve_venue(tmp_path / "better") as port:
        held = execute(ledger, panel, port, panel.days - 2, "OTHER")
        assert {one.status for one in held.orders.orders.values()} == {"refused"}  # all would build the book
        place = ["--workspace", str(ledger.workspace), "--reason", "the broker mended it", "--by", "ann"]
        assert run_command(["kill", "--release", *place, "--second", "Ann"]) == 1
        assert list_tripped(ledger, "book-fix") == trips
        assert run_command(["kill", "--release", *place, "--second", "bob"]) == 0
        assert list_tripped(ledger, "book-fix") == []
        free = execute(ledger, panel, port, panel.days - 1, "OTHER")
    assert sum(one.filled_shares for one in free.orders.orders.values()) > 0


def test_a_drop_copy_that_differs_halts_until_two_people_release_it_and_books_reconcile(
    ledger: Ledger,
    panel: Panel,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(drop_copy, "COPY_GRACE_US", 800_000)
    monkeypatch.setattr(engine, "GRACE_US", 800_000)
    file = markets.write(markets.tidy(panel), tmp_path / "panel.parquet")
    options = ("--panel", str(file), "--drop-copy", "COPY", "--wrong-copies", "100%", "--seed", "3")
    open_book(ledger, "fix", BookSettings(max_volume_share=0.0), LATER)
    days, place = panel.days - 1, ["--workspace", str(ledger.workspace)]
    with serve_venue(tmp_path / "venue", *options) as port:
        run = execute(ledger, panel, port, days, copy="COPY")
        assert run.orders.done is None
        assert {one["kind"] for one in run.orders.breaks} == {
            "another fill", "fill only at the venue", "fill only in our records",
        }  # fmt: skip  # a set
        assert HaltSwitch(ledger.workspace).read().by == "drop copy"  # type: ignore[union-attr]  # it is set
        assert len(run.orders.halts) == 1
        again = execute(ledger, panel, port, days, copy="COPY")
        assert (again.orders.done, len(again.orders.breaks)) == (None, len(run.orders.breaks))
        people = ["--by", "ann", "--second", "bob", "--reason", "the venue confirmed its fills"]
        assert run_command(["kill", "--release", *place, *people]) == 0
        freed = execute(ledger, panel, port, days, copy="COPY")
    assert freed.orders.done is not None
    assert run_command(["orders", "fix", *place]) == 0
    assert "Drop copy: fill only at the venue: order " in capsys.readouterr().out
    with LineJournal(tmp_path / "venue/orders.journal") as journal:
        taken = [decode(line.split(" ", 3)[3].encode("latin-1")) for line in journal.lines if not line.endswith(" -")]
    there = {one.get(55): one.number(38) * (1 if one.get(54) == "1" else -1) for one in taken if one.kind == "D"}
    step_book(ledger, "fix", BookData(panel, "small"), lambda: LATER)
    step = read_step(ledger.events.last("book-fix", "book.step").body)  # type: ignore[union-attr]  # there is one
    assert {name: one.shares for name, one in step.account.holdings.items()} == there != {}


def test_a_venue_that_is_not_there_is_told_and_nothing_is_planned(
    ledger: Ledger, panel: Panel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(venues, "LOGON_SECONDS", 0.0)
    has_quickfix = find_spec("quickfix") is not None
    data = BookData(panel.rows(0, panel.days - 1), "small", since=panel.dates[-2].item())
    open_book(ledger, "fix", BookSettings(), LATER)
    step_book(ledger, "fix", data, lambda: LATER)
    for settings, code in (
        ("{}", "no_fix_venue"),
        ("{port: 9}", "session_over"),
        ("{port: 9, rehearsal: true}", "fix_unreachable"),
        ("{port: 9, rehearsal: true, engine: quickfix}", "fix_unreachable" if has_quickfix else "fix_missing"),
    ):
        (ledger.workspace / "execution.yaml").write_text(f"fix: {settings}\n")
        with pytest.raises(ExecutionError) as raised:
            execute_session(ledger, "fix", data, PlanRequest("fix"), LATER)
        assert raised.value.code == code
    assert execute_session(ledger, "fix", BookData(panel, "small"), PlanRequest("paper"), LATER).orders.done


def test_a_session_that_was_planned_in_time_is_ended_at_its_venue_when_it_is_over(
    ledger: Ledger, panel: Panel, tmp_path: Path
) -> None:
    data = BookData(panel.rows(0, panel.days - 1), "small", since=panel.dates[-2].item())
    open_book(ledger, "fix", BookSettings(), LATER)
    step_book(ledger, "fix", data, lambda: LATER)
    plan = preview_session(ledger, "fix", data, PlanRequest("fix"), LATER).plan
    OrderRecord(ledger, plan.close.book, plan.close.session).record_plan(plan.record())
    with serve_venue(tmp_path / "venue") as port:
        (ledger.workspace / "execution.yaml").write_text(f"fix: {{port: {port}}}\n")
        orders = execute_session(ledger, "fix", data, PlanRequest("fix"), LATER).orders
    assert {one.refusals for one in orders.orders.values()} == {("session_over",)}
    assert orders.done is not None
    assert orders.measured is not None
