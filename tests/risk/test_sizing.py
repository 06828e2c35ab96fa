"""From scores to whole numbers."""

import math
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given, strategies as st

from alphaloom.campaign.trade import next_trading_day
from alphaloom.risk import Sizing, signals_from_scores
from alphaloom.risk.signal import RiskError, Signal

SIZING = Sizing(10_000, 5, rank_ic=0.03, rank_ic_error=0.01, reason="combination", evidence="set1")


def targets(signals: tuple[Signal, ...]) -> dict[str, int]:
    """Return the target of each asset."""
    return {signal.asset: signal.target_bp for signal in signals}


def test_the_top_fifth_is_bought_and_the_bottom_sold() -> None:
    names = [f"N{i:02d}" for i in range(15)]
    found = targets(signals_from_scores(names, [float(i) for i in range(15)], SIZING))
    assert found == {"N14": 3334, "N13": 3333, "N12": 3333, "N00": -3334, "N01": -3333, "N02": -3333}


def test_bounds_are_one_standard_error_of_the_edge_away() -> None:
    signals = signals_from_scores(
        [f"N{i:02d}" for i in range(10)], list(range(10)), replace(SIZING, side_bp=150, rank_ic_error=0.015)
    )
    assert [(signal.lo_bp, signal.target_bp, signal.hi_bp) for signal in signals] == [
        (-113, -75, -37),
        (-113, -75, -37),
        (37, 75, 113),
        (37, 75, 113),
    ]


@pytest.mark.parametrize(("mean", "error"), [(0.01, 0.02), (0.0, 0.01), (math.nan, 0.01), (0.01, math.nan)])
def test_an_edge_that_may_be_nothing_has_a_bound_at_nothing(mean: float, error: float) -> None:
    sizing = replace(SIZING, rank_ic=mean, rank_ic_error=error)
    signals = signals_from_scores([f"N{i:02d}" for i in range(10)], list(range(10)), sizing)
    assert {(min(abs(s.lo_bp), abs(s.hi_bp)), max(abs(s.lo_bp), abs(s.hi_bp))) for s in signals} == {(0, 10_000)}


def test_what_is_no_longer_wanted_is_closed() -> None:
    names = [f"N{i:02d}" for i in range(10)]
    signals = signals_from_scores(names, list(range(10)), SIZING, {"OLD": 70, "N09": 5, "N05": -20, "NIL": 0})
    assert targets(signals) == {"N00": -5000, "N01": -5000, "N05": 0, "N08": 5000, "N09": 5000, "OLD": 0}
    closing = next(signal for signal in signals if signal.asset == "OLD")
    assert (closing.lo_bp, closing.hi_bp, closing.reason) == (0, 0, "combination: no longer wanted")


def test_few_scores_want_nothing() -> None:
    scores = [1.0] * 9 + [math.nan] * 5
    assert signals_from_scores([f"N{i:02d}" for i in range(14)], scores, SIZING) == ()


@pytest.mark.parametrize(
    ("symbols", "scores"), [(["A"], [math.inf]), (["A", "B"], [1.0]), (["A", "A"], [1.0, 2.0]), (["A"], [-math.inf])]
)
def test_scores_that_mean_nothing_are_refused(symbols: list[str], scores: list[float]) -> None:
    with pytest.raises(RiskError, check=lambda error: error.code == "signal"):
        signals_from_scores(symbols, scores, SIZING)


@given(st.lists(st.floats(-5, 5) | st.just(math.nan), max_size=60), st.integers(0, 20_000))
def test_sides_balance_to_the_basis_point_in_any_order(scores: list[float], side: int) -> None:
    names = [f"N{i:02d}" for i in range(len(scores))]
    sizing = replace(SIZING, side_bp=side)
    signals = signals_from_scores(names, scores, sizing)
    assert sum(signal.target_bp for signal in signals) == 0
    assert sum(abs(signal.target_bp) for signal in signals) in (0, 2 * side)
    assert signals_from_scores(names[::-1], scores[::-1], sizing) == signals


@given(
    first=st.dates(date(2000, 1, 1), date(2030, 1, 1)),
    traded=st.sets(st.integers(0, 6), min_size=1, max_size=7),
    days=st.integers(15, 60),
)
def test_the_next_trading_day_is_the_next_weekday_that_the_panel_trades_on(
    first: date, traded: set[int], days: int
) -> None:
    calendar = [day for day in (first + timedelta(days=n) for n in range(7 * days)) if day.weekday() in traded][:days]
    found = next_trading_day(np.array(calendar, "datetime64[D]"))
    assert found > calendar[-1]
    assert found.weekday() in traded
    between = [calendar[-1] + timedelta(days=n) for n in range(1, (found - calendar[-1]).days)]
    assert not [day for day in between if day.weekday() in traded]


def test_one_special_session_on_a_saturday_makes_no_saturday_a_trading_day() -> None:
    days = np.busday_offset(np.datetime64("2015-01-05"), np.arange(250))
    friday = days[days <= np.datetime64("2015-09-25")]
    dates = np.sort(np.append(friday, np.datetime64("2015-06-20")))
    assert next_trading_day(dates) == date(2015, 9, 28)
