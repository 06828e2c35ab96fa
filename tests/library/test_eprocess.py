"""A capital that bets on RankIC: what it may never do by luck, what it does with an edge, and what it must not know."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from alphaloom.library.eprocess import (
    BET_SHARE,
    compute_capital,
    e_detector,
    e_lond_threshold,
    quarter_days,
    settle_quarters,
)

Series = NDArray[np.float64]
DEVIATION, HORIZON = 0.08, 5


def overlapping(seed: int, reps: int, days: int, horizon: int = HORIZON, fast: float = 0.0) -> Series:
    """Return the daily RankIC of worthless factors under overlapping labels; `fast` is the share new each day."""
    rng = np.random.default_rng(seed)
    shocks = rng.standard_normal((reps, days + horizon))
    slow = sum(shocks[:, lag : lag + days] for lag in range(horizon)) / math.sqrt(horizon)
    own = rng.standard_normal((reps, days))
    series: Series = DEVIATION * (math.sqrt(1 - fast) * slow + math.sqrt(fast) * own)
    return series


def capitals(series: Series, horizon: int = HORIZON) -> Series:
    return np.array([compute_capital(settle_quarters(one, 0.0, horizon)) for one in series])


@pytest.mark.parametrize(("horizon", "fast"), [(5, 0.0), (5, 0.8), (1, 0.0), (20, 0.0)])
def test_without_an_edge_the_capital_reaches_20_at_most_once_in_twenty(horizon: int, fast: float) -> None:
    ever = capitals(overlapping(3, 1500, 1260, horizon, fast), horizon).max(axis=1) >= 20
    assert ever.mean() <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 1500)


def test_stopping_with_all_that_is_known_at_the_end_of_a_quarter_wins_nothing() -> None:
    """Stops at the first quarter whose last days, of those whose labels have ended, went badly: no bet is open then."""
    series = overlapping(4, 4000, 63 * 6)
    grown = capitals(series)
    ends = [63 * (k + 1) for k in range(6)]
    well = np.array([[one[end - 2 * HORIZON + 1 : end - HORIZON + 1].mean() < 0 for end in ends] for one in series])
    stopped = np.where(well.any(axis=1), well.argmax(axis=1), 5)
    won = grown[np.arange(len(grown)), stopped]
    assert won.mean() <= 1 + 3 * won.std() / math.sqrt(len(won))


def test_an_average_that_is_read_while_bets_are_open_would_win_by_stopping() -> None:
    """Shows why quarters are settled: one bet, left where its first four days went badly."""
    rng = np.random.default_rng(7)
    shocks = rng.standard_normal((20_000, HORIZON))
    rank_ic = DEVIATION * shocks.sum(axis=1) / math.sqrt(HORIZON)
    settled = 1 + 0.9 * np.clip(rank_ic / (3 * DEVIATION), -1, 1)
    assert settled.mean() == pytest.approx(1, abs=0.01)
    assert np.where(shocks[:, :4].sum(axis=1) < 0, 1, settled).mean() > 1.1


@pytest.mark.parametrize(("mean", "most"), [(0.03, 1260), (0.05, 756)])
def test_an_edge_is_proven_in_the_days_that_are_stated(mean: float, most: int) -> None:
    grown = capitals(overlapping(5, 200, 2520) + mean) >= 100
    days = np.where(grown.any(axis=1), (grown.argmax(axis=1) + 1) * 63, np.inf)
    assert np.median(days) <= most


@pytest.mark.parametrize("scale", [1.5, 2.0])
def test_a_mean_of_zero_that_is_made_of_crashes_proves_nothing(scale: float) -> None:
    """Skewness -1 and wilder days than ever before; and a crash of half of all on three days of a hundred."""
    rng, count = np.random.default_rng(8), 400
    skewed = -scale * DEVIATION * (rng.gamma(4.0, 1.0, (count, 2520)) - 4.0) / 2.0
    rare = np.where(rng.random((count, 2520)) < 0.03, -0.5, 0.015 / 0.97) + rng.normal(0, DEVIATION, (count, 2520))
    for daily in (np.clip(skewed, -1, 1), np.clip(rare, -1, 1)):
        proven = (capitals(daily) >= 20).any(axis=1)
        assert proven.mean() <= 0.05


def obvious(daily: Series, bar: float, horizon: int) -> list[float]:
    """Play it bet by bet."""
    length, found, wealth = quarter_days(horizon), [], 1.0
    for quarter in range(len(daily) // length):
        accounts = [wealth / (horizon + 1)] * (horizon + 1)
        for day in range(length - horizon):
            value = daily[quarter * length + day]
            won = 0.0 if math.isnan(value) else (value - bar) / (1 + bar)
            accounts[day % (horizon + 1)] *= 1 + BET_SHARE * won
        wealth = sum(accounts)
        found.append(wealth)
    return found


@given(st.integers(0, 10**6), st.sampled_from([1, 5, 20]), st.floats(-0.05, 0.05))
@settings(max_examples=20)
def test_it_is_what_playing_bet_by_bet_gives(seed: int, horizon: int, bar: float) -> None:
    daily = overlapping(seed, 1, 300, horizon)[0]
    daily[::17] = np.nan
    assert compute_capital(settle_quarters(daily, bar, horizon)) == pytest.approx(obvious(daily, bar, horizon))


def test_later_days_and_the_open_days_of_a_quarter_change_nothing() -> None:
    daily = overlapping(6, 1, 200)[0]
    known = settle_quarters(daily, 0.0, HORIZON)
    assert np.array_equal(settle_quarters(daily[:130], 0.0, HORIZON), known[:2])
    daily[63 - HORIZON : 63] = 1.0
    assert np.array_equal(settle_quarters(daily, 0.0, HORIZON), known)
    daily[63 - HORIZON - 1] = 1.0
    assert not np.array_equal(settle_quarters(daily, 0.0, HORIZON), known)


def test_nothing_ruins_the_capital() -> None:
    worst = settle_quarters(np.full(630, -1.0), 0.0, HORIZON)
    assert (worst > 0).all()
    assert compute_capital(worst)[-1] < 0.01


def test_the_detector_forgets_good_years() -> None:
    daily = np.concatenate([np.full(630, -0.05), np.full(630, 0.05)])
    factors = settle_quarters(daily, 0.0, HORIZON)
    assert e_detector(factors)[-1] > 10 * compute_capital(factors)[-1]
    assert e_detector(factors)[:10].max() <= 1


def test_the_thresholds_are_those_of_e_lond() -> None:
    from online_fdr.e_values.sequential import ELond

    class Shares:
        def calc_gamma(self, index: int) -> float:
            return 1 / (index * (index + 1))

    other, promoted = ELond(0.05, gamma_seq=cast("Any", Shares())), 0
    for place, e_value in enumerate([50.0, 55.0, 100.0, 500.0, 90.0, 1000.0], start=1):
        mine = e_value >= e_lond_threshold(place, promoted, 0.05)
        assert other.test_one(e_value) == mine
        promoted += mine
    assert promoted == 3
    assert math.fsum(1 / (place * (place + 1)) for place in range(1, 10**5)) < 1


@pytest.mark.parametrize(("place", "promoted"), [(0, 0), (1, -1)])
def test_a_place_that_cannot_be_is_refused(place: int, promoted: int) -> None:
    with pytest.raises(ValueError, match="place must be at least 1"):
        e_lond_threshold(place, promoted, 0.05)


def test_a_bar_that_no_rank_ic_can_miss_is_refused() -> None:
    with pytest.raises(ValueError, match="bar must be above -1"):
        settle_quarters(np.zeros(63), -1.0, 5)
