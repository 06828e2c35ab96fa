"""A paper book: once a day, the same after a kill, computed again to the byte, never on days that nobody paid for."""

from __future__ import annotations

import json
import shutil
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from alphaloom.campaign import (
    GONE,
    BookData,
    BookSettings,
    attribute_profit,
    find_book,
    list_steps,
    open_book,
    pay_book,
    read_step,
    replay_book,
    step_book,
    windows,
)
from alphaloom.desk.cli.main import run_command
from alphaloom.desk.facts.books import list_refusals
from alphaloom.evaluation import CampaignResult
from alphaloom.ledger import Ledger, Run, StatusChange, canonical_json
from alphaloom.market import Panel
from alphaloom.portfolio import chain_returns
from alphaloom.risk import POLICY_FILE, RiskError

from .conftest import Files

pytestmark = pytest.mark.integration
LATER = datetime(2199, 7, 9, tzinfo=UTC)


class Killed(Exception):
    """Stands for a process that ends in the middle of a step."""


def killed(*_: object) -> None:
    """Stand for the moment in which a step is written."""
    raise Killed


def since(panel: Panel, days: int) -> date:
    """Return the day that is so many days before the panel's end."""
    first: date = panel.dates[-days].astype(object)
    return first


def evening(panel: Panel, days: int) -> datetime:
    """Return the evening of the day that is so many days before the panel's end."""
    day = since(panel, days)
    return datetime(day.year, day.month, day.day, 21, tzinfo=UTC)


def steps_of(ledger: Ledger, name: str) -> list[str]:
    """Return what is on record of a book, as bytes."""
    return [canonical_json(body) for body in list_steps(ledger, find_book(ledger, name)[0])]


def shell_out(workspace: Path, statement: str) -> None:
    """Change the record as somebody with a database shell would, who takes the guards away first."""
    with closing(sqlite3.connect(workspace / "ledger.sqlite")) as shell, shell:
        for (name,) in shell.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            shell.execute(f"DROP TRIGGER {name}")
        assert shell.execute(statement).rowcount > 0


def evidence_of(ledger: Ledger) -> str:
    """Return what the finished campaign trades, as its signals name it."""
    (row,) = {event.body["rulings"][0]["signal"]["evidence"] for run in ledger.runs.all()
              for event in ledger.events.of(run.id, "risk")}  # fmt: skip  # one condition
    return str(row)


