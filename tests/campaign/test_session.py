"""From approved targets to orders and back: the book steps through the session that a venue executed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from alphaloom.campaign import (
    BookData,
    BookSettings,
    BookStep,
    PlanRequest,
    SessionRun,
    SessionWatch,
    execute_session,
    list_steps,
    open_book,
    order_mode,
    preview_session,
    read_step,
    replay_book,
    step_book,
)
from alphaloom.campaign.session.cutting import NamePast, SessionHours
from alphaloom.campaign.session.plan import SessionPlan, plan_session, restore_plan
from alphaloom.campaign.session.run import make_gate
from alphaloom.desk.cli.main import run_command
from alphaloom.evaluation import add_by_hand
from alphaloom.execution import (
    ALL_ORDERS,
    EXECUTION_FILE,
    ExecutionError,
    Halt,
    HaltSwitch,
    OrderRecord,
    OrderState,
)
from alphaloom.execution.schedule import Algorithm, find_benchmark, make_session_curve
from alphaloom.factors import parse
from alphaloom.ledger import Ledger
from alphaloom.market import Panel, SyntheticConfig, simulate
from alphaloom.risk import POLICY_FILE, RiskError

from . import markets
from .test_book import shell_out

pytestmark = pytest.mark.integration
LATER = datetime(2199, 7, 9, tzinfo=UTC)
FACTOR = parse("rank(-ts_mean(returns, 5))")
POLICY = f"""admitted: [by_hand]
similarity_cap_bp: 10000
single_name_cap_bp: 2000
net_cap_bp: 9000
exceptions: [{{evidence: {FACTOR.id}, rule: original, reason: a test, owner: Ada, until: 2199-12-31}}]
"""
PAPER = PlanRequest("paper")
DAYS = 6
TERMS = BookSettings(max_volume_share=0.02)
TWO_VENUES = """schedule:
  slices: 6
  venues:
  - {name: LIT, depth_bp: 6000, latency_us: 200}
  - {name: DARK, depth_bp: 2000, fee_e6: 1000, hidden_bp: 500}
"""


@pytest.fixture(scope="module")
def panel() -> Panel:
    return simulate(SyntheticConfig(seed=4, days=120, names=30)).panel


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    (tmp_path / POLICY_FILE).write_text(POLICY)
    with Ledger.open(tmp_path, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC)) as record:
        add_by_hand(record, FACTOR, "2026-06-01")
        yield record


def step(ledger: Ledger, name: str, panel: Panel, left: int) -> BookStep:
    """Take a book to the day that has so many days after it."""
    open_book(ledger, name, TERMS, LATER)
    data = BookData(panel.rows(0, panel.days - left), "small")
    return step_book(ledger, name, data, lambda: LATER)[-1]


def execute(ledger: Ledger, name: str, panel: Panel, left: int, request: PlanRequest = PAPER) -> SessionRun:
    """Execute the session of the day that has so many days after it."""
    return execute_session(ledger, name, BookData(panel.rows(0, panel.days - left), "small"), request, LATER)


def read_orders(ledger: Ledger, run: SessionRun) -> OrderRecord:
    return OrderRecord(ledger, run.plan.close.book, run.plan.close.session)


def test_an_executed_book_holds_what_the_book_itself_would_but_for_whole_shares(ledger: Ledger, panel: Panel) -> None:
    """Orders are made at the last close and in whole shares; the book's own fills are made at the open in fractions."""
    for left in range(DAYS, -1, -1):
        if left < DAYS:
            run = execute(ledger, "executed", panel, left)
            before = read_step(list_steps(ledger, "book-executed")[-1])
            own = {one.order.asset: one for one in run.orders.orders.values()}
            assert run.orders.done == {"orders": len(own), "filled": sum(one.filled_shares > 0 for one in own.values())}
            for name, target_e8 in before.approved.items():
                close, held = run.plan.close.prices[name][0], before.account.holdings.get(name)
                wanted = target_e8 / 1e8 * before.account.equity / close - (held.shares if held else 0.0)
                ordered = own[name].order.signed_shares if name in own else 0
                assert abs(ordered - wanted) < 2
            after = step(ledger, "executed", panel, left)
            fills = {fill.symbol: fill for fill in after.fills}
            assert fills.keys() == {name for name, one in own.items() if one.filled_shares}
            for name, fill in fills.items():
                assert abs(fill.shares) == pytest.approx(own[name].filled_shares, abs=1)
                assert fill.price == pytest.approx(panel.fields["open"][-1 - left, panel.symbols.index(name)], abs=1e-4)
                room = TERMS.max_volume_share * panel.fields["volume"][-1 - left, panel.symbols.index(name)]
                assert own[name].filled_shares == min(own[name].order.shares, int(room))
                assert fill.cost == pytest.approx(abs(fill.shares) * fill.price * 1e-3, abs=1e-3)
        else:
            step(ledger, "executed", panel, left)
        simulated = step(ledger, "simulated", panel, left)
    assert {parts for _, found in replay_book(ledger, "executed") for parts in found} == set()
    whole = [one.shares for one in after.account.holdings.values()]
    assert whole
    assert all(shares == int(shares) for shares in whole)
    assert after.account.holdings.keys() == simulated.account.holdings.keys()
    assert after.account.equity == pytest.approx(simulated.account.equity, rel=2e-3)


