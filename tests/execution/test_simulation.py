"""The simulated market: the same seed is the same session, our orders move it, and every share is counted once."""

from dataclasses import replace

import numpy as np
import pytest

from alphaloom.execution import ChildOrder, ExecutionError, ParentOrder, RouteSlice, VenueRoute
from alphaloom.execution.schedule import CostModel, ScheduleRules, plan_schedule
from alphaloom.execution.simulation import (
    MarketRules,
    SimulatedMarket,
    SimulatedVenue,
    draw_day,
    trade_plan,
)

from .approvals import DAY, approve

MINUTE_US = 60_000_000
VENUES = (SimulatedVenue("A", 200, fee_e6=3_000, latency_us=200), SimulatedVenue("B", 100, -2_000, 0, 900, 300))
RULES = MarketRules(0, 390 * MINUTE_US, MINUTE_US, 500_000, venues=VENUES)
DAY_7 = draw_day(RULES, 7)
(APPROVED,) = approve("AAA")
BUY = ChildOrder("0f3a-1", "0f3a", "AAA", "buy", 2_000, "market", None, 30 * MINUTE_US)


def test_a_seed_is_a_session() -> None:
    again, other = draw_day(RULES, 7), draw_day(RULES, 8)
    for name in ("mid_e4", "hidden_shares", "times_us", "print_shares", "print_signs"):
        assert np.array_equal(getattr(DAY_7, name), getattr(again, name))
        assert not np.array_equal(getattr(DAY_7, name)[:100], getattr(other, name)[:100])
    assert DAY_7.traded_shares(RULES.close_us) == DAY_7.print_shares.sum()
    assert draw_day(replace(RULES, end_e4=510_000), 7).mid_e4[-1] == pytest.approx(510_000)


def test_volume_is_near_the_usual_one_and_high_at_both_ends() -> None:
    quiet = replace(RULES, volume_noise=0.0)
    sessions = [draw_day(quiet, seed) for seed in range(30)]
    spans = (0, RULES.close_us)
    volumes = [np.histogram(day.times_us, 13, spans, weights=day.print_shares)[0] for day in sessions]
    mean = np.mean(volumes, axis=0)
    assert mean.sum() == pytest.approx(RULES.day_shares, rel=0.05)
    assert min(mean[0], mean[-1]) > 1.5 * mean[6]


def test_an_order_pays_fees_moves_the_price_and_its_depth_comes_back() -> None:
    market = SimulatedMarket(RULES, DAY_7)
    before_e4, (quote_a, _) = market.mid_e4(BUY.at_us), market.list_quotes("buy", BUY.at_us)
    market.send([BUY])
    fills = market.read_reports(0)
    assert sum(fill.shares for fill in fills) == 2_000
    assert len({fill.exec_id for fill in fills}) == len(fills)
    at_a = [fill for fill in fills if fill.order == "0f3a-1.1"]
    assert [(fill.price_e4 % RULES.tick_e4, fill.cost_e4) for fill in at_a] == [(0, fill.shares * 30) for fill in at_a]
    assert sum(fill.cost_e4 for fill in fills if fill not in at_a) < 0
    assert min(fill.price_e4 for fill in fills) >= round(before_e4)
    moved_e4 = 0.314 * 0.0150 * 500_000 * 2_000 / RULES.day_shares
    assert market.moved_e4 == pytest.approx(moved_e4)
    after, later = (market.list_quotes("buy", BUY.at_us + wait)[0].levels for wait in (1_000, 60 * MINUTE_US))
    assert after[0][0] > quote_a.levels[0][0]
    assert later[0][1] > 0.9 * RULES.usual_curve(390).volume_shares[90] * 0.02
    assert market.list_quotes("sell", BUY.at_us + 1_000)[0].levels[0][0] < before_e4
    assert market.traded_shares(RULES.close_us) == DAY_7.print_shares.sum() + 2_000


def test_a_limit_holds_and_the_rest_expires() -> None:
    market = SimulatedMarket(RULES, DAY_7)
    limit_e4 = market.list_quotes("sell", BUY.at_us)[0].levels[1][0]
    market.send([replace(BUY, side="sell", shares=1_000_000, kind="limit", limit_e4=limit_e4)])
    *fills, last = market.read_reports(0)
    assert last.kind == "expired"
    assert fills
    assert min(fill.price_e4 for fill in fills) == limit_e4
    with pytest.raises(ExecutionError, match="malformed"):
        market.send([replace(BUY, at_us=0)])


def test_a_venue_that_is_reached_late_takes_its_display_away() -> None:
    nervous, filled = replace(RULES, fade_bp=10_000), []
    for hold_us in (700, 0):
        parts = (RouteSlice("A", 100, 600_000, hold_us), RouteSlice("B", 200, 600_000, 0))
        routes = iter([VenueRoute(parts, 0, 0), VenueRoute((), 0, 0)])
        market = SimulatedMarket(nervous, DAY_7, lambda *_, routes=routes: next(routes))
        market.send([replace(BUY, shares=300)])
        filled.append(sum(report.shares for report in market.read_reports(0) if report.order.endswith("1.2")))
    assert filled[0] == 200
    assert filled[1] == DAY_7.hidden_shares[30, 1] < 200


@pytest.mark.parametrize("shares", [50_000, -50_000])
def test_larger_orders_and_faster_ones_cost_more(shares: int) -> None:
    still = replace(DAY_7, mid_e4=np.full(RULES.steps, 500_000.0))
    model, curve = CostModel(1.0, 150.0), RULES.usual_curve(78)
    paid = []
    for parent_shares, algorithm in ((shares // 10, "vwap"), (shares, "vwap"), (shares, "market")):
        parent = ParentOrder(APPROVED, parent_shares, 500_000, DAY)
        plan = plan_schedule(parent, curve, ScheduleRules(algorithm), model)  # type: ignore[arg-type]  # two words
        reports = trade_plan(SimulatedMarket(RULES, still), plan)
        filled = [report for report in reports if report.kind == "filled"]
        cost_e4 = sum((one.price_e4 - 500_000) * one.shares for one in filled) * (1 if shares > 0 else -1)
        paid.append(cost_e4 / sum(one.shares for one in filled))
    assert 0 < paid[0] < paid[1] < paid[2]
