"""Schedules: children sum to the parent, no interval is above its cap, and holdings are those of the literature."""

from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import LinearConstraint, minimize

from alphaloom.execution import ExecutionError, ExecutionReport, ParentOrder
from alphaloom.execution.schedule import (
    ALGORITHMS,
    CostModel,
    Hiding,
    SchedulePlan,
    ScheduleRules,
    VolumeCurve,
    estimate_cost,
    learn_curve,
    make_u_curve,
    measure_slippage,
    optimal_holdings,
    plan_schedule,
)

from .approvals import DAY, approve

OPEN_US, CLOSE_US = 1_000_000_000, 1_000_000_000 + 390 * 60_000_000
MODEL = CostModel(half_spread_bp=2.0, volatility_bp=150.0)
(APPROVED,) = approve("AAA")
CURVE = make_u_curve(OPEN_US, CLOSE_US, 13, 1_000_000)


def make_parent(shares: int) -> ParentOrder:
    return ParentOrder(APPROVED, shares, 500_000, DAY)


def make_plan(shares: int, curve: VolumeCurve, rules: ScheduleRules) -> tuple[SchedulePlan, ScheduleRules]:
    return plan_schedule(make_parent(shares), curve, rules, MODEL), rules


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, VolumeCurve, ScheduleRules]:
    """Return shares, a curve and rules; a parent cannot be printed."""
    volumes = draw(st.lists(st.integers(0, 5_000), min_size=1, max_size=12).filter(any))
    lengths = draw(st.lists(st.integers(1, 10**8), min_size=len(volumes), max_size=len(volumes)))
    curve = VolumeCurve((0, *map(int, np.cumsum(lengths))), tuple(volumes))
    shares = draw(st.integers(1, 4_000)) * draw(st.sampled_from([1, -1]))
    hiding = draw(st.none() | st.builds(Hiding, st.integers(0, 9), st.integers(0, 10_000), st.integers(0, 10_000)))
    rules = ScheduleRules(
        draw(st.sampled_from(ALGORITHMS)),
        draw(st.integers(1, 10_000)),
        draw(st.sampled_from([1, 7, 100])),
        draw(st.none() | st.integers(0, 500)),
        draw(st.sampled_from([0.0, 1e-6, 1e-2])),
        hiding,
    )
    return shares, curve, rules


