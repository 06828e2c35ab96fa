"""The cost of a parent is split without a rest, intervals hold the mean, and the observer sees what repeats."""

from __future__ import annotations

import numpy as np
import pytest

from alphaloom.execution.schedule import ScheduleRules
from alphaloom.execution.simulation import SimulatedMarket, draw_day
from bench.execution.algorithms import MODEL, RULES
from bench.execution.observer import PLANS, record_tape, watch
from bench.execution.routing import ROUTERS, RULES as FOUR_VENUES, SMART
from bench.execution.trading import INTERVALS, NAIVE, WAYS, Way, bound, trade

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
