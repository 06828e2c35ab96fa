"""Tables as people have them load to the same panel as the tidy one, or say which setting is asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest

from alphaloom.ledger import AlphaloomError
from alphaloom.market import Panel, PanelError, PanelSource, Reading, read_panel

FIELDS = ("open", "high", "low", "close", "volume")
Unit = Literal["s", "ms", "us", "ns"]
DAYS = pd.bdate_range("2013-01-02", periods=30)
SYMBOLS = ("AAA", "BRK.B", "0005.HK")


def tidy() -> pd.DataFrame:
    """Return a tidy frame in which one symbol lists late and one vanishes."""
    draw = np.random.default_rng(3)
    rows = []
    for place, symbol in enumerate(SYMBOLS):
        close = np.round(900 * (place + 1) * np.exp(np.cumsum(draw.normal(0, 0.02, len(DAYS)))), 2)
        frame = pd.DataFrame({"date": DAYS, "symbol": symbol, "open": np.round(close * 1.01, 2)})
        frame["high"], frame["low"], frame["close"] = np.round(close * 1.03, 2), np.round(close * 0.98, 2), close
        frame["volume"] = draw.integers(1_000_000, 9_000_000, len(DAYS))
        rows.append(frame.iloc[4:] if place == 1 else frame.iloc[:-4] if place == 2 else frame)
    return pd.concat(rows).sort_values(["date", "symbol"], ignore_index=True)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return tidy()


@pytest.fixture(scope="module")
def panel(frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Panel:
    path = tmp_path_factory.mktemp("tidy") / "prices.csv"
    frame.to_csv(path, index=False)
    return read_panel(PanelSource(path))


def yahoo(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame in the shape of `yfinance.download(..., auto_adjust=False, actions=True)`."""
    names = {name: name.capitalize() for name in FIELDS}
    wide = frame.rename(columns=names | {"symbol": "Ticker", "date": "Date"}).pivot(index="Date", columns="Ticker")
    for extra, value in (("Adj Close", wide["Close"] * 0.9), ("Dividends", wide["Close"] * 0.0)):
        for symbol in SYMBOLS:
            wide[extra, symbol] = value[symbol]
    wide.columns.names = ["Price", "Ticker"]
    return wide


def text_file(folder: Path, frame: pd.DataFrame, *, encoding: str = "utf-8", **options: str) -> Path:
    path = folder / "prices.csv"
    path.write_bytes(frame.to_csv(index=False, **options).encode(encoding))  # type: ignore[call-overload]
    return path


def refused(path: Path, **reading: object) -> str:
    with pytest.raises(PanelError) as error:
        read_panel(PanelSource(path, reading=Reading(**reading)))  # type: ignore[arg-type]
    return str(error.value)


@pytest.mark.parametrize("order", [["Price", "Ticker"], ["Ticker", "Price"]])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_yfinance_frame_is_read_in_either_order(
    tmp_path: Path, frame: pd.DataFrame, panel: Panel, order: list[str], kind: str
) -> None:
    wide = yahoo(frame).reorder_levels(order, axis=1)
    path = tmp_path / f"prices.{kind}"
    wide.to_csv(path) if kind == "csv" else wide.to_parquet(path)
    read = read_panel(PanelSource(path))
    assert read == panel
    assert "table: wide, 7 fields of each symbol" in read.notes
    assert [note for note in read.notes if note.startswith("adj_close: left out, it knows later dividends")]


def test_the_adjusted_close_of_a_vendor_adjusts_all_prices(tmp_path: Path, frame: pd.DataFrame, panel: Panel) -> None:
    yahoo(frame).to_csv(tmp_path / "prices.csv")
    read = read_panel(PanelSource(tmp_path / "prices.csv", derive={"prices": "adj_close"}))
    np.testing.assert_allclose(read.fields["open"], 0.9 * panel.fields["open"])
    assert "adj_close" not in read.fields
    assert "close_raw" not in read.fields
    assert read.stamps == ("prices: adj_close",)


@pytest.mark.parametrize("names", [None, [None, None]])
def test_levels_without_names_are_read(
    tmp_path: Path, frame: pd.DataFrame, panel: Panel, names: list[None] | None
) -> None:
    wide = yahoo(frame)
    wide.index.name = None
    wide.columns.names = names or wide.columns.names
    wide.to_csv(tmp_path / "prices.csv")
    wide.to_parquet(tmp_path / "prices.parquet")
    assert read_panel(PanelSource(tmp_path / "prices.csv")) == panel
    assert read_panel(PanelSource(tmp_path / "prices.parquet")) == panel


@pytest.mark.parametrize("adjusted", ["adj_close", "Adj Close", "Adjusted", ""])
@pytest.mark.parametrize(
    "pattern", ["{1}_{0}", "{0}.{1}", "{1} {0}", "{1}:{0}", "{1}-{0}", "{0}_{1}", "{1} - {0}", "('{0}', '{1}')"]
)
def test_names_of_field_and_symbol_in_one_are_read(
    tmp_path: Path, frame: pd.DataFrame, panel: Panel, pattern: str, adjusted: str
) -> None:
    given = frame.assign(**{adjusted: frame["close"] * 0.9}) if adjusted else frame
    wide = given.pivot(index="date", columns="symbol")
    wide.columns = pd.Index([pattern.format(*pair) for pair in wide.columns])
    wide.to_csv(tmp_path / "prices.csv")
    assert read_panel(PanelSource(tmp_path / "prices.csv")) == panel


