"""Each regime does what its docstring says, and leaves the order of the names' own moves alone."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from alphaloom.evidence.scoring.exposures import measure_exposures
from alphaloom.evidence.stress.moves import PanelMoves
from alphaloom.evidence.stress.regimes import CRASH_CYCLE_DAYS, CRASH_DAYS, REGIME_MAKERS, Regime, build_regimes

from .lab import market


@cache
def moves() -> PanelMoves:
    panel = market(5, days=420, names=80)
    return PanelMoves(panel, measure_exposures(panel))


@cache
def made() -> dict[str, Regime]:
    return {regime.code: regime for regime in build_regimes(moves(), 1)}


def mean_correlation(returns: NDArray[np.float64]) -> float:
    whole = returns[:, ~np.isnan(returns).any(axis=0)]
    names = whole.shape[1]
    return float((np.sum(np.corrcoef(whole.T)) - names) / (names * (names - 1)))


def log_returns(code: str | None = None) -> NDArray[np.float64]:
    panel = made()[code].panel if code else moves().panel
    return np.asarray(np.log1p(panel.fields["returns"]))


def test_all_regimes_are_made_and_are_the_same_for_the_same_seed() -> None:
    assert list(made()) == list(REGIME_MAKERS)
    again = {regime.code: regime.panel.digest for regime in build_regimes(moves(), 1)}
    assert again == {code: regime.panel.digest for code, regime in made().items()}
    other = {regime.code: regime.panel.digest for regime in build_regimes(moves(), 2)}
    assert [code for code in again if again[code] == other[code]] == ["grind", "low_volatility"]  # nothing is drawn


def test_a_crash_takes_a_fifth_in_ten_days_and_everybody_falls_together() -> None:
    start = CRASH_CYCLE_DAYS - 15 + CRASH_CYCLE_DAYS * 3
    days = slice(start, start + CRASH_DAYS)
    assert made()["crash"].rows[start : start + 15].all()
    assert made()["crash"].rows.mean() == pytest.approx(15 / CRASH_CYCLE_DAYS, abs=0.02)
    fallen = np.nansum(log_returns("crash")[days], axis=0) / moves().beta[days].mean(axis=0)
    assert np.median(fallen) == pytest.approx(np.log(0.8), abs=0.05)
    assert mean_correlation(log_returns("crash")[days]) > 0.8
    assert mean_correlation(log_returns()[days]) < 0.5


def test_between_crashes_prices_come_back() -> None:
    after, before = (np.nanmean(log_returns(code)[1:], axis=1).sum() for code in ("crash", None))
    assert abs(after - before) < 0.4  # ten crashes alone would take 2.2


def test_a_grind_falls_evenly() -> None:
    before, after = (np.nanmean(log_returns(code)[1:], axis=1) for code in (None, "grind"))
    assert after.mean() * 252 == pytest.approx(np.log(0.8) + 0.5 * 252 * before.mean(), abs=0.03)
    assert after.std() < 0.65 * before.std()


def test_low_volatility_shrinks_everything_alike() -> None:
    before, after = log_returns(), log_returns("low_volatility")
    np.testing.assert_allclose(after, 0.6 * before, atol=1e-12)


def test_a_rotation_turns_every_month() -> None:
    extra = (log_returns("sector_rotation") - log_returns())[1:42]
    there = ~np.isnan(extra).any(axis=0) & (moves().exposures.sector >= 0)
    first, second = extra[:20, there], extra[20:, there]
    np.testing.assert_allclose(np.abs(first), 0.004, atol=1e-9)
    np.testing.assert_allclose(second, np.broadcast_to(-first[:1], second.shape), rtol=1e-6)


def test_a_drought_is_dry_and_bounces() -> None:
    regime, panel = made()["liquidity_drought"], moves().panel
    dry = regime.rows[:, None] & panel.universe
    share = regime.panel.fields["volume"] / panel.fields["volume"]
    assert np.median(share[dry]) == pytest.approx(0.1, rel=0.1)
    np.testing.assert_allclose(share[~regime.rows[:, None] & panel.universe], 1.0)
    bounce = np.log(regime.panel.fields["close"] / panel.fields["close"])[dry]
    np.testing.assert_allclose(np.abs(bounce), 0.0025, atol=1e-9)
    assert regime.costs == 3.0


@pytest.mark.parametrize("code", ["crash", "grind", "low_volatility"])
def test_the_order_of_own_moves_is_kept(code: str) -> None:
    """What is neither market nor sector keeps its order on each day, so whoever foretells it is still right."""
    panel = made()[code].panel
    after = PanelMoves(panel, moves().exposures)
    member = panel.universe
    for day in range(130, 400, 10):
        names = member[day] & (moves().total[day] != 0)
        mine, theirs = moves().own[day, names], after.own[day, names]
        assert np.corrcoef(mine.argsort().argsort(), theirs.argsort().argsort())[0, 1] > 0.97


def test_a_market_without_sectors_has_no_rotation() -> None:
    from dataclasses import replace

    bare = replace(moves().panel, groups={}, group_labels={})
    codes = [regime.code for regime in build_regimes(PanelMoves(bare, measure_exposures(bare)), 1)]
    assert codes == [code for code in REGIME_MAKERS if code != "sector_rotation"]