def test_a_session_that_did_not_end_holds_the_book_back_and_a_cancel_frees_it(
    ledger: Ledger, panel: Panel, tmp_path: Path
) -> None:
    step(ledger, "halted", panel, 2)
    with HaltSwitch(tmp_path) as switch:
        switch.set(Halt("a test", "ann", 1))
        run = execute(ledger, "halted", panel, 1)
        assert (run.orders.done, run.orders.orders) == (None, {})
        with pytest.raises(RiskError, match="not all ended"):
            step(ledger, "halted", panel, 1)
        assert read_orders(ledger, run).record_cancel(ALL_ORDERS, "ann", "now")
        ended = execute(ledger, "halted", panel, 1)
        assert ended.orders.done == {"orders": len(run.plan.children), "filled": 0}
        assert {state.refusals for state in ended.orders.orders.values()} == {("cancelled",)}
    assert step(ledger, "halted", panel, 1).fills == ()
    with pytest.raises(ExecutionError, match="ends before the session"):
        execute(ledger, "halted", panel, 1)


def test_a_changed_decision_or_report_is_refused_and_named(ledger: Ledger, panel: Panel, tmp_path: Path) -> None:
    step(ledger, "changed", panel, 2)
    run = execute(ledger, "changed", panel, 1)
    day = step(ledger, "changed", panel, 1).day
    order = next(state for state in run.orders.orders.values() if state.filled_shares)
    where = f"kind = 'order.report' AND key LIKE '% {order.order.id} %-filled'"
    shell_out(tmp_path, f"UPDATE events SET body = json_set(body, '$.body.price_e4', 1) WHERE {where}")
    assert dict(replay_book(ledger, "changed"))[day] == ["orders and fills"]
    where = f"kind = 'book.step' AND key = '{day}'"
    shell_out(tmp_path, f"UPDATE events SET body = json_set(body, '$.body.decision.id', 'x') WHERE {where}")
    with pytest.raises(ExecutionError, match="otherwise than it is on record"):
        execute(ledger, "changed", panel, 0)


