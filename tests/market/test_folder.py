"""A folder of wide tables, one for each field, or of tables of one symbol each, is the panel of the tidy file."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from alphaloom.market import PanelError, PanelSource, Reading, panel_from, read_panel

from .test_forms import FIELDS, tidy, yahoo


@pytest.mark.parametrize("plural", ["", "s"])
def test_one_wide_table_for_each_field_is_read(tmp_path: Path, plural: str) -> None:
    frame = tidy()
    for name in FIELDS:
        wide = frame.pivot(index="date", columns="symbol", values=name)
        wide.to_csv(tmp_path / f"{name}{plural}.csv")
    read = read_panel(PanelSource(tmp_path))
    assert read == panel_from(frame)
    assert "table: 5 wide tables, one for each field" in read.notes


def test_tables_that_differ_in_days_and_symbols_are_joined(tmp_path: Path) -> None:
    frame = tidy()
    frame.loc[frame["symbol"] == "AAA", "volume"] = float("nan")
    for name in FIELDS:
        wide = frame.pivot(index="date", columns="symbol", values=name).dropna(axis=1, how="all")
        (wide.iloc[::-1] if name == "low" else wide).to_parquet(tmp_path / f"{name}.parquet")
    assert read_panel(PanelSource(tmp_path)) == panel_from(frame)


def test_one_table_for_each_symbol_is_read(tmp_path: Path) -> None:
    frame = tidy()
    for symbol, part in frame.groupby("symbol"):
        part.drop(columns="symbol").to_csv(tmp_path / f"{symbol}.csv", index=False)
    read = read_panel(PanelSource(tmp_path))
    assert read == panel_from(frame)
    assert "table: 3 tables, one for each symbol" in read.notes


def test_findings_name_the_file(tmp_path: Path) -> None:
    frame = tidy()
    for symbol, part in frame.groupby("symbol"):
        part.drop(columns="symbol").assign(close=0 if symbol == "AAA" else 2000.0).to_csv(
            tmp_path / f"{symbol}.csv", index=False
        )
    with pytest.raises(PanelError, match=r"row 1, close: AAA: 0 is not a positive price"):
        read_panel(PanelSource(tmp_path))
    (tmp_path / "AAA.csv").write_text("date,open\nsoon,1\n")
    with pytest.raises(PanelError, match=r"AAA\.csv close: the column is missing"):
        read_panel(PanelSource(tmp_path))


def test_a_field_without_a_table_is_named(tmp_path: Path) -> None:
    frame = tidy()
    for name in FIELDS[:3]:
        frame.pivot(index="date", columns="symbol", values=name).to_csv(tmp_path / f"{name}.csv")
    with pytest.raises(PanelError) as error:
        read_panel(PanelSource(tmp_path))
    assert [finding.message for finding in error.value.findings] == [
        "the folder has no file close.csv",
        "the folder has no file volume.csv",
    ]


def test_a_table_that_is_no_wide_one_is_told(tmp_path: Path) -> None:
    for name in FIELDS:
        pd.DataFrame({"close": [1.0]}).to_csv(tmp_path / f"{name}.csv", index=False)
    with pytest.raises(PanelError, match=r"open\.csv: it is no wide table of open"):
        read_panel(PanelSource(tmp_path))


def test_settings_hold_for_every_table(tmp_path: Path) -> None:
    frame = tidy()
    frame = frame[frame["date"] < "2013-01-10"]
    for symbol, part in frame.groupby("symbol"):
        written = part.assign(Datum=part["date"].dt.strftime("%d/%m/%Y")).drop(columns=["symbol", "date"])
        written.to_csv(tmp_path / f"{symbol}.csv", index=False, sep=";")
    read = read_panel(PanelSource(tmp_path, reading=Reading(dates="day_first", columns={"date": "Datum"})))
    assert read == panel_from(frame)


def test_an_empty_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(PanelError, match="the folder holds no CSV and no Parquet file"):
        read_panel(PanelSource(tmp_path))


def test_files_of_yfinance_with_one_ticker_each_are_read(tmp_path: Path) -> None:
    frame = tidy()
    for symbol in frame["symbol"].unique():
        yahoo(frame).xs(symbol, axis=1, level="Ticker", drop_level=False).dropna().to_csv(tmp_path / f"{symbol}.csv")
    assert read_panel(PanelSource(tmp_path)) == panel_from(frame)
    (tmp_path / "AAA.csv").write_text((tmp_path / "AAA.csv").read_text().replace("\n2013-01-03,", "\n2013-01-03,-"))
    with pytest.raises(PanelError, match=r"row 2, .*AAA: -.* is not a positive price"):
        read_panel(PanelSource(tmp_path))
    with pytest.raises(PanelError, match="put one such file for each symbol into a folder"):
        read_panel(PanelSource(tmp_path / "BRK.B.csv"))