@given(cases())
def test_children_sum_to_the_parent_and_none_is_above_its_cap(case: tuple[int, VolumeCurve, ScheduleRules]) -> None:
    plan, rules = make_plan(*case)
    parent, curve, planned = plan.parent, plan.curve, plan.planned_shares
    children = plan.children
    placed = sum(child.signed_shares for child in children)
    assert placed + plan.unplaced_shares * (1 if parent.shares > 0 else -1) == parent.shares
    assert all(n * 10_000 <= rules.participation_bp * v for n, v in zip(planned, curve.volume_shares, strict=True))
    assert sum(n % rules.lot_shares > 0 for n in planned) <= 1
    # Shares stay unplaced only where no whole lot fits any more, or the odd remainder fits nowhere.
    room = [rules.participation_bp * v // 10_000 - n for n, v in zip(planned, curve.volume_shares, strict=True)]
    assert max(room) < min(rules.lot_shares, plan.unplaced_shares) or plan.unplaced_shares == 0
    assert [child.at_us for child in children] == sorted(child.at_us for child in children)
    assert all(a <= at < b for a, b, at in zip(curve.edges_us, curve.edges_us[1:], plan.times_us, strict=False))
    assert len({child.id for child in children}) == len(children)


def test_holdings_are_those_of_almgren_and_chriss() -> None:
    sigma, eta, gamma, aversion, tau, days = 0.95, 2.5e-6, 2.5e-7, 1e-6, 1.0, 5
    impact, variance = np.full(days, eta / tau - gamma / 2), np.full(days, sigma**2 * tau)
    held = optimal_holdings(1e6, impact, variance, aversion)
    assert [round(one) for one in held] == [1_000_000, 541_956, 289_854, 147_897, 62_142, 0]
    kappa = np.arccosh(1 + aversion * sigma**2 / (eta - gamma * tau / 2) * tau**2 / 2) / tau
    times = np.arange(days + 1)
    np.testing.assert_allclose(held, 1e6 * np.sinh(kappa * (days - times)) / np.sinh(kappa * days), atol=1e-6)


@pytest.mark.parametrize("power", [0.6, 1.0])
def test_the_shortfall_schedule_is_the_cheapest(power: float) -> None:
    model, parent, aversion = replace(MODEL, temporary_exponent=power), make_parent(100_000), 2e-6
    curve = VolumeCurve((0, 10, 30, 40, 60), (300_000, 400_000, 0, 300_000))
    plan = plan_schedule(parent, curve, ScheduleRules("is", 10_000, risk_aversion=aversion), model)

    def find_utility(parts: Any) -> float:
        shares = parts * 100_000
        volume = np.array([300_000.0, 400_000.0, 300_000.0])
        temporary = (shares * 0.142 * 150 * (shares / volume) ** power).sum() / 1e4 * 50
        held = 100_000 - np.cumsum(shares)
        variance = (np.array([10, 30, 20]) / 60 * held**2).sum() * (150 / 1e4 * 50) ** 2
        return float(temporary + aversion * variance) / 1e3

    best = minimize(
        find_utility,
        np.full(3, 1 / 3),
        bounds=[(1e-6, None)] * 3,
        constraints=LinearConstraint(np.ones((1, 3)), 1, 1),
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    ours = np.array([plan.planned_shares[place] for place in (0, 1, 3)], np.float64) / 100_000
    assert plan.planned_shares[2] == 0
    assert find_utility(ours) <= best.fun * (1 + 1e-6)
    np.testing.assert_allclose(ours, best.x, atol=1e-4)


def test_each_algorithm_has_its_shape() -> None:
    shares = {
        name: plan_schedule(make_parent(13_000), CURVE, ScheduleRules(name, 1_000, 100), MODEL).planned_shares  # type: ignore[arg-type]  # a list of strings
        for name in ALGORITHMS
    }
    assert shares["market"] == (13_000,)
    assert shares["twap"] == (1_000,) * 13
    assert shares["pov"][1] == 0
    assert shares["is"][0] > shares["vwap"][0] > shares["vwap"][6]
    ideal = np.cumsum(CURVE.volume_shares) * 13_000 / CURVE.day_shares
    assert np.abs(np.cumsum(shares["vwap"]) - ideal).max() <= 100


def test_hiding_changes_sizes_and_times_by_the_seed_alone() -> None:
    one, same, other = (
        plan_schedule(make_parent(13_000), CURVE, ScheduleRules("twap", hiding=Hiding(seed)), MODEL)
        for seed in (1, 1, 2)
    )
    assert one == same
    assert one.times_us != other.times_us
    assert one.planned_shares != other.planned_shares
    assert len(set(one.planned_shares)) > 10
    tomorrow = ParentOrder(APPROVED, 13_000, 500_000, date(2026, 1, 6))
    assert plan_schedule(tomorrow, CURVE, ScheduleRules("twap", hiding=Hiding(1)), MODEL).times_us != one.times_us


def test_a_curve_is_learned_from_sessions_that_count_alike() -> None:
    past = np.array([[1, 1, 2], [400, 200, 200], [0, 0, 0]])
    curve = learn_curve(0, 300, past, 800)
    assert curve == VolumeCurve((0, 100, 200, 300), (300, 200, 300))
    with pytest.raises(ExecutionError, match="malformed"):
        learn_curve(0, 300, past[2:], 800)


def test_the_expected_cost_has_its_parts_and_its_doubt() -> None:
    # 4,000 of 20,000 shares in each of two equal intervals: participation 0.2, temporary 21.3 * 0.2 ** 0.6 bp.
    curve, parent = VolumeCurve((0, 50, 100), (20_000, 20_000)), make_parent(8_000)
    cost = estimate_cost(parent, np.array([4_000, 4_000]), curve, MODEL)
    assert cost.spread_bp == 2.0
    assert cost.temporary_bp == pytest.approx(21.3 * 0.2**0.6)
    assert cost.permanent_bp == pytest.approx(0.314 * 150 * 8_000 / 40_000 / 2)
    assert cost.sd_bp == pytest.approx(150 * np.sqrt(0.5 * 0.25))
    assert cost.value_e4 == 8_000 * 500_000
    assert cost.expected_e4 == round(cost.expected_bp * cost.value_e4 / 1e4)
    assert cost.interval_bp[0] < cost.expected_bp < cost.interval_bp[1]
    assert estimate_cost(parent, np.array([0, 0]), curve, MODEL).expected_e4 == 0


def test_slippage_counts_fills_fees_and_what_was_missed() -> None:
    parent = make_parent(-300)
    fill = ExecutionReport(f"{parent.id}-1.2", "filled", "a", 5, 100, 499_000, 50)
    other = ExecutionReport("000000000000-1", "filled", "b", 5, 100, 499_000, 50)
    reports = [fill, fill, other, replace(fill, exec_id="c", order=f"{parent.id}-2", price_e4=501_000)]
    found = measure_slippage(parent, reports, last_e4=490_000)
    assert (found.filled_shares, found.unfilled_shares, found.mean_e4) == (200, 100, 500_000)
    assert (found.price_e4, found.fees_e4, found.missed_e4) == (0, 100, 1_000_000)
    assert found.total_bp == pytest.approx(1_000_100 / 150_000_000 * 1e4)
    assert found.filled_bp == pytest.approx(100 / 100_000_000 * 1e4)
    assert measure_slippage(parent, []).total_e4 == 0
    over = measure_slippage(parent, [fill, replace(fill, exec_id="d", shares=201)], last_e4=490_000)
    assert (over.filled_shares, over.unfilled_shares, over.missed_e4, over.price_e4) == (301, 0, 0, 301_000)


@pytest.mark.parametrize(
    "change",
    [{"algorithm": "best"}, {"participation_bp": 0}, {"participation_bp": 10_001}, {"lot_shares": 0},
     {"limit_bp": 10_000}, {"risk_aversion": -1.0}],
    ids=str,
)  # fmt: skip  # a table
def test_malformed_rules_are_refused(change: dict[str, int]) -> None:
    with pytest.raises(ExecutionError) as raised:
        replace(ScheduleRules("vwap"), **change)  # type: ignore[arg-type]  # wrong on purpose
    assert raised.value.field in change


@pytest.mark.parametrize(("shares", "limit_e4"), [(100, 502_500), (-100, 497_500)])
def test_a_limit_is_away_from_the_arrival_price(shares: int, limit_e4: int) -> None:
    plan = plan_schedule(make_parent(shares), CURVE, ScheduleRules("vwap", limit_bp=50), MODEL)
    assert {(child.kind, child.limit_e4) for child in plan.children} == {("limit", limit_e4)}


def test_slippage_against_a_price_is_exact_in_whole_units() -> None:
    parent = make_parent(10**9 + 1)
    fill = ExecutionReport(f"{parent.id}-1", "filled", "x", OPEN_US, 10**9, 99_999_999)
    last = ExecutionReport(f"{parent.id}-2", "filled", "x", OPEN_US, 1, 1)  # an id is one of its order
    found = measure_slippage(parent, [fill, last])
    assert found.against_e4(parent, 99_999_998) == 10**9 - 99_999_997