def test_what_people_and_lenders_allow_holds_for_orders(ledger: Ledger, panel: Panel, tmp_path: Path) -> None:
    step(ledger, "lent", panel, 2)
    data = BookData(panel, "small")
    plain = preview_session(ledger, "lent", data, PAPER, LATER)
    shorts = {one.asset for one in plain.plan.parents if one.shares < 0}
    first, *others = sorted(shorts)
    assert others
    assert all(ruling.passed for ruling in plain.preview)

    none = preview_session(ledger, "lent", data, PlanRequest("paper", 1, {}), LATER)
    assert {one.asset for one in none.plan.parents} == {one.asset for one in plain.plan.parents} - shorts
    assert {(one.asset, one.rule) for one in none.plan.left_out} >= {(name, "locate") for name in shorts}
    (tmp_path / POLICY_FILE).write_text(f"{POLICY}not_shortable: ['{first}']\nrestricted: ['{others[0]}']\n")
    bound = preview_session(ledger, "lent", data, PAPER, LATER)
    assert (first, "borrow") in {(one.asset, one.rule) for one in bound.plan.left_out}
    refused = {ruling.order: ruling.refusals for ruling in bound.preview if not ruling.passed}
    assert {order.asset for order in bound.plan.children if order.id in refused} == {others[0]}
    order_mode(ledger, "lent", "halted", ("a test", "ann", ""), datetime(2000, 1, 1, tzinfo=UTC))
    assert preview_session(ledger, "lent", data, PAPER, LATER).plan.parents == ()


def test_a_list_of_locates_is_what_a_short_may_grow_by_for_orders_and_gate_alike(ledger: Ledger, panel: Panel) -> None:
    step(ledger, "short", panel, 6)
    step(ledger, "short", panel, 1)  # it holds shorts already
    data = BookData(panel, "small")
    plan = preview_session(ledger, "short", data, PAPER, LATER).plan
    grows = {one.asset: -one.shares for one in plan.parents if one.shares < 0 and plan.close.held.get(one.asset, 0) < 0}
    assert grows
    lent = preview_session(ledger, "short", data, PlanRequest("paper", 1, grows), LATER)
    assert {one.asset for one in lent.plan.parents} >= grows.keys()
    assert {rule for ruling in lent.preview for rule in ruling.refusals} == set()
    fewer = {name: shares - 1 for name, shares in grows.items()}
    gate = make_gate(ledger, plan.close, data, PlanRequest("paper", 1, fewer))[0]
    for order in (one for one in plan.children if one.asset in grows):
        gate.quote(order.asset, 10_000, order.at_us)
        assert gate.check(order, order.at_us).refusals == ("borrow",)


def test_a_panel_that_was_adjusted_anew_changes_shares_and_no_value(ledger: Ledger, panel: Panel) -> None:
    """The session is executed on one file; the step reads another one in which every price was halved since."""
    step(ledger, "split", panel, 2)
    step(ledger, "whole", panel, 2)
    for name in ("split", "whole"):
        execute(ledger, name, panel, 1)
    halved = scale(panel, 0.5)
    split, whole = step(ledger, "split", halved, 1), step(ledger, "whole", panel, 1)
    assert split.account.equity == pytest.approx(whole.account.equity)
    for name, one in whole.account.holdings.items():
        assert split.account.holdings[name].shares == pytest.approx(2 * one.shares)
    assert split.corrections == ()


def test_a_session_that_was_begun_on_other_data_is_ended_by_a_cancel_of_all(
    ledger: Ledger, panel: Panel, tmp_path: Path
) -> None:
    step(ledger, "begun", panel, 2)
    with HaltSwitch(tmp_path) as switch:
        switch.set(Halt("a test", "ann", 1))
        run = execute(ledger, "begun", panel, 1)
        switch.release(Halt("over", "ann", 2), "bob")
    halved = scale(panel, 0.5)
    with pytest.raises(ExecutionError, match="planned on other data"):
        execute(ledger, "begun", halved, 1)
    assert read_orders(ledger, run).record_cancel(ALL_ORDERS, "ann", "now")
    ended = execute(ledger, "begun", halved, 1)
    assert ended.orders.done == {"orders": len(run.plan.children), "filled": 0}


