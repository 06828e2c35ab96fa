"""The cost of a parent is split without a rest, intervals hold the mean, and the observer sees what repeats."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from alphaloom.execution import ParentOrder
from alphaloom.execution.schedule import ScheduleRules, plan_schedule
from alphaloom.execution.simulation import SimulatedMarket, draw_day
from bench.execution.algorithms import MODEL, RULES
from bench.execution.observer import PLANS, record_tape, watch
from bench.execution.paced import PacedSchedule
from bench.execution.routing import ROUTERS, RULES as FOUR_VENUES, SMART
from bench.execution.trading import INTERVALS, NAIVE, OPEN_US, WAYS, Way, bound, take_approval, trade
from tests.execution.approvals import DAY

CURVE = RULES.usual_curve(INTERVALS)


def test_every_way_trades_and_a_paced_one_stays_below_its_cap() -> None:
    day = draw_day(RULES, 3)
    found = {name: trade(SimulatedMarket(RULES, day), 20_000, way, CURVE, MODEL) for name, way in WAYS.items()}
    assert all(one.impact_bp > 0 for one in found.values())
    assert found["market at the open"].timing_bp == 0.0
    assert found["market at the open"].impact_bp > found[NAIVE].impact_bp
    assert max(found[name].peak_bp for name in ("vwap, paced at 10 %", "pov at 10 %")) <= 1_000
    assert abs(found["vwap"].tracking_bp) < abs(found["market at the open"].tracking_bp)


def test_routers_trade_the_same_shares() -> None:
    way, day = Way(ScheduleRules("vwap", 10_000)), draw_day(FOUR_VENUES, 1)
    paid = {
        name: trade(SimulatedMarket(FOUR_VENUES, day, router), -40_000, way, CURVE, MODEL)
        for name, router in ROUTERS.items()
    }
    assert {one.unfilled_bp for one in paid.values()} == {0.0}
    assert paid[SMART].impact_bp < paid["one venue (maker)"].impact_bp


def test_the_observer_finds_even_slices_and_not_hidden_ones() -> None:
    plain, hidden = (watch(record_tape(PLANS[name], 100_000, 5), 5) for name in ("twap", "twap, both hidden"))
    assert [plain[name] for name in ("time", "side", "size", "all")] == [1.0, 1.0, 1.0, 1.0]
    assert hidden["all"] < 0.05
    assert hidden["time"] < 0.2


def test_an_interval_holds_its_mean() -> None:
    values = np.random.default_rng(0).standard_normal(400) + 1
    mean, low, high = bound(values)
    assert low < mean < high
    assert high - low == pytest.approx(2 * 1.96 / 20, rel=0.15)


@given(st.integers(1, 100_000), st.integers(1, 3_000), st.lists(st.integers(0, 30_000), min_size=79), st.booleans())
def test_a_paced_schedule_never_passes_the_cap_of_the_volume_it_saw(
    shares: int, participation_bp: int, volumes: list[int], gives_back: bool
) -> None:
    rules = ScheduleRules("vwap", participation_bp, 100)
    parent = ParentOrder(take_approval(), shares, RULES.start_e4, DAY)
    paced, traded, filled = PacedSchedule(plan_schedule(parent, CURVE, rules, MODEL), rules), 0, 0
    for at_us, volume in zip(paced.decision_times_us, volumes, strict=False):
        traded += volume
        child = paced.release(at_us, traded)
        if child is not None:
            lost = child.shares // 2 if gives_back else 0
            paced.take_back(lost)
            filled += child.shares - lost
        assert filled == paced.sent_shares <= traded * participation_bp // 10_000
    assert filled + paced.left_shares == shares


def test_pov_follows_the_volume_and_ends_whole() -> None:
    rules = ScheduleRules("pov", 1_000, 100)
    parent = ParentOrder(take_approval(), -2_550, RULES.start_e4, DAY)
    paced = PacedSchedule(plan_schedule(parent, CURVE, rules, MODEL), rules)
    seen = [(OPEN_US, 0), (OPEN_US + 1, 9_999), (OPEN_US + 2, 19_000), (OPEN_US + 3, 10**6), (OPEN_US + 4, 10**7)]
    sent = [paced.release(*one) for one in seen]
    assert [child.signed_shares if child else 0 for child in sent] == [0, -900, -1_000, -650, 0]
