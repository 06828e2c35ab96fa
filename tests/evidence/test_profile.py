"""What stands beside a factor's figures, against slow ways to say the same."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from alphaloom.evidence.newey_west import newey_west_t
from alphaloom.evidence.scoring.capacity import measure_capacity
from alphaloom.evidence.scoring.exposures import measure_momentum, neutralise_ranks
from alphaloom.evidence.scoring.profile import (
    DECAY_DAYS,
    Profiler,
    market_regimes,
    mean_by_regime,
    variance_between_groups,
)
from alphaloom.evidence.windows import Window
from alphaloom.market import Panel

from .lab import market, scorer

WINDOW = Window("search", 30, 290, "2010-02-12", "2011-02-10")


@pytest.fixture
def values() -> NDArray[np.float32]:
    panel = market()
    drawn = np.random.default_rng(5).normal(size=panel.universe.shape).astype(np.float32)
    drawn[~panel.universe] = np.nan
    return drawn


def averaged(panel: Panel) -> pd.Series:
    """Return the equal-weighted market's return of each day."""
    return pd.DataFrame(np.where(panel.universe, panel.fields["returns"], np.nan)).mean(axis=1).fillna(0.0)


def test_regimes_are_those_of_the_equal_weighted_market() -> None:
    panel = market()
    trend = np.log1p(averaged(panel)).rolling(60).sum()[WINDOW.start : WINDOW.stop]
    storm = averaged(panel).rolling(20).std()[WINDOW.start : WINDOW.stop]
    found = market_regimes(panel, WINDOW)
    assert (found["rising"] == (trend > 0).to_numpy()).all()
    assert (found["stormy"] == (storm > storm.quantile(2 / 3)).to_numpy()).all()
    assert not (found["calm"] & found["stormy"]).any()
    assert not (found["rising"] | found["falling"])[: 59 - WINDOW.start].any()


def test_a_regime_of_all_days_is_the_plain_mean_and_one_of_none_is_unknown() -> None:
    daily = np.random.default_rng(1).normal(0.1, 1, 200)
    daily[::7] = np.nan
    known = daily[~np.isnan(daily)]
    found = mean_by_regime(known, {"all": np.ones(len(known), bool), "none": np.zeros(len(known), bool)}, 10)
    plain = newey_west_t(known, 10)
    assert found["all"] == {"rank_ic": pytest.approx(plain.mean), "t": pytest.approx(plain.t), "days": plain.days}
    assert found["none"] == {"rank_ic": None, "t": None, "days": 0}


def test_the_error_in_a_regime_is_that_of_a_regression_on_dummies() -> None:
    rng = np.random.default_rng(2)
    daily, rising = rng.normal(0.05, 1, 300), np.repeat(rng.random(60) < 0.5, 5)
    x = np.stack([rising, ~rising], axis=1).astype(float)
    coefficients, *_ = np.linalg.lstsq(x, daily, rcond=None)
    scores = x * (daily - x @ coefficients)[:, None]
    middle = scores.T @ scores
    for lag in range(1, 7):
        crossed = scores[lag:].T @ scores[:-lag]
        middle += (1 - lag / 7) * (crossed + crossed.T)
    bread = np.linalg.inv(x.T @ x)
    error = math.sqrt((bread @ middle @ bread)[0, 0])
    assert mean_by_regime(daily, {"rising": rising}, 6)["rising"]["t"] == pytest.approx(coefficients[0] / error)


def test_momentum_leaves_out_the_last_month() -> None:
    panel = market()
    moves = pd.DataFrame(np.log1p(panel.fields["returns"]))
    slow = moves.shift(21).rolling(231, min_periods=200).sum().to_numpy()
    np.testing.assert_allclose(measure_momentum(panel), slow, atol=1e-10)


