"""Stretches are found from prices, where a slow search finds them too, and known dates where the panel has them."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from alphaloom.evidence.scoring.exposures import measure_exposures
from alphaloom.evidence.stress.moves import PanelMoves
from alphaloom.evidence.stress.stretches import QUARTER_DAYS, Stretch, find_known_stretches, find_stretches
from alphaloom.market import Panel, PanelSource, read_panel

from .lab import market

DATA = Path(os.environ.get("ALPHALOOM_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
LAST = 400


@cache
def moves() -> PanelMoves:
    panel = market(5, days=420, names=80)
    return PanelMoves(panel, measure_exposures(panel))


@cache
def found() -> dict[str, Stretch]:
    return {stretch.code: stretch for stretch in find_stretches(moves().panel, moves(), LAST)}


def test_the_worst_drawdown_is_the_deepest_fall_within_a_third_of_the_days() -> None:
    daily = moves().market[:LAST, 0]
    falls = {(a, b): daily[a:b].sum() for a in range(LAST) for b in range(a + 1, min(a + LAST // 3, LAST) + 1)}
    start, stop = min(falls, key=lambda edges: falls[edges])
    assert (found()["worst_drawdown"].start, found()["worst_drawdown"].stop) == (start, stop)


def test_quarters_are_the_extreme_ones() -> None:
    daily = moves().market[:LAST, 0]
    spreads = [daily[start : start + QUARTER_DAYS].std() for start in range(LAST - QUARTER_DAYS + 1)]
    assert found()["wildest_quarter"].start == int(np.argmax(spreads))
    assert found()["calmest_quarter"].start == int(np.argmin(spreads))
    months = [daily[start : start + 21].sum() for start in range(LAST - 20)]
    assert found()["worst_month"].start == int(np.argmin(months))


def test_sectors_turn_where_leaders_change_most() -> None:
    rows = moves().by_sector[:LAST]
    turned = {
        start: np.abs(
            rows[start : start + QUARTER_DAYS].sum(axis=0) - rows[start - QUARTER_DAYS : start].sum(axis=0)
        ).mean()
        for start in range(QUARTER_DAYS, LAST - QUARTER_DAYS + 1)
    }
    assert found()["sector_turn"].start == max(turned, key=lambda start: turned[start])


def test_thin_trading_is_found_where_it_was_made() -> None:
    panel = moves().panel
    thin = np.array(panel.fields["amount"])
    thin[200:270] *= 0.2
    dry = replace(panel, fields={**panel.fields, "amount": thin})
    stretch = next(span for span in find_stretches(dry, moves(), LAST) if span.code == "thinnest_quarter")
    assert stretch.start >= 195
    assert stretch.stop <= 275


def test_a_short_panel_has_no_stretches() -> None:
    assert find_stretches(moves().panel, moves(), 2 * QUARTER_DAYS - 1) == []


def dated(first: str, *notes: str) -> Panel:
    """Return a market whose days begin somewhere else."""
    panel = moves().panel
    return replace(panel, dates=np.datetime64(first) + np.arange(panel.days), notes=notes)


def test_known_dates_are_taken_where_the_panel_has_them() -> None:
    codes = [stretch.code for stretch in find_known_stretches(dated("2010-04-01"), LAST)]
    assert codes == ["flash_2010"]
    assert find_known_stretches(dated("2012-01-01"), LAST) == []
    assert find_known_stretches(dated("2010-04-01"), 40) == []  # too few of its days have a label
    assert find_known_stretches(dated("2010-04-01", "synthetic market, seed 7"), LAST) == []


def test_the_worst_days_of_a_real_market_are_where_everybody_knows_them() -> None:
    path = DATA / "us_sp500_2008_2017.parquet"
    if not path.exists():
        pytest.skip("us_sp500_2008_2017.parquet is not on this machine; set ALPHALOOM_DATA to its folder")
    panel = read_panel(PanelSource(path))
    real = {
        stretch.code: stretch
        for stretch in find_stretches(panel, PanelMoves(panel, measure_exposures(panel)), panel.days - 6)
    }
    days = {code: str(panel.dates[each.start])[:4] for code, each in real.items()}
    assert days["worst_drawdown"] == days["worst_month"] == days["wildest_quarter"] == "2008"
    assert days["calmest_quarter"] == "2017"
    known = [stretch.code for stretch in find_known_stretches(panel, panel.days - 6)]
    assert known == ["banks_2008", "flash_2010", "august_2015"]
