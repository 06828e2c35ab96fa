"""The sheet against a slow, obvious reference, and what may never reach it."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray
from scipy.stats import pearsonr, rankdata, spearmanr

from alphaloom.evidence import EvidenceSettings
from alphaloom.evidence.scoring import round_significant
from alphaloom.evidence.scoring.metrics import FactorMetrics
from alphaloom.evidence.scoring.scorer import Scorer
from alphaloom.evidence.windows import HORIZONS, Window
from alphaloom.factors import Engine
from alphaloom.market import Panel, SyntheticConfig, simulate

from .lab import SMALL, market, scorer

RAW = SMALL.model_copy(update={"returns": "raw"})
WINDOW = Window("search", 20, 310, "2010-02-01", "2011-03-11")


@cache
def steady(names: int = 33) -> Panel:
    """Return a market whose names never halt or vanish, over the turn of a year."""
    return simulate(SyntheticConfig(seed=4, days=330, names=names, delistings=0, halts=0)).panel


def factor(seed: int, panel: Panel) -> NDArray[np.float32]:
    """Draw a factor with ties, missing cells, missing runs, thin days and a constant day."""
    rng = np.random.default_rng(seed)
    values = np.round(rng.normal(size=panel.universe.shape) * 4) / 4
    values += np.round(4 * np.nan_to_num(panel.fields["returns"]) * 25) / 4
    values[rng.random(values.shape) < 0.05] = np.nan
    for name in range(0, panel.names, 3):
        start = rng.integers(0, panel.days)
        values[start : start + rng.integers(5, 60), name] = np.nan
    values[40, :-6] = np.nan
    values[50] = 1.0
    values[~panel.universe] = np.nan
    return values.astype(np.float32)


@dataclass(frozen=True)
class Slow:
    """The sheet's figures, day by day and name by name."""

    panel: Panel
    values: NDArray[np.float32]
    window: Window
    horizon: int = 5

    def label(self, days: int) -> pd.DataFrame:
        """Return labels that end inside the window."""
        opened = pd.DataFrame(self.panel.fields["open"]).iloc[: self.window.stop]
        label = opened.shift(-1 - days) / opened.shift(-1) - 1
        return label.where(self.panel.universe[: self.window.stop])

    def pairs(self, days: int, step: int = 1) -> dict[int, pd.DataFrame]:
        """Return each day's names that have a value and a label, if there are 10."""
        label = self.label(days)
        found = {}
        for t in range(self.window.start, self.window.stop, step):
            both = pd.DataFrame({"x": self.values[t].astype(float), "y": label.loc[t]}).dropna()
            if len(both) >= 10 and both["x"].nunique() > 1:
                found[t] = both
        return found

    @cached_property
    def daily(self) -> pd.Series[float]:
        return self.rank_ic(self.horizon)

    def rank_ic(self, days: int, step: int = 1) -> pd.Series[float]:
        pairs = self.pairs(days, step).items()
        return pd.Series({t: spearmanr(both["x"], both["y"])[0] for t, both in pairs}, dtype=float)

    def ic(self) -> float:
        return float(np.mean([pearsonr(both["x"], both["y"])[0] for both in self.pairs(self.horizon).values()]))

    def decay(self, days: int) -> float:
        return float(self.rank_ic(days, 5).mean())

    def by_year(self) -> dict[str, float]:
        years = self.panel.dates.astype("datetime64[Y]").astype(str)[self.daily.index]
        return {str(year): float(mean) for year, mean in self.daily.groupby(years).mean().items()}

    def quantiles(self) -> list[float]:
        """Return the mean over the day's mean in each fifth; the fifth of rank r of n is ceil(5 r / n), exactly."""
        rows = []
        label = self.label(self.horizon)
        for t in range(self.window.start, self.window.stop):
            both = pd.DataFrame({"x": self.values[t].astype(float), "y": label.loc[t]}).dropna()
            if len(both):
                twice = np.rint(2 * rankdata(both["x"])).astype(int)
                fifth = -(-5 * twice // (2 * len(both)))
                rows.append((both["y"] - both["y"].mean()).groupby(fifth).mean())
        return [float(value) for value in pd.DataFrame(rows).mean().reindex(range(1, 6))]

    def book(self, sign: int) -> tuple[float, float, float]:
        """Return turnover, gross and net Sharpe of five sleeves of top minus bottom fifth."""
        held, h = self.window, self.horizon
        rank = (sign * pd.DataFrame(self.values[held.start : held.stop])).rank(axis=1, pct=True)
        side = (rank > 0.8).div((rank > 0.8).sum(axis=1), axis=0) - (rank <= 0.2).div((rank <= 0.2).sum(axis=1), axis=0)
        side = side.where(rank.count(axis=1) >= 10, 0.0).fillna(0.0)
        weight = sum((side.shift(age).fillna(0.0) for age in range(h)), start=0 * side) / h
        traded = weight.diff().fillna(weight).abs().sum(axis=1)
        earned = self.label(1).iloc[held.start :].reset_index(drop=True)
        gross = (weight * earned).sum(axis=1)[earned.notna().any(axis=1)]
        net = gross - traded * 10e-4 - weight.clip(upper=0).abs().sum(axis=1) * 50e-4 / 252
        ratio = [
            float(returns[gross.index].mean() / returns[gross.index].std() * np.sqrt(252)) for returns in (gross, net)
        ]
        return float(traded.iloc[h:].mean()) / 4, ratio[0], ratio[1]


@pytest.mark.parametrize("seed", [0, 1])
def test_the_sheet_equals_the_slow_reference(seed: int) -> None:
    panel = steady()
    values = factor(seed, panel)
    sheet, slow = scorer(panel, RAW).score(values, WINDOW), Slow(panel, values, WINDOW)
    assert sheet.rank_ic == pytest.approx(slow.daily.mean(), rel=1e-9, abs=1e-12)
    assert sheet.days == len(slow.daily)
    assert sheet.icir == pytest.approx(slow.daily.mean() / slow.daily.std(), rel=1e-9, abs=1e-12)
    assert sheet.ic == pytest.approx(slow.ic(), rel=1e-9, abs=1e-12)
    assert sheet.decay == {days: pytest.approx(slow.decay(days), rel=1e-9, abs=1e-12) for days in HORIZONS}
    assert sheet.by_year == {year: pytest.approx(mean, rel=1e-9, abs=1e-12) for year, mean in slow.by_year().items()}
    assert list(sheet.quantile_returns) == pytest.approx(slow.quantiles(), rel=1e-9, abs=1e-12)
    known = slow.book(-1 if sheet.rank_ic < 0 else 1)
    assert (sheet.turnover, sheet.gross_sharpe, sheet.net_sharpe) == pytest.approx(known, rel=1e-8)
    inhabited = panel.universe[WINDOW.start : WINDOW.stop]
    assert sheet.coverage == pytest.approx(np.isfinite(values[WINDOW.start : WINDOW.stop]).sum() / inhabited.sum())


def test_days_without_a_rank_correlation_have_none() -> None:
    panel = steady()
    daily = scorer(panel, RAW).score(factor(1, panel), WINDOW).daily
    assert np.isnan(daily[[20, 30]]).all()  # 6 names, all alike
    assert np.isnan(daily[-6:]).all()  # labels that end outside
    assert np.isfinite(daily[21:30]).all()


def test_a_flipped_factor_has_a_mirrored_sheet() -> None:
    panel = simulate(SyntheticConfig(seed=4, days=330, names=40, late_listings=0, delistings=0, halts=0)).panel
    values = np.random.default_rng(3).normal(size=panel.universe.shape).astype(np.float32)
    mine, flipped = (scorer(panel, RAW).score(sign * values, WINDOW) for sign in (np.float32(1), np.float32(-1)))
    for name in ("rank_ic", "ic", "icir", "t"):
        assert getattr(flipped, name) == pytest.approx(-getattr(mine, name), rel=1e-9)
    for name in ("turnover", "gross_sharpe", "net_sharpe", "coverage"):
        assert getattr(flipped, name) == pytest.approx(getattr(mine, name), rel=1e-9)
    assert list(flipped.quantile_returns) == pytest.approx(list(mine.quantile_returns)[::-1], rel=1e-9)
    assert flipped.decay == {days: pytest.approx(-value, rel=1e-9) for days, value in mine.decay.items()}


@pytest.mark.parametrize("given_sign", [1, -1])
def test_the_book_is_held_in_the_direction_that_is_asked(given_sign: int) -> None:
    panel = steady()
    values = factor(2, panel)
    sheet = scorer(panel, RAW).score(values, WINDOW, given_sign)
    assert (sheet.turnover, sheet.gross_sharpe, sheet.net_sharpe) == pytest.approx(
        Slow(panel, values, WINDOW).book(given_sign), rel=1e-8
    )


def changed_after(panel: Panel, day: int) -> Panel:
    """Return the panel with every field, and who is a member, drawn anew from a day on."""
    rng = np.random.default_rng(0)
    fields = {name: np.array(values) for name, values in panel.fields.items()}
    for values in fields.values():
        values[day:] *= rng.uniform(0.2, 5, values[day:].shape)
    universe = np.array(panel.universe)
    universe[day:] &= rng.random(universe[day:].shape) < 0.7
    return replace(panel, fields=fields, universe=universe)


@pytest.mark.parametrize("returns", ["residual", "raw"])
@pytest.mark.parametrize("text", ["rank(delta(close, 5))", "-ts_std(returns, 20)", "rank(volume)"])
def test_nothing_after_the_window_enters_its_sheet(returns: str, text: str) -> None:
    panel, asked = market(3), SMALL.model_copy(update={"returns": returns})
    window = Window("search", 0, 210, "a", "b")
    other = changed_after(panel, window.stop)
    sheets = [scorer(prices, asked).score(Engine(prices).evaluate([text])[0], window) for prices in (panel, other)]
    assert json.dumps(sheets[0].record()) == json.dumps(sheets[1].record())
    np.testing.assert_array_equal(sheets[0].daily, sheets[1].daily)
    np.testing.assert_array_equal(sheets[0].net_daily, sheets[1].net_daily)
    before = Window("search", 0, 211, "a", "b")
    seen = [
        scorer(prices, asked).score(Engine(prices).evaluate([text])[0], before).record() for prices in (panel, other)
    ]
    assert seen[0] != seen[1]  # one day more does see the change


def test_residual_labels_take_out_what_everybody_is_exposed_to() -> None:
    panel = market(3)
    window = Window("search", 120, 400, "a", "b")
    beta = scorer(panel).exposures.beta.astype(np.float32)
    assert abs(scorer(panel).score(beta, window).ic) < 0.02 < abs(scorer(panel, RAW).score(beta, window).ic)


def test_what_is_too_good_is_warned_of() -> None:
    panel = steady()
    tomorrow = np.roll(panel.fields["returns"], -2, axis=0).astype(np.float32)
    codes = [doubt.code for doubt in scorer(panel, RAW).score(tomorrow, WINDOW).warnings]
    assert "leak_alarm" in codes
    assert "leak_alarm" not in [doubt.code for doubt in scorer(panel, RAW).score(factor(1, panel), WINDOW).warnings]


def undefined(values: NDArray[np.float32]) -> FactorMetrics:
    return Scorer(steady(), RAW).score(values, WINDOW)


@pytest.mark.parametrize("fill", [np.nan, 1.0])
def test_what_is_undefined_is_null_in_json(fill: float) -> None:
    sheet = undefined(np.full(steady().universe.shape, fill, np.float32)).record()
    for name in ("rank_ic", "ic", "icir", "t", "turnover", "gross_sharpe", "net_sharpe"):
        assert sheet[name] is None
    assert sheet["days"] == 0
    assert set(sheet["decay"].values()) == set(sheet["by_year"].values()) == {None}  # type: ignore[attr-defined]
    json.dumps(sheet, allow_nan=False)


def test_a_thin_factor_is_warned_of() -> None:
    values = np.where(np.arange(33) < 12, factor(1, steady()), np.nan).astype(np.float32)
    assert "thin_coverage" in [doubt.code for doubt in undefined(values).warnings]


@given(st.floats(-1e300, 1e300) | st.sampled_from([float("nan"), float("inf"), -float("inf")]))
def test_tidy_keeps_ten_digits_and_says_null(value: float) -> None:
    kept = round_significant(value)
    if np.isfinite(value):
        assert kept == pytest.approx(value, rel=6e-10, abs=0)
        assert round_significant(kept or 0.0) == kept
    else:
        assert kept is None


def test_a_number_that_rounds_to_infinity_is_null() -> None:
    assert round_significant(1.7976931349e308) is None


def test_horizons_follow_the_settings() -> None:
    asked = EvidenceSettings(windows=SMALL.windows, horizon_days=10, returns="raw")
    panel = steady()
    sheet = Scorer(panel, asked).score(factor(5, panel), WINDOW)
    assert sheet.rank_ic == pytest.approx(Slow(panel, factor(5, panel), WINDOW, 10).daily.mean(), rel=1e-9)
    assert sheet.horizon_days == 10