def test_symbols_that_are_called_as_fields_are_told_from_fields(tmp_path: Path, frame: pd.DataFrame) -> None:
    wide = frame.replace({"symbol": {"AAA": "LOW", "BRK.B": "OPEN"}}).pivot(index="date", columns="symbol")
    wide.columns = pd.Index(["{1}_{0}".format(*pair) for pair in wide.columns])
    wide.to_csv(tmp_path / "prices.csv")
    assert read_panel(PanelSource(tmp_path / "prices.csv")).symbols == ("0005.HK", "LOW", "OPEN")


def test_a_table_of_closes_says_what_is_missing(tmp_path: Path, frame: pd.DataFrame) -> None:
    frame.pivot(index="date", columns="symbol", values="close").to_csv(tmp_path / "closes.csv")
    message = refused(tmp_path / "closes.csv")
    assert "a wide table of one field, 3 symbols such as 0005.HK, AAA, BRK.B" in message
    assert "put one such table for each into a folder, named open.csv and so on" in message


def test_dates_across_are_told(tmp_path: Path, frame: pd.DataFrame) -> None:
    frame.pivot(index="symbol", columns="date", values="close").to_csv(tmp_path / "closes.csv")
    assert "the dates run across: write one row for each date" in refused(tmp_path / "closes.csv")


def test_a_file_of_one_symbol_is_told_how_to_become_a_panel(tmp_path: Path, frame: pd.DataFrame) -> None:
    frame[frame["symbol"] == "AAA"].drop(columns="symbol").to_csv(tmp_path / "AAA.csv", index=False)
    assert "put one such file for each symbol into a folder, named SYMBOL.csv" in refused(tmp_path / "AAA.csv")


WRITTEN = {
    "1,234.50": "{:,.2f}",
    "1.234,50": "{:,.2f}",
    "$1234.50": "${:.2f}",
    "1 234,50 EUR": "{:,.2f} EUR",
    "1'234.50": "{:,.2f}",
}


def write_number(value: float, style: str) -> str:
    text = WRITTEN[style].format(value)
    if style == "1.234,50":
        return text.translate(str.maketrans(",.", ".,"))
    if style == "1 234,50 EUR":
        return text.translate(str.maketrans(",.", " ,"))
    return text.replace(",", "'") if style == "1'234.50" else text


@pytest.mark.parametrize("style", WRITTEN)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_prices_in_text_are_read(tmp_path: Path, frame: pd.DataFrame, panel: Panel, style: str, kind: str) -> None:
    texts = frame.assign(**{name: [write_number(value, style) for value in frame[name]] for name in FIELDS})
    path = tmp_path / f"prices.{kind}"
    texts.to_csv(path, index=False) if kind == "csv" else texts.to_parquet(path)
    assert read_panel(PanelSource(path)) == panel


def test_thousands_that_may_be_decimals_are_asked_for(tmp_path: Path, frame: pd.DataFrame) -> None:
    texts = frame.assign(**{name: [f"1,{int(value) % 900 + 99:03d}" for value in frame["close"]] for name in FIELDS})
    path = text_file(tmp_path, texts.assign(high="2,000", low="1,000"))
    assert "may have thousands or decimals behind its comma, and no cell of the file decides" in refused(path)
    assert "say decimal: point or decimal: comma" in refused(path)
    read = {mark: read_panel(PanelSource(path, reading=Reading(decimal=mark))) for mark in ("point", "comma")}
    np.testing.assert_allclose(read["point"].fields["close"], 1000 * read["comma"].fields["close"])


def test_an_exponent_without_a_mark_decides_nothing(tmp_path: Path) -> None:
    path = tmp_path / "european.csv"
    rows = [
        f"2020-01-0{day};{name};99,9;100,5;99,1;100,2;{size}"
        for day, size in ((2, "1e+06"), (3, "2,7293e+06"))
        for name in "AB"
    ]
    path.write_text("\n".join(["date;symbol;open;high;low;close;volume", *rows]))
    assert read_panel(PanelSource(path)).fields["volume"].tolist() == [[1e6] * 2, [2_729_300.0] * 2]


def test_two_decimal_marks_in_a_file_are_told(tmp_path: Path, frame: pd.DataFrame) -> None:
    texts = frame.assign(open=[f"{value:.2f}".replace(".", ",") for value in frame["open"]])
    assert "has a decimal point and" in refused(text_file(tmp_path, texts))


def test_a_column_of_words_is_one_finding_with_three_examples(tmp_path: Path, frame: pd.DataFrame) -> None:
    message = refused(text_file(tmp_path, frame.assign(close="n.v.")))
    assert message.count("'n.v.' is not a number") == 3
    assert "and 79 more rows like these" in message
    assert len(message.splitlines()) == 3
    assert "drop" not in message