def test_what_was_approved_is_not_traded_in_a_second_session_of_a_panel_that_lacks_the_first(
    ledger: Ledger, panel: Panel, tmp_path: Path
) -> None:
    step(ledger, "twice", panel, 3)
    gone = BookData(drop_day(panel, -3), "small")
    with HaltSwitch(tmp_path) as switch:
        switch.set(Halt("a test", "ann", 1))
        assert execute(ledger, "twice", panel, 1).orders.orders == {}
        switch.release(Halt("over", "ann", 2), "bob")
    assert preview_session(ledger, "twice", gone, PAPER, LATER).plan.parents  # nothing of it was traded
    assert execute(ledger, "twice", panel, 1).orders.done is not None
    with pytest.raises(RiskError) as raised:
        execute_session(ledger, "twice", gone, PAPER, LATER)
    assert raised.value.code == "session_skipped"
    with pytest.raises(RiskError) as raised:
        step_book(ledger, "twice", gone, lambda: LATER)
    assert raised.value.code == "session_skipped"
    assert [one["day"] for one in list_steps(ledger, "book-twice")][-1] == str(panel.dates[-4])
    step(ledger, "twice", panel, 1)


@pytest.mark.parametrize("schedule", ["twap", "vwap", "pov", "is"])
def test_a_schedule_is_kept_in_the_plan_and_goes_on_after_a_kill(
    ledger: Ledger, panel: Panel, tmp_path: Path, schedule: Algorithm
) -> None:
    """The plan has all children; a session that was killed twice has the fills of one that was not."""
    request = PlanRequest("paper", schedule=schedule)
    for name in ("whole", "killed"):
        step(ledger, name, panel, 2)
    (tmp_path / EXECUTION_FILE).write_text(TWO_VENUES if schedule == "vwap" else "schedule: {slices: 6}\n")
    whole = execute(ledger, "whole", panel, 1, request)
    plan, told = whole.plan, list[str]()
    assert sum(child.signed_shares for child in plan.children) == sum(parent.shares for parent in plan.parents)
    for parent in plan.parents:
        cut = plan.cuts[parent.id]
        curve = make_session_curve(plan.spans, plan.settings.slices, cut.past.day_shares or 0)
        room = dict(zip(curve.edges_us, curve.volume_shares, strict=False))
        assert sum(shares for _, shares in cut.slices) == abs(parent.shares)
        assert all(shares * 10_000 <= plan.settings.participation_bp * room[at_us] for at_us, shares in cut.slices)
        assert cut.expected is not None
        assert cut.expected.expected_bp > plan.settings.half_spread_bp

    def die(state: OrderState) -> None:
        told.append(state.order.id)
        if len(told) in (7, 20):
            raise KeyboardInterrupt

    data = BookData(panel.rows(0, panel.days - 1), "small")
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            execute_session(ledger, "killed", data, request, LATER, SessionWatch(told=die))
        (tmp_path / EXECUTION_FILE).write_text("schedule: {slices: 3}\n")  # the plan on record holds
    killed = execute(ledger, "killed", panel, 1, PAPER)
    assert killed.orders.done is not None
    assert killed.plan.children == plan.children
    assert [one.reports for one in killed.orders.orders.values()] == [
        one.reports for one in whole.orders.orders.values()
    ]
    assert killed.orders.measured == whole.orders.measured
    reports = [report for state in whole.orders.orders.values() for report in state.reports if report.shares]
    assert {one.exec_id.split(":")[1] for one in reports} == ({"LIT", "DARK"} if schedule == "vwap" else {"X"})
    measured = whole.orders.measured or {}
    assert measured["benchmark"] == find_benchmark(schedule)
    filled = sum(state.filled_shares for state in whole.orders.orders.values())
    assert sum(row["filled_shares"] for row in measured["parents"].values()) == filled > 0
    assert {row["benchmark_e4"] is None for row in measured["parents"].values()} == {False}
    step(ledger, "killed", panel, 1)
    assert {parts for _, found in replay_book(ledger, "killed") for parts in found} == set()


