"""A file of symbol changes makes one series of a company; the audit says where one is missing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from alphaloom.factors import MarketSettings
from alphaloom.market import Panel, PanelError, PanelSource, find_data_warnings, read_panel

from .test_forms import DAYS, FIELDS, tidy

CHANGE = DAYS[15]


@pytest.fixture
def frame() -> pd.DataFrame:
    """Return prices in which AAA is called OLD until the change, and another company is called OLD later."""
    rows = tidy()
    renamed = rows["symbol"].where((rows["symbol"] != "AAA") | (rows["date"] >= CHANGE), "OLD")
    return rows.assign(symbol=renamed)


def source(folder: Path, frame: pd.DataFrame, changes: str, **files: str) -> PanelSource:
    frame.to_csv(folder / "prices.csv", index=False)
    for name, text in {"changes": changes, **files}.items():
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    beside: dict[str, Any] = {name: folder / f"{name}.csv" for name in files}
    return replace(PanelSource(folder / "prices.csv", symbol_changes=folder / "changes.csv"), **beside)


def change(*rows: str) -> str:
    return "\n".join(["date,symbol,new_symbol", *rows, ""])


@pytest.fixture
def whole(tmp_path: Path) -> Panel:
    tidy().to_csv(tmp_path / "whole.csv", index=False)
    return read_panel(PanelSource(tmp_path / "whole.csv"))


def test_a_renamed_symbol_is_one_series(tmp_path: Path, frame: pd.DataFrame, whole: Panel) -> None:
    read = read_panel(source(tmp_path, frame, change(f"{CHANGE.date()},OLD,AAA")))
    assert read == whole
    assert f"changes.csv: 1 series go on under a new symbol: OLD to AAA on {CHANGE.date()}" in read.notes


def test_changes_are_chained_in_any_order(tmp_path: Path, frame: pd.DataFrame, whole: Panel) -> None:
    first = frame["symbol"].where((frame["symbol"] != "OLD") | (frame["date"] >= DAYS[6]), "OLDEST")
    rows = [f"{CHANGE.date()},OLD,AAA", f"{DAYS[6].date()},OLDEST,OLD"]
    assert read_panel(source(tmp_path, frame.assign(symbol=first), change(*rows))) == whole


def test_a_symbol_that_another_company_takes_is_two_series(tmp_path: Path, frame: pd.DataFrame, whole: Panel) -> None:
    taken = tidy().query("symbol == 'BRK.B' and date >= @CHANGE").assign(symbol="OLD")
    read = read_panel(source(tmp_path, pd.concat([frame, taken]), change(f"{CHANGE.date()},OLD,AAA")))
    assert read.symbols == (*whole.symbols, "OLD")
    np.testing.assert_array_equal(read.fields["close"][:, :3], whole.fields["close"])
    assert np.isnan(read.fields["close"][:15, 3]).all()
    assert "changes.csv: 1 old symbols have rows after their change, which are taken for another company: OLD" in (
        read.notes
    )


@pytest.mark.parametrize("order", [1, -1])
def test_changes_of_one_day_happen_at_once(tmp_path: Path, whole: Panel, order: int) -> None:
    """A symbol is handed over: AAA is NEW from the change on, and BRK.B is AAA."""
    called = {"AAA": "NEW", "BRK.B": "AAA"}
    rows = tidy()
    rows["symbol"] = rows["symbol"].where(rows["date"] < CHANGE, rows["symbol"].replace(called))
    changes = change(*[f"{CHANGE.date()},{old},{new}" for old, new in called.items()][::order])
    members = "symbol,from,to\nAAA,2013-01-01,2013-01-04\n"
    read = read_panel(source(tmp_path, rows, changes, members=members))
    assert {*read.symbols} == {*whole.symbols} - {"BRK.B"} | {"NEW"}
    for old, new in called.items():
        ends = read.fields["close"][:, read.symbols.index(new)], whole.fields["close"][:, whole.symbols.index(old)]
        np.testing.assert_array_equal(*ends)
    assert read.universe[:, read.symbols.index("NEW")].any(), "the early AAA is followed to NEW, not to its successor"
    assert not any("another company" in note for note in read.notes)


def test_an_acquired_company_ends_at_its_last_price(tmp_path: Path) -> None:
    read = read_panel(source(tmp_path, tidy(), change(f"{CHANGE.date()},AAA,", "2013-01-02,GONE,")))
    place = read.symbols.index("AAA")
    assert np.isfinite(read.fields["close"][:15, place]).all()
    assert np.isnan(read.fields["close"][15:, place]).all()
    assert f"changes.csv: 1 companies ended: AAA on {CHANGE.date()} (15 later rows left out)" in read.notes
    assert "changes.csv: 1 old symbols have no row before their day: GONE" in read.notes


def test_two_companies_are_not_joined(tmp_path: Path) -> None:
    with pytest.raises(
        PanelError, match=r"AAA and BRK\.B have different prices on 11 days, such as 2013-01-08"
    ) as error:
        read_panel(source(tmp_path, tidy(), change(f"{CHANGE.date()},AAA,BRK.B")))
    assert "leave new_symbol empty if the one was acquired" in str(error.value)


def test_other_files_follow_the_changes(tmp_path: Path, frame: pd.DataFrame) -> None:
    files = {
        "members": "symbol,from,to\nOLD,2013-01-01,2013-01-15\n",
        "fundamentals": "symbol,known,eps\nOLD,2013-01-04,2.5\n",
    }
    read = read_panel(source(tmp_path, frame, change(f"{CHANGE.date()},OLD,AAA"), **files))
    place = read.symbols.index("AAA")
    assert read.universe[:, place].sum() == 10
    assert (read.fields["eps"][5:, place] == 2.5).all()


def test_actions_follow_the_changes(tmp_path: Path, frame: pd.DataFrame) -> None:
    source(tmp_path, frame, change(f"{CHANGE.date()},OLD,AAA"))
    (tmp_path / "actions.csv").write_text("date,symbol,split\n2013-01-04,OLD,2\n2013-02-04,AAA,3\n", encoding="utf-8")
    paths = {"panel": "prices.csv", "actions": "actions.csv", "symbol_changes": "changes.csv"}
    actions = MarketSettings.model_validate({"volumes": "quoted", **paths}).beside(tmp_path).read_actions()
    assert actions is not None
    assert actions.symbols == ("AAA", "AAA")


MISTAKES = {
    "date,symbol\n2013-01-04,AAA\n": "new_symbol: the column is missing",
    change("2013-01-04,AAA,AAA"): "row 1, new_symbol: 'AAA' is the old symbol",
    change(",AAA,BBB"): "row 1, date: the cell is empty",
    change("2013-01-04,,BBB"): "row 1, symbol: the cell is empty",
    change(): "the file has no rows",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(PanelError) as error:
        read_panel(source(tmp_path, tidy(), text))
    assert MISTAKES[text] in str(error.value)


def cut(frame: pd.DataFrame, scale: float = 1.0) -> pd.DataFrame:
    """Return prices in which AAA becomes NEW, at a multiple of its price."""
    late = (frame["symbol"] == "AAA") & (frame["date"] >= CHANGE)
    frame = frame.assign(symbol=frame["symbol"].where(~late, "NEW"), volume=5_000_000)
    frame.loc[late, list(FIELDS[:4])] *= scale
    return frame


def test_a_suspected_change_is_told(tmp_path: Path) -> None:
    cut(tidy()).to_csv(tmp_path / "prices.csv", index=False)
    found = [
        warning
        for warning in find_data_warnings(read_panel(PanelSource(tmp_path / "prices.csv")))
        if warning.kind == "renames"
    ]
    assert [warning.where for warning in found] == [f"AAA to NEW on {CHANGE.date()}"]
    assert "market.symbol_changes" in found[0].remedy
    cut(tidy(), 1.4).to_csv(tmp_path / "prices.csv", index=False)
    assert not [w for w in find_data_warnings(read_panel(PanelSource(tmp_path / "prices.csv"))) if w.kind == "renames"]
