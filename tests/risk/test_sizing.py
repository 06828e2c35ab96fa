"""From the weights of a book to whole numbers that a policy admits."""

import math
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given, strategies as st

from alphaloom.campaign.trade import next_trading_day
from alphaloom.risk import UNITS_PER_BP, BookState, Policy, Sizing, Standing, decide, measure_doubt, size_book
from alphaloom.risk.signal import RiskError
from alphaloom.risk.sizing import ROOM

from .conftest import NOW, facts

SIZING = Sizing(5, measure_doubt(0.03, 0.01), reason="combination", evidence="set1")
LARGE = Policy(single_name_cap_bp=1_000_000, interval_width_cap_bp=1_000_000, gross_cap_bp=1_000_000)
STANDINGS = {"set1": Standing("set1", "accepted", similarity_bp=0, status="live")}


def even_book(names: int) -> dict[str, float]:
    """Return a book of a fifth of the names on each side, in equal weights that add up to 1."""
    side = max(names // 5, 1)
    weights = {f"N{place:04d}": 1 / side for place in range(side)}
    return weights | {f"N{names - 1 - place:04d}": -1 / side for place in range(side)}


def test_targets_are_the_weights_and_bounds_one_standard_error_of_the_edge_away() -> None:
    book = size_book({"A": 0.0075, "B": -0.0075, "C": 0.0}, replace(SIZING, doubt_e8=50_000_000), LARGE, NOW)
    assert book.scale == 1
    assert [(s.asset, s.lo_e8, s.target_e8, s.hi_e8) for s in book.signals] == [
        ("A", 375_000, 750_000, 1_125_000),
        ("B", -1_125_000, -750_000, -375_000),
    ]


@pytest.mark.parametrize(("mean", "error"), [(0.01, 0.02), (0.0, 0.01), (math.nan, 0.01), (0.01, math.nan)])
def test_an_edge_that_may_be_nothing_has_a_bound_at_nothing(mean: float, error: float) -> None:
    (signal,) = size_book({"A": 0.01}, replace(SIZING, doubt_e8=measure_doubt(mean, error)), LARGE, NOW).signals
    assert (signal.lo_e8, signal.target_e8, signal.hi_e8) == (0, 1_000_000, 2_000_000)


def test_what_is_no_longer_wanted_is_closed() -> None:
    signals = size_book({"A": 0.01, "NEW": 0.0}, SIZING, LARGE, NOW, {"OLD": 70, "A": 5, "NIL": 0}).signals
    assert [(signal.asset, signal.target_e8) for signal in signals] == [("A", 1_000_000), ("OLD", 0)]
    assert (signals[1].lo_e8, signals[1].hi_e8, signals[1].reason) == (0, 0, "combination: no longer wanted")


@pytest.mark.parametrize("weight", [math.nan, math.inf, -math.inf])
def test_a_weight_that_means_nothing_is_refused(weight: float) -> None:
    with pytest.raises(RiskError, check=lambda error: error.code == "signal", match="no finite number"):
        size_book({"A": weight}, SIZING, LARGE, NOW)


@pytest.mark.parametrize("names", [20, 50, 100, 500, 3_000])
def test_the_shipped_policy_admits_a_book_of_any_size_and_refuses_a_bad_one(names: int) -> None:
    weights = even_book(names)
    state = BookState({}, dict.fromkeys(weights, facts()), 10_000, 10_000)
    book = size_book(weights, SIZING, Policy(), NOW)
    assert len(decide(book.signals, state, Policy(), NOW, STANDINGS).approved) == len(weights)
    assert (abs(book.scale - ROOM) < 1e-4) == (names >= 500), "a full book has the room that prices need"
    planted = [replace(signal, hi_e8=600 * UNITS_PER_BP) for signal in book.signals if signal.target_e8 > 0]
    assert not decide(planted, state, Policy(), NOW, STANDINGS).approved


@given(
    st.dictionaries(st.sampled_from("ABCDEFGH"), st.floats(-2, 2), min_size=1),
    st.floats(0, 0.05),
    st.tuples(*[st.integers(1, 20_000)] * 4),
)
def test_a_sized_book_fits_every_limit_on_exposure_and_keeps_its_proportions(
    weights: dict[str, float], error: float, caps: tuple[int, int, int, int]
) -> None:
    names = ("single_name_cap_bp", "interval_width_cap_bp", "gross_cap_bp", "net_cap_bp")
    policy = Policy.model_validate({**dict(zip(names, caps, strict=True)), "turnover_cap_bp": 1_000_000})
    book = size_book(weights, replace(SIZING, doubt_e8=measure_doubt(0.03, error)), policy, NOW)
    state = BookState({}, dict.fromkeys(weights, facts()), 10_000, 10_000)
    assert len(decide(book.signals, state, policy, NOW, STANDINGS).approved) == len(book.signals)
    assert book.rounding_e8(weights) <= 2
    assert all(signal.target_e8 * weights[signal.asset] > 0 for signal in book.signals)


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
