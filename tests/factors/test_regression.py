"""The residual of a day's regression: its laws, collinear exposures, gaps, and groups."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from alphaloom.factors.engine.engine import Engine
from alphaloom.factors.language.node import call_node, field_node
from alphaloom.market import Panel

from . import panels, reference

X, Z, MORE = "returns", ("close", "volume"), ("close", "volume", "open", "high", "low", "vwap", "amount")


def computed(panel: Panel, *texts: str) -> list[NDArray[np.float32]]:
    return Engine(panel).evaluate(texts)


def test_many_exposures_agree_with_the_reference() -> None:
    for flavour in panels.FLAVOURS:
        panel = panels.draw(1, 30, 40, flavour)
        for names in (Z, MORE):
            node = call_node("regress_out", field_node(X), *map(field_node, names))
            expected = np.where(panel.universe, reference.evaluate(node, panel), np.nan)
            found = Engine(panel).compute([node])[0]
            np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * np.nanmax(np.abs(expected), initial=0))


def test_the_residual_has_no_mean_and_no_correlation_with_any_exposure() -> None:
    panel = panels.draw(2, 10, 60, "plain")
    (left,) = computed(panel, "regress_out(returns, close, volume)")
    for day in range(10):
        there = ~np.isnan(left[day])
        rows = [panel.fields[name][day, there] for name in Z]
        assert there.sum() > 30
        assert abs(left[day, there].mean(dtype=float)) < 1e-7
        assert all(abs(np.corrcoef(left[day, there], z)[0, 1]) < 1e-6 for z in rows)


def test_an_exposure_that_says_nothing_new_changes_nothing() -> None:
    panel = panels.draw(3, 12, 50, "prices")
    plain, twice, flat = computed(
        panel,
        "regress_out(returns, close)",
        "regress_out(returns, close, sqrt(close * close) * 3)",
        "regress_out(returns, close, mean_across(close))",
    )
    np.testing.assert_allclose(twice, plain, atol=1e-6)
    np.testing.assert_allclose(flat, plain, atol=1e-6)


def test_what_the_exposures_fit_exactly_leaves_zero() -> None:
    panel = panels.draw(4, 5, 30, "prices")
    (left,) = computed(panel, "regress_out(3 * close - 2 * open, close, open)")
    assert set(left[~np.isnan(left)].tolist()) == {0.0}


def test_a_day_with_no_more_names_than_parameters_is_missing() -> None:
    for names, some in ((2, False), (3, False), (4, True)):
        panel = panels.draw(0, 30, names, "plain", all_members=True)
        (left,) = computed(panel, "regress_out(returns, close, volume)")
        assert bool(np.isfinite(left).any()) == some


def test_within_groups_it_is_the_regression_on_a_constant_of_each_group() -> None:
    panel = panels.draw(6, 8, 60, "plain")
    filled = {name: np.nan_to_num(x) for name, x in panel.fields.items()}
    panel = Panel(panel.dates, panel.symbols, filled, panel.universe, panel.groups)
    (left,) = computed(panel, "regress_out(group_demean(returns, sector), group_demean(close, sector))")
    codes = panel.groups["sector"]
    for day in range(8):
        there = panel.universe[day] & (codes >= 0)
        x, z = (panel.fields[name][day, there] for name in ("returns", "close"))
        design = np.column_stack([z, *((codes[there] == code).astype(float) for code in range(3))])
        expected = x - design @ np.linalg.lstsq(design, x, rcond=None)[0]
        np.testing.assert_allclose(left[day, there], expected, atol=1e-5)
        assert np.isnan(left[day, ~there]).all()