def test_several_currencies_are_told(tmp_path: Path, frame: pd.DataFrame) -> None:
    texts = frame.assign(close=[f"{'$€'[row % 2]}{value}" for row, value in enumerate(frame["close"])])
    assert "close: the prices are in several currencies, $, €" in refused(text_file(tmp_path, texts))


DATES = {
    "%d/%m/%Y": {},
    "%m/%d/%Y": {},
    "%d.%m.%Y": {},
    "%Y/%m/%d": {},
    "%Y%m%d": {},
    "%d-%b-%Y": {},
    "%B %d, %Y": {},
    "%d/%m/%y": {"dates": "day_first"},
    "%Y-%m-%d 00:00:00+00:00": {},
    "%d.%m.%Y 00:00:00+09:00": {},
    "%Y-%m-%d 00:30:00-05:00": {"time_zone": "America/New_York"},
    "%Y-%m-%dT05:00:00Z": {"time_zone": "America/New_York"},
    "%Y-%m-%d 16:00": {"time_zone": "America/New_York"},
}


@pytest.mark.parametrize("form", DATES)
def test_dates_of_many_forms_are_read(tmp_path: Path, frame: pd.DataFrame, panel: Panel, form: str) -> None:
    path = text_file(tmp_path, frame.assign(date=frame["date"].dt.strftime(form)))
    assert read_panel(PanelSource(path, reading=Reading(**DATES[form]))) == panel  # type: ignore[arg-type]
    for setting in DATES[form]:
        assert f"{setting}: " in refused(path)


def test_what_decided_the_order_of_dates_is_noted(tmp_path: Path, frame: pd.DataFrame) -> None:
    read = read_panel(PanelSource(text_file(tmp_path, frame.assign(date=frame["date"].dt.strftime("%d/%m/%Y")))))
    assert "date: day_first, as '14/01/2013' shows" in read.notes


def test_dates_that_may_be_either_are_asked_for(tmp_path: Path, frame: pd.DataFrame) -> None:
    early = frame[frame["date"] <= "2013-01-11"]
    path = text_file(tmp_path, early.assign(date=early["date"].dt.strftime("%d/%m/%Y")))
    assert "date: '02/01/2013' is 2 January or 1 February, and no date of the column decides" in refused(path)
    assert read_panel(PanelSource(path, reading=Reading(dates="day_first"))).dates[0] == np.datetime64("2013-01-02")
    assert read_panel(PanelSource(path, reading=Reading(dates="month_first"))).dates[0] == np.datetime64("2013-02-01")


def test_dates_that_are_the_same_in_either_order_are_read(tmp_path: Path, frame: pd.DataFrame) -> None:
    one = frame.drop_duplicates("symbol").assign(date="02/02/2013")
    assert read_panel(PanelSource(text_file(tmp_path, one))).dates[0] == np.datetime64("2013-02-02")
    two = pd.concat([one, one.assign(date="03/02/2013")])
    assert "'03/02/2013' is 3 February or 2 March" in refused(text_file(tmp_path, two))


@pytest.mark.parametrize("name", ["Name", "Adj Close", "WKN", "unknown"])
def test_no_number_is_proposed_as_symbol(tmp_path: Path, frame: pd.DataFrame, name: str) -> None:
    given = frame.assign(**{name: frame["close"] if name == "Adj Close" else "716460"})
    message = refused(text_file(tmp_path, given.drop(columns="symbol")))
    assert (f"say columns: {{symbol: {name.lower()}}}" in message) == (name in ("Name", "WKN"))
    assert ("each date is there several times" in message) == (name not in ("Name", "WKN"))


def test_both_orders_in_a_column_are_told(tmp_path: Path, frame: pd.DataFrame) -> None:
    dates = [day.strftime("%d/%m/%Y" if row % 2 else "%m/%d/%Y") for row, day in enumerate(frame["date"])]
    message = refused(text_file(tmp_path, frame.assign(date=dates)))
    assert "begins with the day and" in message
    assert "write all dates alike" in message
    assert "day_first" not in message


def test_dates_that_a_spreadsheet_has_read_in_part_are_refused(tmp_path: Path, frame: pd.DataFrame) -> None:
    dates = [day.strftime("%Y-%d-%m" if day.day <= 12 else "%d/%m/%Y") for day in frame["date"]]
    message = refused(text_file(tmp_path, frame.assign(date=dates)), dates="day_first")
    assert "dates with the year first (row 1: '2013-02-01') and " in message
    assert "'14/01/2013'): a spreadsheet program that reads some dates" in message
    assert len(message.splitlines()) == 3


