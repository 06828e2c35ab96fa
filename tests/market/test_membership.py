"""A file of members is the universe, point in time, and says who is missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from alphaloom.market import PanelError, PanelSource, read_panel

from .test_forms import tidy

MEMBERS = """symbol,from,to
AAA,2013-01-07,2013-01-11
AAA,2013-01-21,
0005.HK,2010-01-01,2013-01-09
GONE,2010-01-01,2013-01-09
"""


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    tidy().to_csv(tmp_path / "prices.csv", index=False)
    return tmp_path / "prices.csv"


def members(folder: Path, text: str = MEMBERS) -> Path:
    (folder / "members.csv").write_text(text, encoding="utf-8")
    return folder / "members.csv"


def test_the_universe_is_the_members_of_the_day(tmp_path: Path, prices: Path) -> None:
    panel = read_panel(PanelSource(prices, members=members(tmp_path)))
    inside = {symbol: panel.dates[panel.universe[:, place]] for place, symbol in enumerate(panel.symbols)}
    week = np.arange("2013-01-07", "2013-01-12", dtype="datetime64[D]")
    np.testing.assert_array_equal(inside["AAA"], [*week, *panel.dates[panel.dates >= np.datetime64("2013-01-21")]])
    assert inside["0005.HK"][-1] == np.datetime64("2013-01-09")
    assert not len(inside["BRK.B"])
    assert np.isfinite(panel.fields["close"][:, panel.symbols.index("BRK.B")]).any()


def test_who_is_missing_is_noted(tmp_path: Path, prices: Path) -> None:
    panel = read_panel(PanelSource(prices, members=members(tmp_path)))
    assert "universe: members" in panel.stamps
    assert "members.csv: 1 members have no price in the table: results are those of the others: GONE" in panel.notes
    assert "members.csv: 1 symbols of the table never were members: BRK.B" in panel.notes


MISTAKES = {
    "symbol,from\nAAA,2013-01-07\n": "to: the column is missing",
    "symbol,from,to\nAAA,2013-01-07,2013-01-06\n": "row 1, to: the last day is before the first",
    "symbol,from,to\nAAA,,2013-01-06\n": "row 1, from: the cell is empty",
    "symbol,from,to\nAAA,2013-01-05,never\n": "row 1, to: 'never' is not a date",
    "symbol,from,to\n": "the file has no rows",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, prices: Path, text: str) -> None:
    with pytest.raises(PanelError) as error:
        read_panel(PanelSource(prices, members=members(tmp_path, text)))
    assert MISTAKES[text] in str(error.value)
