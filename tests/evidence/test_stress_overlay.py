"""Another market over the same days: every column agrees with every other, and what is not touched stays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from alphaloom.evidence.scoring.exposures import measure_exposures
from alphaloom.evidence.stress.moves import Overlay, PanelMoves, apply_overlay
from alphaloom.market import Panel

from .lab import market


def overlay(seed: int, panel: Panel, reach: float, volume: float) -> Overlay:
    rng = np.random.default_rng(seed)
    shape = panel.universe.shape
    return Overlay(rng.normal(0, 0.1, shape), rng.normal(0, 0.1, shape), reach, volume)


def test_an_overlay_of_nothing_is_the_panel() -> None:
    panel = market()
    zero = np.zeros(panel.universe.shape)
    same = apply_overlay(panel, Overlay(zero, zero))
    assert set(same.fields) == set(panel.fields)
    for name, values in panel.fields.items():
        np.testing.assert_allclose(same.fields[name], values, rtol=1e-12, atol=1e-14, err_msg=name)
    np.testing.assert_array_equal(same.universe, panel.universe)


@settings(max_examples=10)
@given(st.integers(0, 1000), st.floats(0.1, 3.0), st.floats(0.05, 5.0))
def test_all_columns_agree(seed: int, reach: float, volume: float) -> None:
    panel = market()
    laid = overlay(seed, panel, reach, volume)
    old, new = panel.fields, apply_overlay(panel, laid).fields
    here = panel.universe
    for name, values in old.items():
        np.testing.assert_array_equal(np.isnan(new[name]), np.isnan(values), err_msg=name)
    slack = 1 + 1e-12
    assert (new["high"] * slack >= np.maximum(new["open"], new["close"]))[here].all()
    assert (new["low"] <= np.minimum(new["open"], new["close"]) * slack)[here].all()
    assert ((new["low"] <= new["vwap"] * slack) & (new["vwap"] <= new["high"] * slack))[here].all()
    for name in ("close_raw", "cap"):
        np.testing.assert_allclose((new[name] / new["close"])[here], (old[name] / old["close"])[here], rtol=1e-10)
    np.testing.assert_allclose(new["amount"][here], (new["volume"] * new["vwap"])[here], rtol=1e-10)
    np.testing.assert_allclose(new["volume"][here], (old["volume"] * volume)[here])
    np.testing.assert_allclose(new["returns"][1:], new["close"][1:] / new["close"][:-1] - 1, atol=1e-12)
    above = np.log(new["high"] / np.maximum(new["open"], new["close"]))
    was = np.log(old["high"] / np.maximum(old["open"], old["close"]))
    np.testing.assert_allclose(above[here], (reach * was)[here], atol=1e-9)


def test_the_moves_of_a_day_add_up() -> None:
    panel = market(2)
    moves = PanelMoves(panel, measure_exposures(panel))
    returns = np.log1p(panel.fields["returns"])
    np.testing.assert_allclose(moves.total[~np.isnan(returns)], returns[~np.isnan(returns)], atol=1e-12)
    parts = moves.beta * moves.market + moves.sector + moves.own
    moved = moves.total != 0
    np.testing.assert_allclose(parts[moved], moves.total[moved], atol=1e-12)
    here = np.where(panel.universe, moves.total, np.nan)
    np.testing.assert_allclose(moves.market[1:, 0], np.nanmean(here, axis=1)[1:], atol=1e-12)


def test_a_move_over_a_gap_belongs_to_the_day_that_ends_it() -> None:
    close = np.array([[10.0], [np.nan], [12.0], [12.0]]) * np.ones((1, 12))
    opened = np.array([[10.0], [np.nan], [11.0], [12.0]]) * np.ones((1, 12))
    fields = {"open": opened, "close": close, "high": close + 1, "low": opened - 1, "volume": close}
    days = np.arange(np.datetime64("2020-01-01"), np.datetime64("2020-01-05"))
    panel = Panel.build(days, [f"N{i:02}" for i in range(12)], fields)
    moves = PanelMoves(panel, measure_exposures(panel))
    assert moves.night[:, 0] == pytest.approx([0, 0, np.log(1.1), 0])
    assert moves.day[:, 0] == pytest.approx([0, 0, np.log(12 / 11), 0])
    assert moves.by_sector.shape == (4, 0)