@pytest.fixture(scope="module")
def twelve_days(finished: CampaignResult, panel: Panel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the workspace of the finished campaign with a book that was taken through twelve days in one go."""
    place = Path(shutil.copytree(finished.folder.parents[1], tmp_path_factory.mktemp("twelve") / "workspace"))
    with Ledger.open(place, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC)) as ledger:
        open_book(ledger, "whole", BookSettings(max_volume_share=0.0), LATER)
        step_book(ledger, "whole", BookData(panel, "small", since=since(panel, 12)), lambda: LATER)
    return place


@pytest.fixture
def workspace(twelve_days: Path, tmp_path: Path) -> Path:
    """Return a copy of that workspace."""
    return Path(shutil.copytree(twelve_days, tmp_path / "workspace"))


@pytest.fixture
def stepped(workspace: Path) -> str:
    """Return the name of the book that is in every workspace here."""
    return "whole"


def test_day_by_day_after_kills_and_in_one_go_are_the_same_bytes(
    ledger: Ledger, panel: Panel, stepped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_book(ledger, "daily", BookSettings(max_volume_share=0.0), LATER)
    for days in range(12, 0, -1):
        data = BookData(panel.rows(0, panel.days - days + 1), "small", since=since(panel, 12))
        with monkeypatch.context() as patched:
            patched.setattr(type(ledger.events), "record", killed)
            with pytest.raises(Killed):
                step_book(ledger, "daily", data, lambda: LATER)
        assert len(step_book(ledger, "daily", data, lambda: LATER)) == 1
        assert step_book(ledger, "daily", data, lambda: LATER) == [], "the same day twice changes nothing"
    assert steps_of(ledger, "daily") == steps_of(ledger, stepped)


def test_a_quoted_volume_limits_a_book_in_the_shares_of_the_closes(ledger: Ledger, panel: Panel) -> None:
    """A split of 4:1 after the panel's end was undone in its prices, and not in its volumes."""
    whole = replace(panel, volumes="adjusted")
    fields = {**panel.fields, "close_raw": panel.fields["close"] * 4, "volume": panel.fields["volume"] / 4}
    fills = []
    for name, data in (("adjusted", whole), ("quoted", replace(panel, fields=fields, volumes="quoted"))):
        open_book(ledger, name, BookSettings(max_volume_share=1e-6), LATER)
        step_book(ledger, name, BookData(data, "small", since=since(panel, 3)), lambda: LATER)
        fills.append([fill[1] for body in list_steps(ledger, f"book-{name}") for fill in body["fills"]])
    assert fills[0]
    assert fills[1] == pytest.approx(fills[0])


def test_replay_is_the_same_bytes_and_names_the_day_that_was_changed(
    ledger: Ledger, stepped: str, workspace: Path
) -> None:
    assert [parts for _, parts in replay_book(ledger, stepped)] == [[]] * 12
    key = list_steps(ledger, f"book-{stepped}")[5]["day"]
    cash = "json_extract(body, '$.body.account.cash') + 1.0"
    shell_out(workspace, f"UPDATE events SET body = json_set(body, '$.body.account.cash', {cash}) WHERE key = '{key}'")
    differing = {day: parts for day, parts in replay_book(ledger, stepped) if parts}
    assert "account" in differing[key]
    assert len(differing) == 2, "and the next step, which began with another account"


def test_what_it_holds_is_what_the_gate_approved(ledger: Ledger, stepped: str) -> None:
    bodies = list_steps(ledger, f"book-{stepped}")
    for before, after in pairwise(bodies):
        held = before["account"]["holdings"]
        bought = after["account"]["holdings"].keys() - held.keys()
        assert bought <= {name for name, target in before["approved"].items() if target}
    assert all(body["late"] for body in bodies)


def test_no_fresh_price_is_called_stale(ledger: Ledger, stepped: str, panel: Panel) -> None:
    last = {name: str(panel.dates[np.flatnonzero(np.isfinite(panel.fields["close"][:, column]))[-1]])
            for column, name in enumerate(panel.symbols)}  # fmt: skip  # one map
    bodies = list_steps(ledger, f"book-{stepped}")
    for body in bodies:
        stale = {one["asset"] for one in body["decision"]["rulings"] if "stale_data" in one["refusals"]}
        assert all(last[name] < body["day"] for name in stale)


def test_on_data_without_windows_a_new_book_begins_on_the_last_day(
    ledger: Ledger, panel: Panel, workspace: Path
) -> None:
    shell_out(workspace, "DELETE FROM boundaries")
    open_book(ledger, "fresh", BookSettings(), LATER)
    with pytest.raises(RiskError, match="No campaign has fixed windows"):
        step_book(ledger, "fresh", BookData(panel, "small", since=since(panel, 3)), lambda: LATER)
    assert len(step_book(ledger, "fresh", BookData(panel, "small"), lambda: LATER)) == 1


def test_a_step_before_its_session_is_forward_evidence(ledger: Ledger, panel: Panel) -> None:
    open_book(ledger, "live", BookSettings(), LATER)
    last: date = panel.dates[-1].astype(object)
    (step,) = step_book(
        ledger, "live", BookData(panel, "small"), lambda: datetime(*last.timetuple()[:3], 20, tzinfo=UTC)
    )
    assert (step.day, step.late) == (last.isoformat(), False)


@pytest.mark.parametrize(("table", "window"), [("openings", "sealed"), ("trials", "selection")])
def test_days_that_nobody_paid_for_are_refused(
    ledger: Ledger, panel: Panel, workspace: Path, table: str, window: str
) -> None:
    open_book(ledger, "early", BookSettings(), LATER)
    selection = date.fromisoformat(ledger.trials.boundaries()[0].selection_start)
    data = BookData(panel, "small", since=selection)
    known = windows.find_windows(ledger, panel, "small")
    windows.refuse_unpaid_days(ledger, panel, "small", data.list_new_rows(""), evidence_of(ledger), known)
    shell_out(workspace, f"DELETE FROM {table}")
    with pytest.raises(RiskError, match=f"belong to a {window}") as refused:
        step_book(ledger, "early", data, lambda: LATER)
    assert refused.value.code == "unpaid_days"
    assert list_steps(ledger, "book-early") == []
    renamed = replace(panel, symbols=tuple(f"Z{name}" for name in panel.symbols))
    with pytest.raises(RiskError, match=f"belong to a {window}"):
        step_book(ledger, "early", replace(data, panel=renamed), lambda: LATER)


def test_one_trial_does_not_pay_for_another_formula(ledger: Ledger, panel: Panel, workspace: Path) -> None:
    assert run_command(["library", "add", "rank(-ts_std(returns, 20))", "--workspace", str(workspace)]) == 0
    open_book(ledger, "both", BookSettings(), LATER)
    selection = date.fromisoformat(ledger.trials.boundaries()[0].selection_start)
    with pytest.raises(RiskError, match="belong to a selection"):
        step_book(ledger, "both", BookData(panel, "small", since=selection), lambda: LATER)


def test_what_is_retired_is_sold(ledger: Ledger, panel: Panel) -> None:
    open_book(ledger, "exit", BookSettings(max_volume_share=0.0), LATER)
    step_book(ledger, "exit", BookData(panel.rows(0, panel.days - 4), "small", since=since(panel, 8)), lambda: LATER)
    assert list_steps(ledger, "book-exit")[-1]["account"]["holdings"]
    for row in ledger.library.rows():
        change = StatusChange(row.factor_id, "k", "retired", "hand", "worn out", "2026-01-01")
        ledger.library.record(standings=[change])
    step_book(ledger, "exit", BookData(panel, "small"), lambda: LATER)
    assert list_steps(ledger, "book-exit")[-1]["account"]["holdings"] == {}


def test_a_panel_that_is_not_the_book_s_is_refused(ledger: Ledger, panel: Panel) -> None:
    open_book(ledger, "data", BookSettings(), LATER)
    step_book(ledger, "data", BookData(panel.rows(0, panel.days - 3), "small", since=since(panel, 6)), lambda: LATER)
    last: date = panel.dates[-1].astype(object)
    yesterday = datetime(*(last - timedelta(days=1)).timetuple()[:3], tzinfo=UTC)
    foreign = replace(panel, symbols=tuple(f"Z{name}" for name in panel.symbols))
    missing = panel.rows(panel.days - 3, panel.days)

    def at_last() -> datetime:
        return LATER

    for other, clock, words in (
        (panel, lambda: yesterday, "still to come"),
        (foreign, at_last, "other symbols"),
        (missing, at_last, "lacks the day"),
    ):
        with pytest.raises(RiskError, match=words):
            step_book(ledger, "data", BookData(other, "small"), clock)
    assert len(list_steps(ledger, "book-data")) == 3


def test_the_kill_switch_fills_nothing(ledger: Ledger, panel: Panel, workspace: Path) -> None:
    open_book(ledger, "kill", BookSettings(), LATER)
    step_book(ledger, "kill", BookData(panel.rows(0, panel.days - 1), "small", since=since(panel, 2)), lambda: LATER)
    (workspace / POLICY_FILE).write_text("kill_switch: true\n")
    (step,) = step_book(ledger, "kill", BookData(panel, "small"), lambda: LATER)
    assert (step.fills, dict(step.approved)) == ((), {})


def test_a_refusal_says_what_was_compared(
    ledger: Ledger, panel: Panel, workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (workspace / POLICY_FILE).write_text("gross_cap_bp: 7000\nrequire_review: true\n")
    open_book(ledger, "tight", BookSettings(), LATER)
    (step,) = step_book(ledger, "tight", BookData(panel, "small"), lambda: LATER)
    refused = {row["rule"]: row for row in list_refusals(step)}
    assert len(refused["reviewed"]["first"]) == 5 < refused["reviewed"]["refused"]
    assert refused["reviewed"]["first"][0]["actual"] > refused["reviewed"]["first"][0]["limit"] == 0
    assert run_command(["book", "show", "tight", "--workspace", str(workspace)]) == 0
    assert "against 0, for" in capsys.readouterr().out


def test_a_step_that_was_deleted_from_the_end_is_named(ledger: Ledger, stepped: str, workspace: Path) -> None:
    last = list_steps(ledger, f"book-{stepped}")[-1]["day"]
    shell_out(workspace, f"DELETE FROM events WHERE kind = 'book.step' AND key = '{last}'")
    assert [day for day, parts in replay_book(ledger, stepped) if parts == [GONE]] == [last]
    assert run_command(["book", "replay", stepped, "--workspace", str(workspace)]) == 1


def test_a_deleted_step_that_is_made_again_otherwise_is_named(
    ledger: Ledger, panel: Panel, stepped: str, workspace: Path
) -> None:
    last = list_steps(ledger, f"book-{stepped}")[-1]["day"]
    shell_out(workspace, f"DELETE FROM events WHERE kind = 'book.step' AND key = '{last}'")
    pay_book(ledger, stepped, 5.0, "Ada", evening(panel, 2))
    step_book(ledger, stepped, BookData(panel, "small"), lambda: LATER)
    assert dict(replay_book(ledger, stepped))[last] == ["its line in the log of calls"]


def test_a_second_process_waits_and_doubles_nothing(
    ledger: Ledger, panel: Panel, workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    open_book(ledger, "both", BookSettings(), LATER)
    data, steps = BookData(panel, "small", since=since(panel, 4)), []

    def work() -> None:
        with Ledger.open(workspace, clock=lambda: LATER) as own:
            steps.append(len(step_book(own, "both", data, lambda: LATER)))

    with ledger.runs.lock("book-both"):
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        time.sleep(0.3)
        assert steps == []
    for thread in threads:
        thread.join(timeout=120)
    assert sorted(steps) == [0, 4]
    assert "waiting, since another process steps this book" in capsys.readouterr().err
    assert not any(parts for _, parts in replay_book(ledger, "both"))


def test_money_that_is_paid_in_is_no_gain(ledger: Ledger, panel: Panel, stepped: str) -> None:
    """Twice the money from the middle on: the same returns, but for the day on which the money is put to work."""
    open_book(ledger, "paid", BookSettings(max_volume_share=0.0), LATER)
    step_book(ledger, "paid", BookData(panel.rows(0, panel.days - 6), "small", since=since(panel, 12)), lambda: LATER)
    worth = read_step(list_steps(ledger, "book-paid")[-1]).account.equity
    pay_book(ledger, "paid", worth, "Ada", evening(panel, 7))
    first = step_book(ledger, "paid", BookData(panel, "small"), lambda: LATER)[0]
    assert first.flow == worth
    plain, paid = ([read_step(body) for body in list_steps(ledger, f"book-{name}")] for name in (stepped, "paid"))
    returns = [chain_returns([one.account.equity for one in steps], [one.flow for one in steps])
               for steps in (plain, paid)]  # fmt: skip  # one list
    assert np.abs(returns[0] - returns[1]).max() < 5e-3, "positions of the night before have half of their share"
    assert np.abs(returns[0][7:] - returns[1][7:]).max() < 1e-5
    assert paid[-1].account.high_water == pytest.approx(2 * plain[-1].account.high_water, rel=5e-3)
    assert not any(parts for _, parts in replay_book(ledger, "paid"))


@pytest.mark.parametrize(("amount", "by", "words"), [(0.0, "Ada", "amount"), (5.0, " ", "person"), (-1e6, "A", "all")])
def test_what_is_no_flow_is_refused(ledger: Ledger, amount: float, by: str, words: str) -> None:
    open_book(ledger, "poor", BookSettings(cash=1e6), LATER)
    with pytest.raises(RiskError, match=words):
        pay_book(ledger, "poor", amount, by, LATER)
    pay_book(ledger, "poor", -600_000.0, "Ada", LATER)
    with pytest.raises(RiskError, match="all that it is worth"):
        pay_book(ledger, "poor", -500_000.0, "Ada", LATER)


def test_the_profit_by_symbol_sector_run_and_factor_is_the_profit(
    ledger: Ledger, stepped: str, workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profit = attribute_profit(ledger, stepped)
    steps = [read_step(body) for body in list_steps(ledger, f"book-{stepped}")]
    assert profit.total == pytest.approx(steps[-1].account.equity - 1e6)
    for table in (profit.by_symbol, profit.by_sector, profit.by_run, profit.by_factor):
        assert sum(table.values()) - profit.trading_costs - profit.borrow_costs == pytest.approx(profit.total)
    assert len(profit.by_sector) > 3
    assert "unknown" not in profit.by_sector
    assert {run for run in profit.by_run if run != "other"} == {*steps[-1].library["books"]}
    assert run_command(["book", "show", stepped, "--attribution", "--workspace", str(workspace)]) == 0
    shown = capsys.readouterr().out
    assert "by factor: " in shown
    assert "Largest, as shares of equity: " in shown


def test_a_broker_is_compared(
    ledger: Ledger, stepped: str, workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    account = read_step(list_steps(ledger, f"book-{stepped}")[-1]).account
    file, first = workspace / "broker.csv", next(iter(account.holdings))
    rows = {name: one.shares for name, one in account.holdings.items()}
    command = ["book", "reconcile", stepped, str(file), "--cash", repr(account.cash), "--workspace", str(workspace)]

    def write() -> None:
        file.write_text("symbol,shares\n" + "".join(f"{name},{shares!r}\n" for name, shares in rows.items()))

    write()
    assert run_command(command) == 0
    rows[first] += 1_000.0
    write()
    assert run_command(command) == 1
    assert f"{first}: the book has" in capsys.readouterr().out
    file.write_text("symbol,shares\nA,many\n")
    assert run_command(command) == 2


def test_a_first_day_is_refused_for_a_book_that_has_begun(ledger: Ledger, panel: Panel, stepped: str) -> None:
    with pytest.raises(RiskError, match="this one has begun") as refused:
        step_book(ledger, stepped, BookData(panel, "small", since=since(panel, 3)), lambda: LATER)
    assert refused.value.field == "--since"


def test_settings_are_fixed_and_an_unknown_book_is_told(ledger: Ledger) -> None:
    open_book(ledger, "mine", BookSettings(cash=5_000.0), LATER)
    open_book(ledger, "mine", BookSettings(cash=5_000.0), LATER)
    with pytest.raises(RiskError, match="open with other settings"):
        open_book(ledger, "mine", BookSettings(cash=6_000.0), LATER)
    with pytest.raises(RiskError, match="no such book"):
        find_book(ledger, "yours")


def test_the_commands(
    files: Files, finished: CampaignResult, workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ["--workspace", str(workspace)]
    data = ["--panel", str(files.panel), "--sectors", str(files.sectors)]
    assert run_command(["book", "open", "paper", "--run", finished.run, *place]) == 0
    assert run_command(["book", "show", "paper", *place]) == 0
    printed = capsys.readouterr().out
    assert "no step" in printed
    assert printed.count(f"alphaloom book step paper --panel FILE --workspace {workspace}") == 2
    assert run_command(["book", "step", "paper", *data, *place]) == 0
    assert run_command(["book", "step", "paper", *data, *place]) == 0
    assert "Nothing new" in capsys.readouterr().out
    assert run_command(["book", "deposit", "paper", "1000", "--by", "Ada", *place]) == 0
    assert run_command(["book", "withdraw", "paper", "400", "--by", "Ada", *place]) == 0
    assert run_command(["book", "show", "paper", *place]) == 0
    assert ": 1,000.00 paid in by Ada" in capsys.readouterr().out
    assert run_command(["book", "halt", "paper", "--by", "Ada", "--reason", "a fire", *place]) == 0
    capsys.readouterr()
    assert run_command(["book", "show", "paper", *place]) == 0
    shown = capsys.readouterr().out
    assert "Waiting for the next step: halted, by Ada: a fire." in shown
    assert run_command(["book", "show", "paper", "--json", *place]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["steps"], sum(flow["amount"] for flow in facts["waiting_flows"])) == (1, 600.0)
    assert run_command(["book", "replay", "paper", *place]) == 0
    assert "every byte is the same" in capsys.readouterr().out
    out = workspace / "steps.csv"
    assert run_command(["book", "export", "paper", "--out", str(out), *place]) == 0
    assert len(out.read_text().splitlines()) == 2
    assert run_command(["book", "export", "paper", "--out", str(out), *place]) == 1
    assert run_command(["book", "step", "other", *data, *place]) == 2
    with Ledger.open(workspace, clock=lambda: LATER) as ledger:
        ledger.runs.start(Run("empty", {"settings": {}}, 1, "small", LATER.isoformat()))
    assert run_command(["book", "open", "nothing", "--run", "empty", *place]) == 2
    assert "accepted nothing" in capsys.readouterr().err
