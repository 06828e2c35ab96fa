"""What a tear sheet shows of a daily series: returns, years, spread of the RankIC, and the usual check list."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from alphaloom.desk.web.tear_sheet import TearSheet, build_tear_sheet
from alphaloom.evaluation.closing import DailyRankICByWindow, FactorEntry

from . import example

Draws = st.lists(st.one_of(st.none(), st.floats(-0.9, 0.9)), min_size=40, max_size=300)


def series(days: list[str], ranks: list[float | None], net: list[float | None]) -> dict[str, Any]:
    return {"dates": days[: len(ranks)], "rank_ic": ranks, "net": net}


def build(ranks: list[float | None], net: list[float | None], *, tested: bool = False, sign: int = 1) -> TearSheet:
    """Return the tear sheet of a factor with the same daily series on search and on selection days."""
    made = example.entry("fa", "close", 0.03 * sign, trial=1 if tested else None)
    entry = FactorEntry.read({**made, "library_correlation": -0.72})
    windows = {"search": series(example.SEARCH, ranks, net), "selection": series(example.SELECTION, ranks, net)}
    return build_tear_sheet(entry, DailyRankICByWindow.read(windows))


@given(ranks=Draws, sign=st.sampled_from([1, -1]))
def test_years_hold_every_day_once_and_a_fall_is_no_deeper_than_the_losses(
    ranks: list[float | None], sign: int
) -> None:
    net = [None if value is None else value / 100 for value in ranks]
    sheet = build(ranks, net, sign=sign)
    known = [value for value in ranks if value is not None]
    assert sum(one.days for one in sheet.years) == len(known)
    earned = math.prod(1 + (one.returned or 0.0) for one in sheet.years)
    assert earned == pytest.approx(math.prod(1 + value / 100 for value in known))
    assert sum(round((one.positive or 0.0) * one.days) for one in sheet.years) == sum(one * sign > 0 for one in known)
    for year in sheet.years:
        of_year = (value for day, value in zip(example.SEARCH, ranks, strict=False) if day[:4] == year.year)
        losses = math.prod(1 + min(value or 0.0, 0.0) / 100 for value in of_year)
        assert losses - 1 - 1e-12 <= (year.fall or 0.0) <= 0


def test_the_fall_is_found_from_the_highest_value_before_and_fitness_follows_its_formula() -> None:
    net: list[float | None] = [0.02, -0.01, -0.03, 0.05, -0.02] * 40
    sheet = build([0.1] * 200, net, tested=True)
    assert sheet.years[0].fall == pytest.approx(0.98 * 1.02 * 0.99 * 0.97 - 1)  # from after the 5 %
    rows = {one.check: one for one in sheet.limits}
    returned, sharpe, turnover = 252 * 0.002, example.sheet(0.03, example.SEARCH)["net_sharpe"], 2 * 0.183
    assert float(rows["fitness"].search) == pytest.approx(sharpe * math.sqrt(returned / turnover), abs=0.005)
    daily = np.array(net, dtype=float)
    expected = daily.mean() / daily.std(ddof=1) * math.sqrt(252)
    assert sheet.years[0].sharpe == pytest.approx(expected)
    traded, nearest = rows["turnover a day, bought and sold"], rows["largest correlation with the library"]
    assert (traded.search, traded.holds, nearest.holds) == ("36.6 %", True, False)


def test_without_a_trial_no_figure_of_selection_days_is_there() -> None:
    sheet = build([0.1, -0.2] * 50, [0.01, -0.01] * 50)
    assert {one.window for one in sheet.years} == {"search"}
    assert {one.selection for one in sheet.limits} == {"—"}
    assert "selection" not in f"{sheet.returns.equity}{sheet.returns.by_month}{sheet.returns.histogram}"
    assert {len(row) for row in sheet.spread} == {2}


def test_a_factor_without_a_series_has_the_check_list_alone() -> None:
    entry = FactorEntry.read(example.entry("fa", "close", 0.03))
    sheet = build_tear_sheet(entry, None)
    assert (sheet.years, sheet.returns.equity, sheet.spread) == ([], "", [])
    assert [one.check for one in sheet.limits if one.holds is None] == [
        "fitness",
        "Sharpe ratio after costs, worst year",
    ]