def test_what_is_left_after_neutralising_is_uncorrelated_with_what_was_taken_out(values: NDArray[np.float32]) -> None:
    styles = [np.random.default_rng(seed).normal(size=values.shape) for seed in (1, 2)]
    sector = market().groups["sector"]
    mixed = (values + 2 * styles[0] - styles[1] + 0.5 * sector).astype(np.float32)
    rest = neutralise_ranks(mixed, styles, sector)
    assert (np.isnan(rest) == np.isnan(mixed)).all()
    ranked = [pd.DataFrame(style).rank(axis=1).to_numpy() for style in styles]
    for day in range(0, len(rest), 29):
        row = pd.DataFrame({"rest": rest[day], "sector": sector, "one": ranked[0][day], "two": ranked[1][day]}).dropna()
        within = row[["one", "two"]] - row.groupby("sector")[["one", "two"]].transform("mean")
        assert row.groupby("sector")["rest"].mean().abs().max() == pytest.approx(0, abs=1e-9)
        assert within.mul(row["rest"], axis=0).sum().abs().max() == pytest.approx(0, abs=1e-7)
    assert np.nanmax(np.abs(neutralise_ranks(styles[0].astype(np.float32), styles, sector))) == 0.0


def test_the_share_between_sectors_is_one_for_a_sector_and_little_for_chance(values: NDArray[np.float32]) -> None:
    sector = market().groups["sector"]
    own = np.tile(sector.astype(np.float32), (3, 1))
    assert variance_between_groups(own, sector) == pytest.approx(np.ones(3))
    assert np.nanmean(variance_between_groups(values, sector)) < 0.5
    assert np.isnan(variance_between_groups(values, np.zeros_like(sector))).all()


def test_capacity_is_found_by_trading_it_by_hand() -> None:
    panel = market()
    bought, sold = np.zeros((2, WINDOW.days, panel.names), bool)
    bought[:, :4], sold[:, 4:8] = True, True
    bought &= WINDOW.cut(panel.universe)
    sold &= WINDOW.cut(panel.universe)
    net = np.full(WINDOW.days, 0.002)
    capacity = measure_capacity(panel, WINDOW, (bought, sold), 5, net)
    money = WINDOW.cut(
        pd.DataFrame(panel.fields.get("close_raw", panel.fields["close"]) * panel.fields["volume"])
        .rolling(20, min_periods=10)
        .mean()
        .to_numpy()
    )
    spread = WINDOW.cut(pd.DataFrame(panel.fields["returns"]).rolling(20, min_periods=10).std().to_numpy())
    shares, costs = [], []
    for capital in (capacity.at_participation, capacity.break_even):
        paid = []
        for day in range(WINDOW.days):
            for side in (bought, sold):
                names = np.flatnonzero(side[day])
                each = capital / 5 / max(len(names), 1)
                usable = [n for n in names if money[day, n] > 0 and spread[day, n] > 0]
                shares += [(capital, each / money[day, n]) for n in usable]
                paid.append(np.mean([spread[day, n] * math.sqrt(each / money[day, n]) for n in usable]))
        costs.append(2 * 2 / 5 * float(np.mean(paid)))
    small = [share <= 0.1 for capital, share in shares if capital == capacity.at_participation]
    assert np.mean(small) == pytest.approx(0.95, abs=0.01)
    assert costs[1] == pytest.approx(0.002, rel=0.05)
    assert measure_capacity(panel, WINDOW, (bought, sold), 5, -net).break_even == 0.0


def test_a_profile_tells_a_style_for_what_it_is_and_decays_like_the_sheet() -> None:
    own = scorer(market())
    size = own.exposures.size.astype(np.float32)
    found = Profiler(own, WINDOW).profile(size)
    sheet = own.score(size, WINDOW)
    assert found["exposures"]["size"] == pytest.approx(1.0)
    assert list(found["decay"]) == [str(days) for days in DECAY_DAYS]
    assert {days: found["decay"][str(days)] for days in sheet.decay} == pytest.approx(dict(sheet.decay), rel=1e-9)
    assert found["neutralised"]["t"] is None