def test_a_schedule_that_cannot_be_is_refused_before_anything_is_planned(
    ledger: Ledger, panel: Panel, tmp_path: Path
) -> None:
    step(ledger, "refused", panel, 2)
    data = BookData(panel.rows(0, panel.days - 1), "small")
    (tmp_path / EXECUTION_FILE).write_text("schedule: {participation_bp: 1}\n")
    for venue, code in (("nautilus", "schedule_venue"), ("fix", "schedule_quotes")):
        with pytest.raises(ExecutionError) as raised:
            execute_session(ledger, "refused", data, PlanRequest(venue, schedule="twap"), LATER)
        assert raised.value.code == code
    few = preview_session(ledger, "refused", data, PlanRequest("paper", schedule="twap"), LATER)
    left = {row.asset: row.shares for row in few.plan.left_out if row.rule == "participation"}
    whole = {parent.asset: parent.shares for parent in few.plan.parents}
    assert left
    for child in few.plan.children:
        whole[child.asset] -= child.signed_shares
    assert whole == {name: left.get(name, 0) for name in whole}
    assert all(ruling.passed for ruling in few.preview)
    close, spans = few.plan.close, few.plan.spans
    name = few.plan.parents[0].asset
    unknown = replace(close, pasts={**close.pasts, name: NamePast(None, 100.0)})
    plan = plan_session(unknown, few.plan.request, SessionHours(spans))
    assert (name, "history") in {(row.asset, row.rule) for row in plan.left_out}
    assert name not in {child.asset for child in plan.children}
    with pytest.raises(ExecutionError, match="No session is left"):
        plan_session(close, few.plan.request, SessionHours(((spans[0][0], spans[0][0]),)))
    (tmp_path / EXECUTION_FILE).write_text("orders: {max_quote_age_s: 10800}\n")
    begun = datetime.fromtimestamp(spans[0][0] / 1e6 + 7_200, UTC)
    known = BookData(panel.rows(0, panel.days - 2), "small")
    late = preview_session(ledger, "refused", known, PlanRequest("fix", schedule="twap"), begun).plan
    assert late.children[0].at_us >= begun.timestamp() * 1e6 > late.opens_us
    assert preview_session(ledger, "refused", known, PlanRequest("fix"), begun).plan.children
    (tmp_path / EXECUTION_FILE).write_text("orders: {max_quote_age_s: 7199}\n")
    with pytest.raises(ExecutionError, match="too old for the order gate"):
        preview_session(ledger, "refused", known, PlanRequest("fix"), begun)


def test_sizes_and_times_of_slices_are_hidden_where_a_person_says_so(
    ledger: Ledger, panel: Panel, tmp_path: Path
) -> None:
    step(ledger, "hidden", panel, 2)

    def cut(terms: str) -> SessionPlan:
        (tmp_path / EXECUTION_FILE).write_text(f"schedule: {{slices: 6{terms}}}\n")
        return preview_session(
            ledger, "hidden", BookData(panel, "small"), PlanRequest("paper", schedule="twap"), LATER
        ).plan

    even = cut("")
    plain, same, other = (
        cut(f", hidden_sizes_bp: 5000, hidden_times_bp: 10000, hidden_seed: {seed}") for seed in (1, 1, 2)
    )
    assert plain.children == same.children
    assert len({plan.children for plan in (even, plain, other)}) == 3
    assert len({one.at_us for one in plain.children}) == len(plain.children) > 6
    for parent in plain.parents:
        assert sum(one.signed_shares for one in plain.children if one.parent == parent.id) == parent.shares
    run = execute(ledger, "hidden", panel, 1, PlanRequest("paper", schedule="twap"))
    assert run.orders.done is not None
    assert run.plan.children == other.children


def drop_day(panel: Panel, row: int) -> Panel:
    """Return a panel without one day."""
    kept = np.delete(np.arange(panel.days), row)
    fields = {name: cells[kept] for name, cells in panel.fields.items()}
    return replace(panel, dates=panel.dates[kept], fields=fields, universe=panel.universe[kept])