@pytest.mark.parametrize(("form", "count"), [("excel", lambda day: (day - pd.Timestamp("1899-12-30")).days)])
def test_numbers_of_days_are_read_when_said(
    tmp_path: Path, frame: pd.DataFrame, panel: Panel, form: str, count: Callable[[pd.Timestamp], int]
) -> None:
    path = text_file(tmp_path, frame.assign(date=[count(day) for day in frame["date"]]))
    assert "or say dates: excel (days since 1900) or dates: unix" in refused(path)
    assert read_panel(PanelSource(path, reading=Reading(dates="excel"))) == panel


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_instants_since_1970_are_read_when_said(tmp_path: Path, frame: pd.DataFrame, panel: Panel, unit: Unit) -> None:
    path = text_file(tmp_path, frame.assign(date=frame["date"].dt.as_unit(unit).astype("int64")))
    assert read_panel(PanelSource(path, reading=Reading(dates="unix"))) == panel


def test_an_instant_since_1970_needs_the_exchange_s_zone(tmp_path: Path, frame: pd.DataFrame, panel: Panel) -> None:
    closes = (frame["date"] + pd.Timedelta(hours=16)).dt.tz_localize("Asia/Tokyo").dt.tz_convert("UTC")
    opens = frame["date"].dt.tz_localize("Asia/Tokyo").dt.tz_convert("UTC")
    for days in (closes, opens):
        path = text_file(tmp_path, frame.assign(date=days.dt.as_unit("s").astype("int64")))
        message = refused(path, dates="unix")
        assert "is no midnight in UTC and is zoned: say the exchange's zone" in message
        assert read_panel(PanelSource(path, reading=Reading(dates="unix", time_zone="Asia/Tokyo"))) == panel


def test_a_zoned_column_is_its_day_in_the_zone_of_the_settings(
    tmp_path: Path, frame: pd.DataFrame, panel: Panel
) -> None:
    zoned = frame.assign(date=frame["date"].dt.tz_localize("America/New_York").dt.tz_convert("UTC"))
    zoned.to_parquet(tmp_path / "prices.parquet")
    assert "time_zone: America/New_York" in refused(tmp_path / "prices.parquet")
    assert read_panel(PanelSource(tmp_path / "prices.parquet", reading=Reading(time_zone="America/New_York"))) == panel


@pytest.mark.parametrize("own", ["UTC", "Asia/Tokyo", "America/New_York"])
@pytest.mark.parametrize("kind", ["csv", "parquet", "unix"])
def test_midnights_are_the_days_that_are_written(
    tmp_path: Path, frame: pd.DataFrame, panel: Panel, own: str, kind: str
) -> None:
    zoned = frame.assign(date=frame["date"].dt.tz_localize("UTC" if kind == "unix" else own))
    counted = zoned.assign(date=zoned["date"].dt.as_unit("s").astype("int64"))
    path, form = tmp_path / f"prices.{'parquet' if kind == 'parquet' else 'csv'}", "unix" if kind == "unix" else ""
    zoned.to_parquet(path) if kind == "parquet" else (counted if form else zoned).to_csv(path, index=False)
    assert read_panel(PanelSource(path, reading=Reading(dates=form))) == panel  # type: ignore[arg-type]
    message = refused(path, dates=form, time_zone="America/Los_Angeles")
    assert "time_zone: America/Los_Angeles makes 2013-01-01 of" in message
    assert "leave time_zone out" in message


def test_bars_within_a_day_are_told(tmp_path: Path, frame: pd.DataFrame) -> None:
    bars = pd.concat([frame.assign(date=frame["date"] + pd.Timedelta(hours=hour)) for hour in (10, 15)])
    for path in (text_file(tmp_path, bars), tmp_path / "bars.parquet"):
        bars.to_parquet(tmp_path / "bars.parquet")
        message = refused(path, time_zone="America/New_York")
        assert "these are bars within a day: make one row of each day" in message
        assert "drop_equal" not in message


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32", "cp1252"])
def test_encodings_are_recognised_and_symbols_keep_their_spelling(
    tmp_path: Path, frame: pd.DataFrame, encoding: str
) -> None:
    named = frame.replace({"symbol": {"AAA": "Müller"}})
    path = text_file(tmp_path, named, encoding=encoding)
    assert "Müller" in read_panel(PanelSource(path)).symbols


def test_an_export_of_excel_is_read(tmp_path: Path, frame: pd.DataFrame, panel: Panel) -> None:
    columns = {name: [write_number(value, "1.234,50") for value in frame[name]] for name in FIELDS}
    excel = frame.assign(date=frame["date"].dt.strftime("%d.%m.%Y"), **columns)
    body = excel.to_csv(index=False, sep=";", lineterminator="\r\n")
    (tmp_path / "prices.csv").write_bytes(f"sep=;\r\n{body}".encode("cp1252"))
    read = read_panel(PanelSource(tmp_path / "prices.csv"))
    assert read == panel
    assert "cells: separated by semicolons" in read.notes


def test_points_between_thousands_of_one_column_are_read_by_the_mark_of_the_file(
    tmp_path: Path, frame: pd.DataFrame, panel: Panel
) -> None:
    prices = {name: [f"{value:.2f}".replace(".", ",") for value in frame[name]] for name in FIELDS[:4]}
    volume = [write_number(value, "1.234,50").split(",")[0] for value in frame["volume"]]
    read = read_panel(PanelSource(text_file(tmp_path, frame.assign(**prices, volume=volume), sep=";")))
    assert read == panel


