"""What people ask of a paper book, and what its data says of symbols and days: each is taken in once, and replayed."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alphaloom.campaign import (
    NOT_LOGGED,
    BookData,
    BookSettings,
    BookStep,
    list_orders,
    list_steps,
    list_waiting_orders,
    open_book,
    order_mode,
    pay_book,
    read_step,
    read_trading_mode,
    replay_book,
    step_book,
)
from alphaloom.campaign.book_record import find_unpaid, list_modes
from alphaloom.desk.cli.main import run_command
from alphaloom.evaluation.admission import add_by_hand
from alphaloom.factors import parse
from alphaloom.ledger import Ledger
from alphaloom.ledger.calls import CALLS_FOLDER
from alphaloom.market import Panel, PanelSource, SyntheticConfig, load_panel, simulate
from alphaloom.risk import POLICY_FILE, Mode, Policy, RiskError, RiskLimits

from . import markets
from .test_book import shell_out

pytestmark = pytest.mark.integration
LATER = datetime(2199, 7, 9, tzinfo=UTC)
NAME, BOOK = "asked", "book-asked"
POLICY = "admitted: [by_hand]\nsimilarity_cap_bp: 10000\nsingle_name_cap_bp: 2000\nnet_cap_bp: 9000\n"


@pytest.fixture(scope="module")
def panel() -> Panel:
    return simulate(SyntheticConfig(seed=4, days=120, names=30)).panel


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / POLICY_FILE).write_text(POLICY)
    return tmp_path / "workspace"


@pytest.fixture
def ledger(workspace: Path) -> Iterator[Ledger]:
    with Ledger.open(workspace, clock=lambda: LATER) as record:
        add_by_hand(record, parse("rank(-ts_std(returns, 20))"), "2199-07-09")
        (name,) = (row.factor_id for row in record.library.rows())
        until = f"{{evidence: {name}, rule: original, reason: a test, owner: Ada, until: 2199-12-31}}"
        (workspace / POLICY_FILE).write_text(f"{POLICY}exceptions: [{until}]\n")
        open_book(record, NAME, BookSettings(max_volume_share=0.0), LATER)
        yield record


def step(ledger: Ledger, panel: Panel, left: int = 0, **more: Any) -> list[BookStep]:
    """Take the book up to the day that has so many behind it."""
    data = BookData(panel.rows(0, panel.days - left), "small", **more)
    return step_book(ledger, NAME, data, lambda: LATER)


def at(panel: Panel, left: int) -> datetime:
    """Return the evening of the day that has so many behind it."""
    day: date = panel.dates[panel.days - 1 - left].astype(object)
    return datetime(day.year, day.month, day.day, 21, tzinfo=UTC)


def test_what_was_given_on_a_day_changes_no_step_up_to_it(ledger: Ledger, panel: Panel) -> None:
    step(ledger, panel, 5)
    pay_book(ledger, NAME, 1_000.0, "Ada", at(panel, 2))
    order_mode(ledger, NAME, "halted", ("odd", "Ada", ""), at(panel, 3))
    steps = []
    for left in (4, 3, 2, 1, 0):
        steps += step(ledger, panel, left)
        done, orders = list_steps(ledger, f"book-{NAME}"), list_orders(ledger, f"book-{NAME}")
        waiting = list_waiting_orders(orders, done)
        assert read_trading_mode(ledger, f"book-{NAME}") == (done[-1], list_modes(orders, done)[-1], waiting)
    assert [one.flow for one in steps] == [0.0, 0.0, 0.0, 1_000.0, 0.0]
    assert [one.mode for one in steps] == ["active", "active", "halted", "halted", "halted"]
    assert not any(parts for _, parts in replay_book(ledger, NAME))


@pytest.mark.parametrize(("kind", "part"), [("book.flow", "money paid in"), ("book.mode", "people's orders")])
def test_replay_names_a_person_who_was_changed(
    ledger: Ledger, panel: Panel, workspace: Path, kind: str, part: str
) -> None:
    step(ledger, panel, 1)
    pay_book(ledger, NAME, 5.0, "Ada", at(panel, 1))
    order_mode(ledger, NAME, "halted", ("odd", "Ada", ""), at(panel, 1))
    step(ledger, panel)
    shell_out(workspace, f"UPDATE events SET body = json_set(body, '$.body.by', 'Eve') WHERE kind = '{kind}'")
    assert [parts for _, parts in replay_book(ledger, NAME)] == [[], [part]]


def test_steps_without_a_line_in_the_log_differ(
    ledger: Ledger, panel: Panel, workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    step(ledger, panel, 1)
    step(ledger, panel)
    shutil.rmtree(workspace / CALLS_FOLDER)
    assert [parts for _, parts in replay_book(ledger, NAME)] == [[NOT_LOGGED]] * 2
    assert run_command(["book", "replay", NAME, "--workspace", str(workspace)]) == 1
    assert "2 steps are not in the log of calls" in capsys.readouterr().out


def test_two_withdrawals_at_once_take_no_more_than_there_is(ledger: Ledger, workspace: Path) -> None:
    taken: list[str] = []

    def work() -> None:
        with Ledger.open(workspace, clock=lambda: LATER) as own:
            try:
                taken.append(pay_book(own, NAME, -600_000.0, "Ada", LATER).key)
            except RiskError as error:
                taken.append(error.code)

    threads = [threading.Thread(target=work) for _ in range(4)]
    with ledger.runs.lock(BOOK):
        for thread in threads:
            thread.start()
        threads[0].join(timeout=0.5)
        assert taken == [], "all wait while the book is held"
    for thread in threads:
        thread.join(timeout=60)
    assert sorted(taken) == ["000001", *["book_flow"] * 3]


@pytest.mark.parametrize(("first", "then", "needs_two"), [
    ("halted", "reducing", True), ("reducing", "halted", False), ("active", "reducing", False),
])  # fmt: skip  # a table
def test_what_lets_more_pass_takes_two(ledger: Ledger, panel: Panel, first: Mode, then: Mode, needs_two: bool) -> None:
    step(ledger, panel, 1)
    order_mode(ledger, NAME, first, ("why", "Ada", "Bob"), at(panel, 1))
    if needs_two:
        with pytest.raises(RiskError, match="takes two"):
            order_mode(ledger, NAME, then, ("why", "Eve", "eve"), at(panel, 1))
        order_mode(ledger, NAME, then, ("why", "Eve", "Ada"), at(panel, 1))
    else:
        order_mode(ledger, NAME, then, ("why", "Eve", ""), at(panel, 1))
    assert step(ledger, panel)[-1].mode == then


def test_a_halted_book_pays_out_no_more_than_its_limits_allow(ledger: Ledger, panel: Panel) -> None:
    (first, last) = (step(ledger, panel, 1), step(ledger, panel))
    assert first
    gross = sum(abs(one.value) for one in last[-1].account.holdings.values())
    order_mode(ledger, NAME, "halted", ("odd", "Ada", ""), at(panel, 0))
    most = last[-1].account.equity - gross / 2  # gross_cap_bp 20,000; margin 5,000 of both sides
    with pytest.raises(RiskError, match="may not trade") as refused:
        pay_book(ledger, NAME, -most - 1.0, "Ada", LATER)
    assert float(str(refused.value.allowed).split()[2].rstrip(",")) == pytest.approx(most, abs=0.02)
    pay_book(ledger, NAME, -most + 1.0, "Ada", LATER)


def test_money_that_comes_in_over_night_buys_nothing_unasked(ledger: Ledger, panel: Panel) -> None:
    asked = step(ledger, panel, 2)[-1].approved
    pay_book(ledger, NAME, 600_000.0, "Ada", at(panel, 2))
    held, after = step(ledger, panel)
    assert (held.fills, set(held.held_back)) == ((), {*asked})
    assert after.fills
    assert after.held_back == ()
    assert not any(parts for _, parts in replay_book(ledger, NAME))


def renamed(panel: Panel, old: str, new: str) -> Panel:
    """Return a panel in which a symbol is called otherwise, as `market.symbol_changes` has it from its last day on."""
    place = {name: new if name == old else name for name in panel.symbols}
    order = sorted(range(panel.names), key=lambda column: place[panel.symbols[column]])
    return replace(
        panel,
        symbols=tuple(place[panel.symbols[column]] for column in order),
        fields={name: values[:, order] for name, values in panel.fields.items()},
        universe=panel.universe[:, order],
        groups={name: codes[order] for name, codes in panel.groups.items()},
        renames=((str(panel.dates[-1]), old, new),),
    )


def test_a_renamed_holding_goes_on_and_its_old_name_still_binds(ledger: Ledger, panel: Panel, workspace: Path) -> None:
    step(ledger, panel, 2)
    held = step(ledger, panel, 1)[-1].account.holdings
    old = next(iter(held))
    (plain,) = step_twin(ledger, panel)
    policy = workspace / POLICY_FILE
    policy.write_text(f"{policy.read_text()}restricted: [{old}]\n")
    (last,) = step(ledger, renamed(panel, old, "ZZNEW"))
    assert last.renamed == {old: "ZZNEW"}
    assert old not in last.account.holdings
    assert last.account.holdings["ZZNEW"] == plain.account.holdings[old]
    assert last.account.equity == pytest.approx(plain.account.equity)
    inputs = json.loads(ledger.objects.get(list_steps(ledger, BOOK)[-1]["inputs"]))
    assert set(inputs["policy"]["restricted"]) == {old, "ZZNEW"}
    assert not any(parts for _, parts in replay_book(ledger, NAME))


def step_twin(ledger: Ledger, panel: Panel) -> list[BookStep]:
    """Return the last step of a book that does the same without a change of symbols."""
    open_book(ledger, "twin", BookSettings(max_volume_share=0.0), LATER)
    for left in (2, 1):
        step_book(ledger, "twin", BookData(panel.rows(0, panel.days - left), "small"), lambda: LATER)
    return step_book(ledger, "twin", BookData(panel, "small"), lambda: LATER)


def test_symbol_changes_of_a_file_reach_the_panel(panel: Panel, tmp_path: Path) -> None:
    old, day = panel.symbols[3], str(panel.dates[60])
    (tmp_path / "changes.csv").write_text(f"date,symbol,new_symbol\n{day},{old},ZZNEW\n")
    file = markets.write(markets.tidy(panel), tmp_path / "prices.csv")
    read = load_panel(PanelSource(file, symbol_changes=tmp_path / "changes.csv"))
    assert read.renames == ((day, old, "ZZNEW"),)
    assert read.rows(0, 5).trace(old, str(panel.dates[0])) == "ZZNEW"
    assert read.trace(old, day) == old, "another company's from that day on"


def test_a_day_that_was_taken_back_is_passed_on_record(ledger: Ledger, panel: Panel, workspace: Path) -> None:
    step(ledger, panel, 2)
    odd = panel.rows(0, panel.days - 1)
    stray = replace(odd, dates=np.array([*odd.dates[:-1], odd.dates[-2] + 1]))
    fixed = panel.rows(0, panel.days - 1)
    if stray.dates[-1] == fixed.dates[-1]:  # the day after is a session: take that one away
        fixed = replace(fixed, dates=np.array([*fixed.dates[:-1], fixed.dates[-1] + 1]))
    step(ledger, stray)
    with pytest.raises(RiskError, match="lacks the day") as refused:
        step(ledger, fixed)
    assert "--revised" in str(refused.value.hint)
    (after,) = step(ledger, fixed, revised=("a stray row", "Ada"))
    assert after.revised == ("a stray row", "Ada")
    assert not any(parts for _, parts in replay_book(ledger, NAME))
    assert run_command(["book", "step", NAME, "--revised", "why", "--workspace", str(workspace)]) == 2


def test_a_panel_of_other_spelling_goes_on_by_its_changes(ledger: Ledger, panel: Panel) -> None:
    step(ledger, panel, 2)
    step(ledger, panel, 1)
    other = replace(panel, symbols=tuple(f"{name}.US" for name in panel.symbols))
    with pytest.raises(RiskError, match="other symbols") as refused:
        step(ledger, other)
    assert "market.symbol_changes" in str(refused.value.hint)
    changes = tuple((str(panel.dates[0]), name, f"{name}.US") for name in panel.symbols)
    (last,) = step(ledger, replace(other, renames=changes))
    assert last.renamed
    assert all(name.endswith(".US") for name in last.account.holdings)


def test_a_campaign_file_tightens_the_policy_of_a_step_and_of_a_check(
    ledger: Ledger, panel: Panel, workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    panel_file = markets.write(markets.tidy(panel), tmp_path / "prices.parquet")
    campaign = tmp_path / "campaign.yaml"
    campaign.write_text(f"market: {{panel: {panel_file}}}\nrisk: {{kill_switch: true}}\n")
    place = ["--campaign", str(campaign), "--workspace", str(workspace)]
    assert run_command(["book", "step", NAME, *place]) == 0
    assert not read_step(list_steps(ledger, BOOK)[-1]).approved
    out = tmp_path / "targets.csv"
    assert run_command(["targets", "--panel", str(panel_file), "--workspace", str(workspace), "--out", str(out)]) == 0
    plain = ["--panel", str(panel_file), "--workspace", str(workspace)]
    capsys.readouterr()
    assert run_command(["risk", "check", str(out), *plain, "--json"]) == 0
    assert run_command(["risk", "check", str(out), *place]) == 1
    assert not any(parts for _, parts in replay_book(ledger, NAME))


def test_restricted_symbols_that_match_nothing_are_noted(
    ledger: Ledger, panel: Panel, workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = panel.symbols[:2]
    policy = workspace / POLICY_FILE
    policy.write_text(f"{policy.read_text()}restricted: [' {first} ', {second.lower()}]\n")
    assert RiskLimits(restricted=(f" {first} ",)).restricted == (first,)
    noted: list[str] = []
    step_book(ledger, NAME, BookData(panel, "small"), lambda: LATER, noted=noted.append)
    (line,) = (line for line in noted if "restricted" in line)
    assert f"names {second.lower()}, which the panel does not have" in line
    assert second in line
    place = ["--panel", str(markets.write(markets.tidy(panel), tmp_path / "p.parquet")), "--workspace", str(workspace)]
    out = tmp_path / "targets.csv"
    for command in (["targets", "--out", str(out)], ["risk", "check", str(out)]):
        capsys.readouterr()
        run_command([*command, *place])
        assert f"names {second.lower()}, which the panel does not have" in " ".join(capsys.readouterr().out.split())


def test_cash_that_is_no_number_is_refused(ledger: Ledger, panel: Panel, workspace: Path, tmp_path: Path) -> None:
    step(ledger, panel)
    (tmp_path / "broker.csv").write_text("symbol,shares\nA,1\n")
    command = ["book", "reconcile", NAME, str(tmp_path / "broker.csv"), "--workspace", str(workspace)]
    assert run_command([*command, "--cash", "nan", "--tolerance", "1e9"]) == 2


@pytest.mark.parametrize("order", ["halted", "reducing"])
def test_a_withdrawal_waits_out_a_halt_and_sells_nothing(
    ledger: Ledger, panel: Panel, workspace: Path, order: Mode, capsys: pytest.CaptureFixture[str]
) -> None:
    step(ledger, panel, 6)
    account = step(ledger, panel, 5)[-1].account
    gross = sum(abs(one.value) for one in account.holdings.values())
    pay_book(
        ledger, NAME, -(account.equity - gross / 4), "Ada", at(panel, 5)
    )  # leaves a gross of four times the equity
    pay_book(ledger, NAME, -1_000.0, "Bob", at(panel, 5))
    order_mode(ledger, NAME, order, ("odd", "Ada", ""), at(panel, 5))
    first = step(ledger, panel, 4)[-1]
    assert (first.mode, first.flow, first.unpaid) == (order, -1_000.0, ("000001",)), "a small one is no leverage"
    assert run_command(["book", "show", NAME, "--workspace", str(workspace)]) == 0
    assert "Not paid yet" in capsys.readouterr().out
    (held,) = step(ledger, panel, 3)
    assert (held.flow, held.unpaid) == (0.0, ("000001",))
    if order == "halted":
        assert (first.fills, held.fills) == ((), ())
        assert {*held.account.holdings} == {*account.holdings}
    order_mode(ledger, NAME, "active", ("it was nothing", "Ada", "Bob"), at(panel, 3))
    paid, after = step(ledger, panel, 1)
    assert (paid.flow, paid.unpaid, after.flow) == (-(account.equity - gross / 4), (), 0.0)
    assert not any(parts for _, parts in replay_book(ledger, NAME))


def test_a_withdrawal_that_a_fall_has_outgrown_waits(ledger: Ledger, panel: Panel) -> None:
    account = step(ledger, panel, 2)[-1].account
    fallen = replace(account, cash=account.cash - 0.5 * account.equity)
    policy = Policy()
    rows = [["000001", -0.6 * account.equity, ""], ["000002", 0.3 * account.equity, ""]]
    assert find_unpaid(fallen, rows, policy, "active") == ["000001"]
    assert find_unpaid(fallen, rows[::-1], policy, "active") == []