def scale(panel: Panel, factor: float) -> Panel:
    """Return a panel whose prices were all adjusted by one factor."""
    prices = {name: cells * factor for name, cells in panel.fields.items() if name in ("open", "high", "low", "close")}
    return replace(panel, fields={**panel.fields, **prices, "volume": panel.fields["volume"] / factor})


def test_the_commands_execute_show_and_cancel(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    market = simulate(SyntheticConfig(seed=4, days=120, names=30)).panel
    file, place = markets.write(markets.tidy(market), tmp_path / "prices.parquet"), tmp_path / "workspace"
    place.mkdir()
    (place / POLICY_FILE).write_text(POLICY)
    with Ledger.open(place, clock=lambda: LATER) as record:
        add_by_hand(record, FACTOR, "2026-06-01")
    here = ["--workspace", str(place)]
    data = [*here, "--panel", str(file)]
    days = [str(day) for day in market.dates[-3:]]
    assert run_command(["book", "open", "paper", *here]) == 0
    assert run_command(["execute", "paper", *data]) == 2
    assert run_command(["orders", "paper", *here]) == 2
    assert run_command(["book", "step", "paper", *data, "--until", "1999-01-01"]) == 2
    assert run_command(["book", "step", "paper", *data, "--until", days[0]]) == 0
    assert run_command(["execute", "paper", *data, "--venue", "moon"]) == 2
    capsys.readouterr()
    told = {}
    for word in ("dry", "real", "again"):
        assert run_command(["execute", "paper", *data, "--json", *(["--dry-run"] if word == "dry" else [])]) == 0
        told[word] = json.loads(capsys.readouterr().out)
    assert (told["dry"]["status"], told["real"]["status"]) == ("dry run", "done")
    assert told["real"] == told["again"]
    assert told["real"]["session"] == days[1]
    assert told["real"]["by_status"] == {"filled": len(told["dry"]["orders"])}
    assert told["real"]["costs"] == pytest.approx(told["real"]["expected_cost"], rel=0.1)
    assert run_command(["orders", "paper", *here]) == 0
    assert "Slippage against arrival" in capsys.readouterr().out
    assert run_command(["orders", "paper", *here, "--cancel", "all", "--by", "ann"]) == 2
    assert run_command(["book", "step", "paper", *data, "--until", days[1]]) == 0
    assert run_command(["execute", "paper", *data, "--schedule", "moon"]) == 2
    assert run_command(["execute", "paper", *data, "--schedule", "vwap"]) == 0
    out = capsys.readouterr().out
    assert "slices (vwap)" in out
    assert "Expected spread and impact by the model of Almgren" in out
    assert run_command(["orders", "paper", *here]) == 0
    assert "Against the market's mean price by volume" in capsys.readouterr().out
    assert run_command(["orders", "paper", *here, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    for row in facts["orders"]:
        assert sum(child["shares"] for child in row["children"]) == row["shares"]
        assert sum(child["filled"] for child in row["children"]) == row["filled"]
    assert run_command(["book", "step", "paper", *data, "--until", days[2]]) == 0
    assert run_command(["book", "replay", "paper", *here]) == 0


def test_a_plan_from_before_schedules_goes_on_as_market_orders(ledger: Ledger, panel: Panel) -> None:
    step(ledger, "older", panel, 2)
    plan = preview_session(ledger, "older", BookData(panel.rows(0, panel.days - 1), "small"), PAPER, LATER).plan
    new = {"spans", "schedule", "schedule_settings", "cost_model", "expected_slippage"}
    body = {name: part for name, part in plan.record().items() if name not in new}
    rows = [{k: v for k, v in row.items() if k not in {"past", "slices", "expected"}} for row in body["parents"]]
    again = restore_plan(plan.close, body | {"parents": rows})
    assert again.children == plan.children
    assert again.request == plan.request