@pytest.mark.parametrize("suffix", ["xls", "xlsx"])
def test_a_workbook_is_told_how_to_become_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (tmp_path / f"prices.{suffix}").write_bytes(b"PK")
    message = refused(tmp_path / f"prices.{suffix}")
    assert "by File, Save As, 'CSV UTF-8 (Comma delimited)'" in message
    assert ("where openpyxl is installed" in message) == (suffix == "xlsx")


@pytest.mark.parametrize("layout", ["tidy", "text", "wide"])
def test_the_first_sheet_of_a_workbook_is_read(tmp_path: Path, frame: pd.DataFrame, panel: Panel, layout: str) -> None:
    pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    path = tmp_path / "prices.xlsx"
    if layout == "wide":
        yahoo(frame).to_excel(path)
    else:
        texts = frame.assign(close=[write_number(value, "1.234,50") for value in frame["close"]])
        with pd.ExcelWriter(path) as book:
            (texts if layout == "text" else frame).to_excel(book, sheet_name="Prices", index=False, startrow=2)
            frame.head(1).to_excel(book, sheet_name="More")
    read = read_panel(PanelSource(path))
    assert read == panel
    assert ("sheet: 'Prices', the first of 2" in read.notes) == (layout != "wide")
    path.write_bytes(b"PK")
    assert "it cannot be read as a workbook" in refused(path)


@pytest.mark.parametrize("above", ["# source: vendor\n", "Prices;;\nas of 2020-01-01\n\n"])
def test_text_above_the_header_is_told(tmp_path: Path, frame: pd.DataFrame, above: str) -> None:
    path = text_file(tmp_path, frame)
    path.write_text(above + path.read_text())
    line = above.count("\n") + 1
    message = refused(path)
    assert f"row {line} looks like the header (date, symbol, open, high" in message
    assert f"Delete the rows above row {line}." in message


def test_a_table_without_a_header_is_told(tmp_path: Path, frame: pd.DataFrame) -> None:
    for given in (frame, yahoo(frame).reset_index()):
        given.to_csv(tmp_path / "prices.csv", index=False, header=False)
        assert "its first row is data (2013-01-02, " in refused(tmp_path / "prices.csv")


def test_a_yfinance_frame_whose_index_was_reset_is_read(tmp_path: Path, frame: pd.DataFrame, panel: Panel) -> None:
    yahoo(frame).reset_index().to_csv(tmp_path / "prices.csv")
    assert read_panel(PanelSource(tmp_path / "prices.csv")) == panel


def test_a_workbook_whose_prices_are_elsewhere_is_told(tmp_path: Path, frame: pd.DataFrame) -> None:
    pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    path = tmp_path / "prices.xlsx"
    with pd.ExcelWriter(path) as book:
        pd.DataFrame({"note": ["read me"]}).to_excel(book, sheet_name="Info", index=False)
        frame.to_excel(book, sheet_name="Prices", index=False)
    assert "its first sheet, 'Info', names no column such as date or close; it also has 'Prices'" in refused(path)
    with pd.ExcelWriter(path) as book:
        frame.to_excel(book, sheet_name="Prices", index=False, startrow=4)
        book.sheets["Prices"]["A1"] = "Report"
    assert "row 5 looks like the header (date, symbol" in refused(path)


def test_what_a_workbook_does_not_say_is_refused(tmp_path: Path, frame: pd.DataFrame, panel: Panel) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    path = tmp_path / "prices.xlsx"
    frame.to_excel(path, index=False)
    book = openpyxl.load_workbook(path)
    sheet = book.active
    book.create_sheet("old", 0).sheet_state = "hidden"
    book.save(path)
    read = read_panel(PanelSource(path))
    assert read == panel
    assert "sheet: 'Sheet1', the first of 1; not read, since hidden: 'old'" in read.notes
    day, close = sheet["A4"].value, sheet["F4"].value
    sheet["A4"] = f"{day:%d/%m/%Y}"
    book.save(path)
    assert f"1 with a date as text (row 3: '{day:%d/%m/%Y}')" in refused(path)
    sheet["A4"], sheet["F4"] = day, f"={close}"
    book.save(path)
    assert "1 formula without a stored value, first in F4 of 'Sheet1'" in refused(path)


GERMAN = dict(zip(FIELDS, ("Eröffnung", "Hoch", "Tief", "Schlusskurs", "Volumen"), strict=True)) | {"date": "Datum"}


def test_german_headers_are_fields_and_no_symbols(tmp_path: Path, frame: pd.DataFrame, panel: Panel) -> None:
    german = frame.rename(columns=GERMAN).assign(Datum=frame["date"].dt.strftime("%d.%m.%Y"))
    read = read_panel(PanelSource(text_file(tmp_path, german, sep=";")))
    assert read == panel
    assert "open: read from the column 'eröffnung'" in read.notes
    one = german[german["symbol"] == "AAA"].drop(columns="symbol")
    assert "put one such file for each symbol into a folder" in refused(text_file(tmp_path, one))


