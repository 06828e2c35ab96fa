"""A factor that lives on size is doubted on a list of survivors, and on no other panel."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from alphaloom.evidence.scoring.exposures import measure_exposures
from alphaloom.evidence.scoring.survivorship import Survivorship
from alphaloom.evidence.windows import Window
from alphaloom.factors import Engine
from alphaloom.market import Panel, PanelSource, read_panel

from .lab import SMALL, market, scorer

DATA = Path(os.environ.get("ALPHALOOM_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
SMALL_BEATS_LARGE = "-log(ts_mean(close_raw * volume, 60))"


def survivors(panel: Panel) -> Panel:
    """Return the names that still trade on the last day."""
    here = np.flatnonzero(panel.universe[-1]).tolist()
    fields = {name: values[:, here] for name, values in panel.fields.items() if name != "returns"}
    return Panel.build(panel.dates, [panel.symbols[i] for i in here], fields)


def whole(panel: Panel, share: float = 1.0) -> Window:
    stop = int(panel.days * share)
    return Window("search", 0, stop, str(panel.dates[0]), str(panel.dates[stop - 1]))


def doubt(panel: Panel, formula: str) -> str:
    tested = Survivorship(panel, whole(panel), measure_exposures(panel).size, 5)
    return tested.objection(Engine(panel).evaluate([formula])[0])


@pytest.mark.parametrize("formula", ["log(cap)", "-rank(cap)", "log(amount)"])
def test_a_factor_that_leans_on_size_is_doubted_on_survivors_only(formula: str) -> None:
    assert doubt(survivors(market()), formula).startswith("leans on size (mean rank correlation ")
    assert doubt(market(), formula) == ""


@pytest.mark.parametrize("formula", ["ts_mean(returns, 20)", "volume / ts_mean(volume, 20)", "close / open"])
def test_a_factor_that_does_not_is_not(formula: str) -> None:
    assert doubt(survivors(market()), formula) == ""


def test_the_doubt_reads_no_day_after_its_window() -> None:
    panel = survivors(market(days=560))
    blind = panel.rows(0, int(panel.days * 0.7))
    values = Engine(panel).evaluate(["log(cap)"])[0]
    said = [
        Survivorship(prices, whole(panel, 0.7), measure_exposures(prices).size, 5).size_effect
        for prices in (panel, blind)
    ]
    assert said[0] == said[1]
    assert Survivorship(panel, whole(panel, 0.7), measure_exposures(panel).size, 5).objection(values)


def test_the_doubt_is_on_the_sheet() -> None:
    panel = survivors(market())
    values = Engine(panel).evaluate(["log(cap)"])[0]
    codes = [warned.code for warned in scorer(panel, SMALL).score(values, whole(panel)).warnings]
    assert "survivorship" in codes


def real(name: str, **derive: str) -> Panel:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{name} is not on this machine; set ALPHALOOM_DATA to its folder")
    return read_panel(PanelSource(path, derive=derive))


def test_the_size_effect_of_todays_members_is_flagged_and_is_there() -> None:
    panel = real("us_sp500_2008_2017.parquet")
    tested = Survivorship(panel, whole(panel), measure_exposures(panel).size, 5)
    assert tested.objection(Engine(panel).evaluate([SMALL_BEATS_LARGE])[0])
    assert tested.size_effect.mean > 0.01
    assert tested.size_effect.t > 3


def test_the_size_effect_of_a_panel_with_names_that_vanish_is_not_flagged_and_is_not_there() -> None:
    panel = real("us_crawl_top1500_2015_2017.parquet", prices="adj_factor")
    tested = Survivorship(panel, whole(panel), measure_exposures(panel).size, 5)
    assert tested.objection(Engine(panel).evaluate([SMALL_BEATS_LARGE])[0]) == ""
    assert abs(tested.size_effect.t) < 2
