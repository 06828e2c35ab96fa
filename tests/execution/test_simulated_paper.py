"""A schedule on paper: a session pinned to its day, a share of the volume that is kept, and the same after a kill."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from alphaloom.execution import (
    ChildOrder,
    HaltSwitch,
    MarketTerms,
    NameSession,
    OrderEngine,
    OrderRecord,
    SessionOrders,
    SimulatedPaper,
    SimulatedTime,
)
from alphaloom.execution.orders import ParentOrder
from alphaloom.execution.schedule import CostModel, ScheduleRules, make_session_curve, make_u_curve, plan_schedule
from alphaloom.execution.simulation import MarketRules, SimulatedVenue, draw_day
from alphaloom.execution.venues.simulated import make_rules

from .approvals import DAY, approve
from .sessions import OPEN_US, PRICE_E4, RUN, make_gate, open_ledger

HOUR_US = 3_600_000_000
SPANS = ((OPEN_US, OPEN_US + 2 * HOUR_US), (OPEN_US + 3 * HOUR_US, OPEN_US + 6 * HOUR_US))
TERMS = MarketTerms(SPANS, 10.0, 2.0, 500)
NAME = NameSession(100_000, 102_400, 97_800, 101_000, 400_000, 150.0, 7)
(APPROVED,) = approve("AAA")


def make_children(shares: int, expected_shares: int = 800_000) -> tuple[ChildOrder, ...]:
    """Return an even schedule of a parent; the day trades half of what was expected."""
    curve = make_session_curve(SPANS, 10, expected_shares)
    parent = ParentOrder(APPROVED, shares, PRICE_E4, DAY)
    return plan_schedule(parent, curve, ScheduleRules("twap", 500), CostModel(2.0, 150.0)).children


def run(
    workspace: Path, children: Sequence[ChildOrder], dies_at: int = -1, terms: MarketTerms = TERMS
) -> SessionOrders:
    """Execute the schedule, or go on with it; the process dies when it was told of so many changes."""
    told: list[int] = []

    def tell(state: object) -> None:
        told.append(1)
        if len(told) == dies_at:
            raise KeyboardInterrupt

    time = SimulatedTime(OPEN_US)
    with open_ledger(workspace) as ledger, HaltSwitch(workspace) as switch:
        record, gate = OrderRecord(ledger, RUN, DAY), make_gate(children)
        engine = OrderEngine(record, gate, SimulatedPaper({"AAA": NAME}, terms, time), switch, time, tell)
        try:
            return engine.run(children, SPANS[-1][1])
        except KeyboardInterrupt:
            return record.read()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(90, 110), st.integers(0, 9), st.integers(0, 9))
def test_a_path_touches_the_four_prices_of_its_day(seed: int, end: int, above: int, below: int) -> None:
    high, low = 1_000 * (max(end, 100) + above), 1_000 * (min(end, 100) - below)
    rules = MarketRules(0, 390, 1, 100_000, end * 1_000, high, low, volatility_bp=100.0)
    mid = draw_day(rules, seed).mid_e4
    assert (mid[0], mid[-1]) == (pytest.approx(100_000), pytest.approx(end * 1_000))
    assert (mid.max(), mid.min()) == (pytest.approx(high), pytest.approx(low))


def test_a_session_with_a_break_has_no_volume_in_it_and_may_begin_late() -> None:
    curve = make_session_curve(SPANS, 10, 1_000)
    assert (len(curve.volume_shares), curve.volume_shares[4], curve.day_shares) == (11, 0, 1_000)
    late = make_session_curve(SPANS, 10, 1_000, SPANS[1][0] + 1)
    assert late.volume_shares == curve.volume_shares[6:]
    plain = make_u_curve(0, 100, 7, 999)
    assert make_session_curve([(0, 100)], 7, 999) == plain


@pytest.mark.integration
def test_fills_never_pass_the_share_of_the_volume_and_a_late_order_waits(tmp_path: Path) -> None:
    children = make_children(30_000)
    found = run(tmp_path, children)
    rules = make_rules(NAME, TERMS)
    day, filled, late = draw_day(rules, NAME.seed), 0, 0
    states = list(found.orders.values())
    assert [state.order for state in states] == list(children)
    for state in states:
        late += state.passed and state.at_us > state.order.at_us
        for report in state.reports:
            filled += report.shares
            volume = day.traded_shares(TERMS.find_market_us(report.at_us)) + filled
            assert filled * 10_000 <= 500 * volume
    assert found.done is not None
    assert late > 3
    assert states[-1].refusals == ("participation",)
    assert 0.8 < filled / (400_000 * 0.05) <= 1.1


@pytest.mark.integration
def test_each_slice_of_a_name_that_does_not_trade_says_so(tmp_path: Path) -> None:
    children = [replace(order, asset="BBB") for order in make_children(30_000)]
    found = run(tmp_path, children)
    assert found.done is not None
    assert {state.refusals for state in found.orders.values()} == {("no_trade",)}


@pytest.mark.integration
def test_a_killed_schedule_ends_with_the_fills_of_one_that_was_not(tmp_path: Path) -> None:
    children = make_children(30_000)
    whole = run(tmp_path / "whole", children)
    for dies_at in (1, 5, 2, 9, 4):
        run(tmp_path / "killed", children, dies_at)
    killed = run(tmp_path / "killed", children)
    assert killed.done == whole.done is not None
    assert [state.reports for state in killed.orders.values()] == [state.reports for state in whole.orders.values()]


@pytest.mark.integration
def test_several_venues_share_an_order_and_our_own_orders_move_the_price(tmp_path: Path) -> None:
    venues = (SimulatedVenue("LIT", 5_000), SimulatedVenue("DEAR", 5_000, fee_e6=20_000))
    children = make_children(15_000)
    paid, at = [], set()
    for name, terms in (("one", TERMS), ("two", replace(TERMS, venues=venues))):
        states = run(tmp_path / name, children, terms=terms).orders.values()
        fills = [report for state in states for report in state.reports if report.kind == "filled"]
        at |= {fill.exec_id.split(":")[1] for fill in fills}
        paid.append(sum(fill.cost_e4 - round(fill.shares * fill.price_e4 * 1e-3) for fill in fills))
    assert at == {"X", "LIT", "DEAR"}
    assert paid[0] == 0 < paid[1]
    market = SimulatedPaper({"AAA": NAME}, TERMS, SimulatedTime(OPEN_US))
    before = market.list_prices({"AAA", "BBB"}, OPEN_US + HOUR_US)
    market.send([replace(children[0], shares=5_000)])
    after = market.list_prices({"AAA"}, OPEN_US + HOUR_US)
    assert before.keys() == after.keys()
    assert after["AAA"] > before["AAA"]
    twap = market.find_benchmark("AAA", "twap", SPANS[-1][1])
    day = draw_day(make_rules(NAME, TERMS), NAME.seed)
    assert twap == round(float(np.mean(day.mid_e4)))
    assert market.find_benchmark("AAA", "vwap", SPANS[-1][1]) != twap