def test_symbols_that_are_called_as_fields_are_symbols(tmp_path: Path, frame: pd.DataFrame) -> None:
    named = frame.replace({"symbol": {"AAA": "LOW"}})
    for name in FIELDS:
        named.pivot(index="date", columns="symbol", values=name).to_csv(tmp_path / f"{name}.csv")
    assert "LOW" in read_panel(PanelSource(tmp_path)).symbols


OTHER_TABLES = {
    "members": "symbol,from,to\nAAA,2013-01-02,\n",
    "fundamentals": "symbol,known,eps\nAAA,2013-01-02,1.5\n",
    "actions": "date,symbol,dividend\n2013-01-02,AAA,1.5\n",
    "sectors": "symbol,sector\nAAA,tech\n",
}


@pytest.mark.parametrize("setting", OTHER_TABLES)
def test_another_table_given_as_prices_is_told_where_it_belongs(tmp_path: Path, setting: str) -> None:
    (tmp_path / "other.csv").write_text(OTHER_TABLES[setting], encoding="utf-8")
    with pytest.raises(PanelError, match="not of prices") as error:
        read_panel(PanelSource(tmp_path / "other.csv"))
    assert f"market: {{panel: PRICES, {setting}: other.csv}}" in error.value.hint


def test_closes_only_say_the_way_forward(tmp_path: Path, frame: pd.DataFrame) -> None:
    message = refused(text_file(tmp_path, frame[["date", "symbol", "close"]]))
    assert "the table has closes only" in message
    assert "alphaloom data fetch TICKERS --since YEAR" in message


def test_a_column_without_a_name_is_called_by_its_place(tmp_path: Path, frame: pd.DataFrame) -> None:
    path = text_file(tmp_path, frame.assign(**{"": 1.5})[["date", "", "symbol", *FIELDS]])
    assert "column 2: column ignored, it has no name; columns: {FIELD: column 2} gives it one" in (
        read_panel(PanelSource(path)).notes
    )
    assert (read_panel(PanelSource(path, reading=Reading(columns={"beta": "column 2"}))).fields["beta"][5] == 1.5).all()


def test_a_stacked_frame_of_yfinance_says_what_its_columns_are(
    tmp_path: Path, frame: pd.DataFrame, panel: Panel
) -> None:
    stacked = frame.assign(Dividends=0.0, **{"Adj Close": frame["close"] * 0.9})
    path = text_file(tmp_path, stacked)
    read = read_panel(PanelSource(path))
    assert read == panel
    assert [note for note in read.notes if note.startswith("adj_close: left out, it knows later dividends")]
    adjusted = read_panel(PanelSource(path, derive={"prices": "adj_close"}))
    np.testing.assert_allclose(adjusted.fields["close"], 0.9 * panel.fields["close"])


