"""Exposures look back only, and residual returns hold none of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from alphaloom.evidence.scoring.exposures import (
    idiosyncratic_volatility,
    measure_exposures,
    residualise_label,
    trailing_sum,
)
from alphaloom.evidence.scoring.labels import forward_returns
from alphaloom.market import Panel, SyntheticConfig, simulate


def market(days: int = 260) -> Panel:
    return simulate(SyntheticConfig(seed=11, days=days, names=80)).panel


def test_beta_equals_the_slope_of_a_plain_regression() -> None:
    panel = market()
    returns = panel.fields["returns"]
    mean = np.full(panel.days, np.nan)
    mean[1:] = np.nanmean(np.where(panel.universe, returns, np.nan)[1:], axis=1)
    t, name = 250, int(np.flatnonzero(~np.isnan(returns[130:251]).any(axis=0))[0])
    slope = np.polyfit(mean[131:251], returns[131:251, name], 1)[0]
    np.testing.assert_allclose(measure_exposures(panel).beta[t, name], slope, rtol=1e-8)


def test_exposures_know_no_later_day() -> None:
    panel = market()
    whole, cut = measure_exposures(panel), measure_exposures(panel.rows(0, 200))
    for name in ("beta", "size", "volatility"):
        np.testing.assert_allclose(getattr(whole, name)[:200], getattr(cut, name), rtol=1e-9)


def test_residual_returns_hold_no_sector_beta_or_size() -> None:
    panel = market()
    exposures = measure_exposures(panel)
    label = forward_returns(panel, 5)
    rest = residualise_label(label, exposures)
    day = 240
    seen = ~np.isnan(rest[day])
    assert np.array_equal(np.isnan(rest), np.isnan(label))
    for code in np.unique(exposures.sector):
        assert abs(rest[day, seen & (exposures.sector == code)].sum()) < 1e-12
    known = seen & ~np.isnan(exposures.beta[day]) & ~np.isnan(exposures.size[day])
    if known.sum() == seen.sum():
        assert abs(rest[day, seen] @ exposures.beta[day, seen]) < 1e-10


def test_a_scaled_residual_is_that_of_weighted_least_squares() -> None:
    panel, day = market(), 240
    exposures, label = measure_exposures(panel), np.log1p(forward_returns(panel, 5))
    risk = idiosyncratic_volatility(panel, exposures)
    known = ~np.isnan(label[day]) & ~np.isnan(exposures.beta[day]) & ~np.isnan(exposures.size[day])
    label[day, ~known] = np.nan
    dummies = exposures.sector[known, None] == np.unique(exposures.sector[known])
    columns = np.column_stack([dummies, exposures.beta[day, known], exposures.size[day, known]])
    unit = risk[day, known]
    slow = (
        label[day, known] / unit
        - columns / unit[:, None] @ np.linalg.lstsq(columns / unit[:, None], label[day, known] / unit, rcond=None)[0]
    )
    np.testing.assert_allclose(residualise_label(label, exposures, risk)[day, known], slow, atol=1e-10)


def test_own_risk_is_known_at_the_close_and_is_the_size_of_residual_moves() -> None:
    panel = market()
    exposures = measure_exposures(panel)
    whole, cut = (
        idiosyncratic_volatility(panel, exposures),
        idiosyncratic_volatility(panel.rows(0, 200), measure_exposures(panel.rows(0, 200))),
    )
    np.testing.assert_allclose(whole[:200], cut, rtol=1e-9)
    rest = np.abs(residualise_label(np.log1p(np.where(panel.universe, panel.fields["returns"], np.nan)), exposures))
    name = int(np.flatnonzero(~np.isnan(rest[180:241]).any(axis=0))[0])
    assert whole[240, name] == pytest.approx(max(rest[181:241, name].mean(), 0.3 * np.median(whole[240])), rel=1e-3)
    assert (whole > 0).all()


def test_a_day_with_few_names_is_demeaned_only() -> None:
    panel = market()
    exposures = measure_exposures(panel)
    label = np.full((panel.days, panel.names), np.nan)
    chosen = np.flatnonzero(exposures.sector == exposures.sector[0])[:3]
    label[100, chosen] = [0.01, 0.02, 0.03]
    np.testing.assert_allclose(residualise_label(label, exposures)[100, chosen], [-0.01, 0.0, 0.01], atol=1e-15)


@given(st.integers(1, 90), st.integers(1, 25), st.integers(0, 2**32 - 1), st.floats(1.0, 1e9))
def test_a_trailing_sum_is_that_of_its_window_whatever_came_before(
    days: int, window: int, seed: int, far: float
) -> None:
    rng = np.random.default_rng(seed)
    frame = rng.standard_normal((days, 3))
    frame[rng.random((days, 3)) < 0.2] = np.nan
    frame[rng.integers(days), 1] = far
    slow = [np.nansum(frame[max(day - window + 1, 0) : day + 1], axis=0) for day in range(days)]
    near = np.array([np.nansum(np.abs(frame[max(day - window + 1, 0) : day + 1]), axis=0) for day in range(days)])
    assert (np.abs(trailing_sum(frame, window) - slow) <= 1e-13 * near).all()


def test_an_outlier_that_has_left_the_window_leaves_no_trace() -> None:
    panel = market()
    spoiled = panel.fields["returns"].copy()
    spoiled[10, 5] = 1e6
    bad = replace(panel, fields={**panel.fields, "returns": spoiled})
    clean, after = measure_exposures(panel), measure_exposures(bad)
    for name, days in (("beta", 120), ("volatility", 60)):
        rows = slice(10 + days, None)
        np.testing.assert_allclose(getattr(after, name)[rows], getattr(clean, name)[rows], rtol=1e-9, atol=1e-12)
    risks = [idiosyncratic_volatility(each, exposures) for each, exposures in ((panel, clean), (bad, after))]
    np.testing.assert_allclose(risks[1][190:], risks[0][190:], rtol=1e-9)  # its residuals take a beta of 120 days


def test_a_price_level_is_the_quoted_one_or_unknown() -> None:
    panel = market()
    quoted = replace(panel, fields={**panel.fields, "close_raw": panel.fields["close"] * 2.0}, back_adjusted=True)
    np.testing.assert_allclose(measure_exposures(quoted).price, np.log(panel.fields["close"] * 2.0))
    bare = {name: values for name, values in panel.fields.items() if name != "close_raw"}
    np.testing.assert_allclose(measure_exposures(replace(panel, fields=bare)).price, np.log(panel.fields["close"]))
    assert np.isnan(measure_exposures(replace(panel, fields=bare, back_adjusted=True)).price).all()