def test_points_that_may_be_decimals_or_thousands_are_asked_for(tmp_path: Path, frame: pd.DataFrame) -> None:
    texts = {name: [f"{value:,.0f}".replace(",", ".") for value in frame[name] // 1000 + 800] for name in FIELDS}
    path = text_file(tmp_path, frame.assign(**texts).assign(open="900", high="1.300", low="1", close="950"))
    message = refused(path)
    assert "may have thousands or decimals behind its point" in message
    assert len(message.splitlines()) == 3
    assert read_panel(PanelSource(path, reading=Reading(decimal="comma"))).fields["high"][5, 0] == 1300.0


@pytest.mark.parametrize("layout", ["tidy", "wide"])
def test_volumes_that_may_be_thousands_are_asked_for(tmp_path: Path, frame: pd.DataFrame, layout: str) -> None:
    given = frame.assign(volume=frame["volume"] // 1000 / 1000)
    path = tmp_path / "prices.csv"
    given.to_csv(path, index=False) if layout == "tidy" else given.pivot(index="date", columns="symbol").to_csv(path)
    message = refused(path)
    assert "volume: every cell is below 1,000 with three digits behind its point, such as " in message
    assert "if they are decimals, say decimal: point" in message
    assert np.nanmax(read_panel(PanelSource(path, reading=Reading(decimal="point"))).fields["volume"]) < 10


def test_the_decimal_point_of_numbers_in_text_is_noted(tmp_path: Path, frame: pd.DataFrame) -> None:
    texts = frame.assign(close=[f"{value:,.2f}" for value in frame["close"]])
    assert [note for note in read_panel(PanelSource(text_file(tmp_path, texts))).notes if "decimal point, as" in note]


def test_a_zone_is_asked_for_once(tmp_path: Path, frame: pd.DataFrame) -> None:
    message = refused(text_file(tmp_path, frame.assign(date=frame["date"].dt.strftime("%Y-%m-%d 16:00"))))
    assert message.count("time_zone") == 1
    assert "(and 81 more rows)" in message


def test_a_symbol_that_never_trades_is_noted(tmp_path: Path, frame: pd.DataFrame) -> None:
    idle = frame.assign(volume=frame["volume"].where(frame["symbol"] != "AAA", 0))
    notes = read_panel(PanelSource(text_file(tmp_path, idle))).notes
    assert [note for note in notes if note.startswith("volume: 0 on every day for 1 of 3 symbols: AAA; their size")]


def test_columns_are_mapped_by_the_settings(tmp_path: Path, frame: pd.DataFrame, panel: Panel) -> None:
    path = text_file(tmp_path, frame.rename(columns={"symbol": "Name", "date": "Datum", "close": "Kurs"}))
    assert "close: the column is missing; if it is 'kurs', say columns: {close: kurs}" in refused(path)
    read = read_panel(PanelSource(path, reading=Reading(columns={"symbol": "name", "date": "Datum", "close": "Kurs"})))
    assert read == panel
    assert "close: columns says it is 'Close', and the file has datum" in refused(path, columns={"close": "Close"})


def test_names_that_mean_the_same_are_read_and_noted(tmp_path: Path, frame: pd.DataFrame, panel: Panel) -> None:
    read = read_panel(PanelSource(text_file(tmp_path, frame.rename(columns={"symbol": "Ticker", "volume": "Vol."}))))
    assert read == panel
    assert "symbol: read from the column 'ticker'" in read.notes


def test_equal_duplicates_are_left_out_when_said(tmp_path: Path, frame: pd.DataFrame, panel: Panel) -> None:
    path = text_file(tmp_path, pd.concat([frame, frame.head(5)]))
    assert "5 rows equal to another one in every cell: say duplicates: drop_equal" in refused(path)
    read = read_panel(PanelSource(path, reading=Reading(duplicates="drop_equal")))
    assert read == panel
    assert "duplicates: 5 rows that repeat another one left out" in read.notes
    size = frame["volume"][0]
    near = text_file(tmp_path, pd.concat([frame, frame.head(1).assign(volume=size + 1)]))
    assert f"with volume {size + 1} here and {size} there" in refused(near)
    other = text_file(tmp_path, pd.concat([frame, frame.head(1).assign(close=frame["low"][0])]))
    assert "is there twice, first in row 1, with close " in refused(other, duplicates="drop_equal")
    assert "1 row with other figures than an earlier one of the same cell" in refused(other)


@pytest.mark.parametrize("kind", ["tidy", "wide"])
def test_a_symbol_without_volume_is_noted(tmp_path: Path, frame: pd.DataFrame, kind: str) -> None:
    without = frame.assign(volume=frame["volume"].where(frame["symbol"] != "AAA"))
    wide = without.pivot(index="date", columns="symbol")
    path = tmp_path / "prices.csv"
    without.to_csv(path, index=False) if kind == "tidy" else wide.to_csv(path)
    read = read_panel(PanelSource(path))
    assert "volume: no value for 1 of 3 symbols: AAA" in read.notes
    assert np.isnan(read.fields["volume"][:, read.symbols.index("AAA")]).all()


def test_a_column_that_is_there_on_some_days_only_is_a_field(tmp_path: Path, frame: pd.DataFrame) -> None:
    some = frame.assign(short=np.where(frame["date"] > "2013-01-20", 1.5, np.nan))
    read = read_panel(PanelSource(text_file(tmp_path, some)))
    assert np.isnan(read.fields["short"][0]).all()
    assert read.fields["short"][-1, 1] == 1.5


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%Y%m%d"])
def test_symbols_of_digits_keep_their_zeros(tmp_path: Path, frame: pd.DataFrame, form: str) -> None:
    coded = frame.assign(symbol=frame["symbol"].map(dict(zip(SYMBOLS, ("000001", "600519", "300750"), strict=True))))
    path = text_file(tmp_path, coded.assign(date=coded["date"].dt.strftime(form)))
    assert read_panel(PanelSource(path)).symbols == ("000001", "300750", "600519")


def test_membership_comes_from_a_column(tmp_path: Path, frame: pd.DataFrame, panel: Panel) -> None:
    late = frame.assign(in_universe=(frame["date"] > "2013-01-20") | (frame["symbol"] != "AAA"))
    read = read_panel(PanelSource(text_file(tmp_path, late)))
    place, day = read.symbols.index("AAA"), int(np.searchsorted(read.dates, np.datetime64("2013-01-20")))
    assert not read.universe[:day, place].any()
    np.testing.assert_array_equal(read.universe[day:], panel.universe[day:])
    assert "universe: in_universe" in read.notes
    assert "in_universe" not in read.fields
    odd = text_file(tmp_path, late.assign(in_universe="perhaps"))
    assert "'perhaps' is neither true nor false" in refused(odd)


def test_the_header_of_a_wide_table_with_a_column_twice_is_refused(tmp_path: Path, frame: pd.DataFrame) -> None:
    wide = frame.pivot(index="date", columns="symbol")
    wide.insert(0, ("close", "AAA"), 1.0, allow_duplicates=True)
    wide.to_csv(tmp_path / "prices.csv")
    assert "close AAA: the column is there twice" in refused(tmp_path / "prices.csv")


def test_an_error_in_a_wide_table_names_row_and_symbol(tmp_path: Path, frame: pd.DataFrame) -> None:
    wide = frame.pivot(index="date", columns="symbol")
    wide.loc["2013-01-04", ("open", "AAA")] = -1.0
    wide.to_csv(tmp_path / "prices.csv")
    assert "row 3, open: AAA: -1 is not a positive price" in refused(tmp_path / "prices.csv")


def test_a_zone_that_is_none_is_refused() -> None:
    with pytest.raises(AlphaloomError, match="'Mars' is no time zone; allowed: a name such as") as error:
        Reading(time_zone="Mars")
    assert "pydantic" not in str(error.value)
    with pytest.raises(AlphaloomError, match="dates: "):
        PanelSource(Path("prices.csv"), reading={"dates": "dmy"})  # type: ignore[arg-type]
    with pytest.raises(PanelError, match="a dict of its settings, not str"):
        PanelSource(Path("prices.csv"), reading="dmy")  # type: ignore[arg-type]


def test_a_path_is_a_source_and_a_dict_a_reading(tmp_path: Path, frame: pd.DataFrame, panel: Panel) -> None:
    path = text_file(tmp_path, frame.assign(date=frame["date"].dt.strftime("%d/%m/%y")))
    assert read_panel(PanelSource(path, reading={"dates": "day_first"})) == panel  # type: ignore[arg-type]
    assert read_panel(str(text_file(tmp_path, frame))) == panel
    with pytest.raises(PanelError, match=r"panel_from\(frame\)"):
        read_panel(frame)  # type: ignore[arg-type]


def test_text_with_codes_and_empty_cells_is_read(tmp_path: Path) -> None:
    words = pa.array(["AAA", None, "", "BBB"]).dictionary_encode()
    table = pa.table({"date": ["2015-01-02"] * 4, "symbol": words, **{name: [1.0] * 4 for name in FIELDS}})
    pa_parquet.write_table(table, tmp_path / "prices.parquet")
    assert "row 2, symbol: the cell is empty" in refused(tmp_path / "prices.parquet")
    assert "row 3, symbol: the cell is empty" in refused(tmp_path / "prices.parquet")


@pytest.mark.parametrize("pad", [40, 100])
def test_a_header_of_any_length_is_read(tmp_path: Path, pad: int) -> None:
    names = [f"N{number:04d}{'X' * pad}" for number in range(3000)]
    columns = pd.MultiIndex.from_product([FIELDS, names])
    wide = pd.DataFrame(7.0, index=DAYS[:4].rename("date"), columns=columns)
    wide.to_csv(tmp_path / "prices.csv")
    read = read_panel(PanelSource(tmp_path / "prices.csv"))
    assert (read.days, read.names) == (4, 3000)
    assert np.isfinite(read.fields["close"]).all()


@pytest.mark.parametrize(
    "time", ["99:99:99", "24:00", "10:60", "10:00:60", "10:00+99:99", "10:00-05:75", "10:00+14:30"]
)
def test_a_time_that_does_not_exist_is_refused(tmp_path: Path, frame: pd.DataFrame, time: str) -> None:
    path = text_file(tmp_path, frame.assign(date=frame["date"].dt.strftime(f"%Y-%m-%d {time}")))
    assert f"{time}' has no " in refused(path, time_zone="America/New_York")


@pytest.mark.parametrize("mark", ["€", '"', "x", "\x07"])
def test_a_stated_mark_that_splits_nothing_is_refused(tmp_path: Path, frame: pd.DataFrame, mark: str) -> None:
    path = text_file(tmp_path, frame)
    path.write_text(f"sep={mark}\n{path.read_text(encoding='utf-8')}", encoding="utf-8")
    assert "stands between cells: use , ; | or a tab" in refused(path)


def test_dates_of_too_many_digits_are_told(tmp_path: Path, frame: pd.DataFrame) -> None:
    path = text_file(tmp_path, frame.assign(date="20130102000000000000000"))
    assert "'20130102000000000000000' is not a date" in refused(path)
    assert "prices.csv date: '20130102000000000000000' is not a date" in refused(tmp_path)
    members, prices = tmp_path / "members.csv", tmp_path / "tidy.csv"
    members.write_text("symbol,from,to\nAAA,20130102000000000000000,\n", encoding="utf-8")
    frame.to_csv(prices, index=False)
    with pytest.raises(PanelError, match="is not a date"):
        read_panel(PanelSource(prices, members=members))
    frame.assign(date=np.uint64(2**63)).to_parquet(tmp_path / "prices.parquet")
    assert "date: the column holds uint64, not dates" in refused(tmp_path / "prices.parquet")


@pytest.mark.parametrize("form", ["unix", "excel"])
@pytest.mark.parametrize("count", [-99_999_999_999, 99_999_999_999])
def test_a_count_of_no_day_is_told(tmp_path: Path, frame: pd.DataFrame, form: str, count: int) -> None:
    path = text_file(tmp_path, frame.assign(date=count))
    assert f"date: {count} is no {form} number of a day from 1800 to 2200" in refused(path, dates=form)
