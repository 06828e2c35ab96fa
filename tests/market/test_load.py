"""A file becomes the panel it describes, or a message with everything that is wrong in it."""

from __future__ import annotations

import os
import pickle
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
import pytest

from alphaloom.market import Panel, PanelError, PanelSource, Reading, load_panel
from alphaloom.market.forms.days import SPREADSHEET

DATA = Path(os.environ.get("ALPHALOOM_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
HEADER = "date,symbol,open,high,low,close,volume"
GOOD = (
    "2015-01-02,AAA,10,11,9,10.5,100",
    "2015-01-02,BBB,20,21,19,20.5,200",
    "2015-01-05,AAA,10,12,9,11,100",
    "2015-01-05,BBB,20,21,19,,0",
)
MIXED_DATES = "4 dates with the year first (row 1: '2015-01-02') and 1 with the year last (row 5: '06/01/2015')"
KNOWN = "prices: adj_factor, prices: adj_close, vwap: typical, amount: close*volume"
ROWS = "Rows are counted from 1 below the header."
HAS_TIME = "has a time of day; a row is a whole day: if this is one, say time_zone: America/New_York (the exchange's)"
SOURCE = "Correct this at the source, then run again."
SETTINGS = (
    "The settings stand under market: read: in a campaign file; alphaloom data look FILE --read KEY=VALUE tries them."
)


def write(folder: Path, *rows: str, header: str = HEADER, name: str = "prices.csv") -> Path:
    path = folder / name
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def refused(path: Path, **source: object) -> list[str]:
    """Return the lines that a person sees, without the first and the hint."""
    with pytest.raises(PanelError) as error:
        load_panel(PanelSource(path, **source))  # type: ignore[arg-type]
    first, *lines, hint = str(error.value).splitlines()
    rows = any(finding.row for finding in error.value.findings)
    asked = SETTINGS in hint
    assert hint == " ".join([SETTINGS] * asked + [ROWS] * rows + [SOURCE] * (not asked))
    assert "drop" not in hint
    sectors = f" with {source['sectors']}" if source.get("sectors") else ""
    assert first.startswith(f"{path}{sectors} cannot be used: ")
    assert first.endswith(", and nothing was done with it.")
    assert [f"  {finding}" for finding in error.value.findings] == lines
    return [line.strip() for line in lines]


def test_a_good_file_becomes_a_panel(tmp_path: Path) -> None:
    panel = load_panel(PanelSource(write(tmp_path, *GOOD)))
    assert panel.symbols == ("AAA", "BBB")
    assert panel.dates.astype(str).tolist() == ["2015-01-02", "2015-01-05"]
    np.testing.assert_array_equal(panel.fields["close"], [[10.5, 20.5], [11.0, np.nan]])
    assert panel.universe.tolist() == [[True, True], [True, False]]
    assert panel.fields["returns"][1, 0] == pytest.approx(11 / 10.5 - 1)


def test_a_file_without_its_columns_is_not_told_to_drop_rows(tmp_path: Path) -> None:
    with pytest.raises(PanelError) as error:
        load_panel(PanelSource(write(tmp_path, "2015-01-02,AAA,10.5", header="date,symbol,close")))
    assert error.value.hint == SOURCE
    assert "volume" in str(error.value)


def test_parquet_and_csv_give_the_same_panel_whatever_the_types(tmp_path: Path) -> None:
    path = write(tmp_path, *GOOD)
    table = pa_csv.read_csv(path)
    other = table.set_column(1, "Symbol", table["symbol"].dictionary_encode())
    other = other.set_column(0, "DATE", other["date"].cast(pa.timestamp("ns"))).append_column(
        "note", pa.array(["x"] * 4)
    )
    pa_parquet.write_table(other, tmp_path / "prices.parquet")
    panel = load_panel(PanelSource(tmp_path / "prices.parquet"))
    assert panel == load_panel(PanelSource(path))
    assert "note: column ignored, it holds string, not numbers" in panel.notes


def test_rows_may_come_by_symbol_or_by_date(tmp_path: Path) -> None:
    by_symbol = write(tmp_path, *(GOOD[i] for i in (0, 2, 1, 3)), name="by_symbol.csv")
    assert load_panel(PanelSource(by_symbol)) == load_panel(PanelSource(write(tmp_path, *GOOD)))


def test_extra_numeric_columns_become_fields_and_others_are_named(tmp_path: Path) -> None:
    rows = [f"{row},{index}.5,x,1,{index}" for index, row in enumerate(GOOD)]
    panel = load_panel(PanelSource(write(tmp_path, *rows, header=f"{HEADER},eps,desk,returns,shares out")))
    assert panel.fields["eps"].tolist() == [[0.5, 1.5], [2.5, 3.5]]
    assert set(panel.fields) == {"open", "high", "low", "close", "volume", "returns", "eps"}
    assert panel.notes[:3] == (
        "desk: column ignored, it holds text",
        "returns: column ignored, returns are computed from close",
        "shares out: column ignored, a field's name is letters, digits and underscores",
    )


CONTRADICTION = "with other figures than an earlier one of the same cell: only the source says which is right"
BAD_ROWS = {
    "a duplicate": (
        ["2015-01-05,AAA,1,1,1,1,1"],
        [
            "row 5, date, symbol: (2015-01-05, AAA) is there twice, first in row 3, with open 1 here and 10 there",
            f"date, symbol: 1 row {CONTRADICTION}",
        ],
    ),
    "an equal duplicate": (
        [GOOD[2]],
        [
            "row 5, date, symbol: (2015-01-05, AAA) is there twice, first in row 3",
            "date, symbol: 1 row equal to another one in every cell: say duplicates: drop_equal",
        ],
    ),
    "a negative price": (["2015-01-06,AAA,-1,1,1,1,1"], ["row 5, open: -1 is not a positive price"]),
    "a zero price": (["2015-01-06,AAA,1,1,1,0,1"], ["row 5, close: 0 is not a positive price"]),
    "a negative volume": (["2015-01-06,AAA,1,1,1,1,-7"], ["row 5, volume: -7 is below zero"]),
    "high below low": (["2015-01-06,AAA,1,1,2.5,1,1"], ["row 5, high: 1 is below the low, 2.5"]),
    "a zoned date": (
        ["2015-01-06T00:00:00Z,AAA,1,1,1,1,1"],
        ["row 5, date: '2015-01-06T00:00:00Z' is zoned: say the exchange's zone, such as time_zone: America/New_York"],
    ),
    "a time of day": (
        ["2015-01-06 16:00,AAA,1,1,1,1,1"],
        [f"row 5, date: '2015-01-06 16:00' {HAS_TIME}"],
    ),
    "an ambiguous date": (
        ["06/01/2015,AAA,1,1,1,1,1"],
        [
            f"date: {MIXED_DATES}: {SPREADSHEET}",
        ],
    ),
    "no date at all": (["soon,AAA,1,1,1,1,1"], ["row 5, date: 'soon' is not a date: write it as 2015-12-31"]),
    "no such day": (["2015-02-30,AAA,1,1,1,1,1"], ["row 5, date: '2015-02-30' is not a day of the calendar"]),
    "no date": ([",AAA,1,1,1,1,1"], ["row 5, date: the cell is empty"]),
    "no symbol": (["2015-01-06,,1,1,1,1,1"], ["row 5, symbol: the cell is empty"]),
    "a symbol that is a missing value": (
        ["2015-01-06,NaN,1,1,1,1,1"],
        ["row 5, symbol: 'NaN' is a missing value written as text, not a symbol"],
    ),
    "white space": (["2015-01-06, AAA,1,1,1,1,1"], ["row 5, symbol: ' AAA' has white space around it"]),
    "a wrong type": (["2015-01-06,AAA,ten,1,1,1,1"], ["row 5, open: 'ten' is not a number"]),
    "an infinity": (["2015-01-06,AAA,inf,1,1,1,1"], ["row 5, open: 'inf' is not a number"]),
    "a short row": (["2015-01-06,AAA,1"], ["row 5: 3 cells where the header has 7"]),
    "a row after a short one": (
        ["2015-01-06,AAA,1", "2015-01-07,AAA,1,1,1,0,1"],
        ["row 5: 3 cells where the header has 7", "row 6, close: 0 is not a positive price"],
    ),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_a_bad_row_is_named_with_its_column_and_value(tmp_path: Path, case: str) -> None:
    rows, lines = BAD_ROWS[case]
    assert refused(write(tmp_path, *GOOD, *rows)) == lines


@pytest.mark.parametrize("text", ["nan", "NaN", "null", "-", "N/A"])
def test_a_missing_value_written_as_text_is_named(tmp_path: Path, text: str) -> None:
    lines = refused(write(tmp_path, *GOOD, f"2015-01-06,AAA,1,1,1,{text},1"))
    what = "it is text, not a number: leave the cell empty where a value is missing, or say"
    assert lines == [f"row 5, close: {text!r}: {what} missing: [{text}]"]
    panel = load_panel(PanelSource(tmp_path / "prices.csv", reading=Reading(missing=(text,))))
    assert np.isnan(panel.fields["close"][-1, 0])
    assert f"close: 1 cells that say {text} are empty" in panel.notes


def test_every_finding_is_said_at_once(tmp_path: Path) -> None:
    rows = ["2015-01-05,AAA,-1,1,2,1,1", "2015-01-06T00:00:00+01:00,BBB,1,1,1,x,1", "2015-01-01,CCC,1,1,1,1,1,1"]
    path = write(tmp_path, *GOOD, *rows)
    sectors = write(tmp_path, "AAA,Tech", "AAA,Oil", header="symbol,sector", name="sectors.csv")
    assert len(refused(path, sectors=sectors, as_of=date(2015, 1, 2))) == 11


def test_many_rows_of_one_kind_are_one_finding_with_three_examples(tmp_path: Path) -> None:
    rows = [f"2016-01-{day:02d},{name},0,1,1,1,1" for day in range(1, 31) for name in ("AAA", "BBB")]
    zero = "0 is not a positive price"
    assert refused(write(tmp_path, *rows)) == [
        f"row 1, open: {zero}; row 2: {zero}; row 3: {zero}; and 57 more rows like these, the last is row 60"
    ]
    with pytest.raises(PanelError, match="60 findings, and nothing was done with it"):
        load_panel(PanelSource(tmp_path / "prices.csv"))


def test_many_broken_rows_are_cut_and_counted_too(tmp_path: Path) -> None:
    short = "3 cells where the header has 7"
    assert refused(write(tmp_path, *GOOD, *["2015-01-06,AAA,1"] * 50)) == [
        f"row 5: {short}; row 6: {short}; row 7: {short}; and 47 more rows like these, the last is row 54"
    ]


def test_the_order_of_rows_means_nothing(tmp_path: Path) -> None:
    newest_first = write(tmp_path, *reversed(GOOD), name="reversed.csv")
    assert load_panel(PanelSource(newest_first)) == load_panel(PanelSource(write(tmp_path, *GOOD)))


def test_a_column_that_is_there_twice_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, *(f"{row},1" for row in GOOD), header=f"{HEADER},Close")
    assert refused(path)[0] == "close: the column is there twice"


def test_dates_after_the_as_of_date_are_named(tmp_path: Path) -> None:
    lines = refused(write(tmp_path, *GOOD), as_of=date(2015, 1, 2))
    assert lines == [f"row {row}, date: 2015-01-05 is after the as-of date, 2015-01-02" for row in (3, 4)]
    assert load_panel(PanelSource(tmp_path / "prices.csv", as_of=date(2015, 1, 5))).days == 2


def test_missing_columns_are_named_with_what_was_probably_meant(tmp_path: Path) -> None:
    path = write(tmp_path, "2015-01-02,AAA,1,1,1", header="date,code,open,low,adj_close")
    assert refused(path) == [
        "symbol: the column is missing; if it is 'code', say columns: {symbol: code}",
        "high: the column is missing",
        "close: the column is missing; if it is 'adj_close', say columns: {close: adj_close}",
        "volume: the column is missing",
    ]


def test_one_symbol_is_no_panel(tmp_path: Path) -> None:
    what = "'AAA' is the only symbol; a panel compares names on the same day and needs at least two: put"
    assert refused(write(tmp_path, GOOD[0], GOOD[2]))[0].startswith(f"symbol: {what}")


def test_a_file_without_rows_is_named(tmp_path: Path) -> None:
    assert refused(write(tmp_path)) == ["the file has no rows"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("prices.csv", b"", "{path}: the file is empty."),
        ("prices.csv", b"date,symbol\n" + b"a" * 200_000 + b"\xff,A\n", "{path}: it cannot be read as CSV: "),
        ("prices.parquet", b"nonsense", "{path}: it is not a Parquet file."),
        ("prices.parquet", b"PAR1", "{path}: it cannot be read as Parquet: "),
        ("prices.csv", b"PAR1\x00\x15", "{path}: it is a Parquet file, not text with a cell for each value."),
        ("prices.csv", b"\x1f\x8b\x08", "{path}: it is compressed, not text"),
        ("prices.csv", b"\n<!DOCTYPE html>", "{path}: it is a web page, not text"),
        ("prices.csv", bytes(range(256)), "{path}: it is not text: it has bytes of no character."),
        ("prices.xls", b"", "{path}: a panel is a Parquet or a CSV file; this is a workbook."),
        ("prices.docx", b"", "{path}: a panel is a Parquet or a CSV file, not '.docx'."),
        ("prices", b"", "{path}: a panel is a Parquet or a CSV file; this name has no extension."),
        ("absent.csv", None, "{path}: there is no such file."),
    ],
)
def test_an_unreadable_file_is_named(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(PanelError) as error:
        load_panel(PanelSource(path))
    assert str(error.value).startswith(message.format(path=path))
    assert len(error.value.findings) == 1


def test_a_folder_of_sectors_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "sectors.csv").mkdir()
    with pytest.raises(PanelError, match="this is a folder"):
        load_panel(PanelSource(write(tmp_path, *GOOD), sectors=tmp_path / "sectors.csv"))


def parquet(folder: Path, **columns: pa.Array) -> Path:
    good: dict[str, pa.Array] = {
        "date": pa.array([date(2015, 1, 2)] * 2),
        "symbol": pa.array(["AAA", "BBB"]),
        **{name: pa.array([1.0, 2.0]) for name in ("open", "high", "low", "close", "volume")},
    }
    pa_parquet.write_table(pa.table({**good, **columns}), folder / "prices.parquet")
    return folder / "prices.parquet"


def test_wrong_column_types_are_named(tmp_path: Path) -> None:
    zoned = pa.array([3_600_000_000_000] * 2, pa.timestamp("ns", "UTC"))
    lines = refused(parquet(tmp_path, date=zoned, symbol=pa.array([1, 2]), open=pa.array(["1", "NaN"]), low=zoned))
    zone = "is zoned (UTC), as is the whole column: say the exchange's zone, such as time_zone: America/New_York"
    missing = "leave the cell empty where a value is missing, or say missing: [NaN]"
    assert lines[:4] == [
        f"date: 1970-01-01 01:00:00+00:00 {zone}",
        "symbol: the column holds int64, not text (leading zeros of a code would be lost)",
        "low: the column holds timestamp[ns, tz=UTC], not numbers",
        f"row 2, open: 'NaN': it is text, not a number: {missing}",
    ]
    assert refused(parquet(tmp_path, date=pa.array([1.5, 2.5]))) == ["date: the column holds double, not dates"]
    empty = pa.array([None, None], pa.float64())
    assert refused(parquet(tmp_path, close=empty)) == ["close: the column holds no number at all"]
    late = pa.array([0, 3_600_000], pa.timestamp("ms"))
    assert refused(parquet(tmp_path, date=late)) == [f"row 2, date: 1970-01-01 01:00:00 {HAS_TIME}"]
    wild = pa.array([1.0, np.inf])
    assert refused(parquet(tmp_path, volume=wild)) == ["row 2, volume: inf is not finite"]


def test_sectors_become_groups(tmp_path: Path) -> None:
    rows = ["BBB,Oil,Wells", "AAA,Tech,", "ZZZ,Tech,Chips"]
    sectors = write(tmp_path, *rows, header="symbol,sector,sub_industry", name="sectors.csv")
    panel = load_panel(PanelSource(write(tmp_path, *GOOD), sectors=sectors))
    assert [panel.group_labels["sector"][code] for code in panel.groups["sector"]] == ["Tech", "Oil"]
    assert panel.groups["industry"].tolist() == [-1, 0]
    assert "industry: 1 of 2 names have none" in panel.notes


def test_a_symbol_without_a_row_has_a_sector_of_its_own_and_is_told_once(tmp_path: Path) -> None:
    sectors = write(tmp_path, "AAA,Tech,Chips", header="symbol,sector,industry", name="sectors.csv")
    panel = load_panel(PanelSource(write(tmp_path, *GOOD), sectors=sectors))
    for name, own in (("sector", "Tech"), ("industry", "Chips")):
        assert [panel.group_labels[name][code] for code in panel.groups[name]] == [own, "unknown"]
    told = [note for note in panel.notes if "sectors.csv" in note]
    assert told == ["sectors.csv: no row for 1 of 2 symbols (50.0 %): they form a group of their own, 'unknown'"]


def test_a_sectors_file_of_other_symbols_is_refused(tmp_path: Path) -> None:
    sectors = write(tmp_path, "AAA.US,Tech", "BBB.US,Oil", header="symbol,sector", name="sectors.csv")
    assert refused(write(tmp_path, *GOOD), sectors=sectors) == [
        "sectors.csv symbol: none of the prices' 2 symbols has a row here, such as 'AAA'; it begins with 'AAA.US'"
    ]


def test_bad_sectors_are_named_with_the_row_of_either_file(tmp_path: Path) -> None:
    sectors = write(tmp_path, "AAA,Tech", "AAA,Oil", header="symbol,sector", name="sectors.csv")
    assert refused(write(tmp_path, *GOOD), sectors=sectors) == [
        "row 2, sectors.csv symbol: 'AAA' is there twice",
    ]
    nameless = write(tmp_path, "AAA,Tech", header="symbol,branch", name="sectors.csv")
    assert "sectors.csv sector: the column is missing; if it is 'branch', say columns: {sector: branch}" in refused(
        tmp_path / "prices.csv", sectors=nameless
    )
    with pytest.raises(PanelError, match=r"gone\.csv: there is no such file"):
        load_panel(PanelSource(tmp_path / "prices.csv", sectors=tmp_path / "gone.csv"))


def test_derived_fields_are_computed_and_stamped(tmp_path: Path) -> None:
    derive = {"vwap": "typical", "amount": "close * volume"}
    panel = load_panel(PanelSource(write(tmp_path, *GOOD), derive=derive))
    assert panel.fields["vwap"][0, 0] == pytest.approx((11 + 9 + 10.5) / 3)
    assert panel.fields["amount"][0, 1] == 20.5 * 200
    assert panel.notes[:2] == ("vwap: typical", "amount: close*volume")


def test_quoted_prices_can_be_adjusted_by_the_factor_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, *(f"{row},0.5" for row in GOOD), header=f"{HEADER},adj_factor")
    panel = load_panel(PanelSource(path, derive={"prices": "adj_factor"}))
    assert (panel.fields["close"][0, 0], panel.fields["close_raw"][0, 0]) == (5.25, 10.5)
    assert panel.stamps == ("prices: adj_factor",)
    assert panel.notes[1].startswith(
        "back-adjusted levels suspected: close differs from close_raw: it was not the quoted"
    )
    assert "a level of prices adjusted backwards (close, close*volume, close/close_raw) knows later" in panel.notes[1]
    assert len(panel.notes) == 2
    assert "adj_factor" not in panel.fields


def test_an_amount_is_of_the_quoted_close(tmp_path: Path) -> None:
    path = write(tmp_path, *(f"{row},0.5" for row in GOOD), header=f"{HEADER},adj_factor")
    panel = load_panel(PanelSource(path, derive={"amount": "close*volume", "prices": "adj_factor"}))
    assert panel.fields["amount"][0, 1] == 20.5 * 200
    assert panel.stamps == ("prices: adj_factor", "amount: close_raw*volume")


def test_prices_are_taken_for_adjusted_backwards_unless_every_close_is_the_quoted_one(tmp_path: Path) -> None:
    unknown = load_panel(PanelSource(write(tmp_path, *GOOD)))
    assert unknown.back_adjusted
    assert unknown.rows(0, 1).back_adjusted
    assert pickle.loads(pickle.dumps(unknown)).back_adjusted
    assert unknown.digest == replace(unknown, back_adjusted=False).digest
    same = [f"{row},{row.split(',')[5]}" for row in GOOD]
    quoted = load_panel(PanelSource(write(tmp_path, *same, header=f"{HEADER},close_raw")))
    assert not quoted.back_adjusted
    assert not [note for note in quoted.notes if "close_raw" in note]
    differs = load_panel(PanelSource(write(tmp_path, f"{GOOD[0]},1", *same[1:], header=f"{HEADER},close_raw")))
    assert differs.back_adjusted
    assert [note for note in differs.notes if "close differs from close_raw" in note]


def test_a_stamp_is_told_apart_from_what_the_loader_saw(tmp_path: Path) -> None:
    rows = [f"{row},x" for row in GOOD]
    panel = load_panel(PanelSource(write(tmp_path, *rows, header=f"{HEADER},amount"), derive={"vwap": "typical"}))
    assert "amount: column ignored, it holds text" in panel.notes
    assert panel.stamps == ("vwap: typical",)


@pytest.mark.parametrize(
    ("derive", "message"),
    [
        (
            {"vwap": "mean"},
            f"derive.vwap: this derivation is not known (got vwap: mean); allowed: {KNOWN}",
        ),
        ({"prices": "adj_factor"}, "derive.prices: the file has no column 'adj_factor'\nLeave out the derivation."),
        ({"amount": "close*volume"}, "derive.amount: the file has a column 'amount'\nLeave out the derivation."),
    ],
)
def test_an_impossible_derivation_is_refused(tmp_path: Path, derive: dict[str, str], message: str) -> None:
    path = write(tmp_path, *(f"{row},1" for row in GOOD), header=f"{HEADER},amount")
    with pytest.raises(PanelError) as error:
        load_panel(PanelSource(path, derive=derive))
    assert str(error.value) == message


def long_panel(folder: Path, days: int, tweak: dict[tuple[int, str], float], vanishes: int = 10_000) -> Panel:
    dates = np.arange("2015-01-01", "2016-12-31", dtype="datetime64[D]")[:days]
    rows = []
    for day, label in enumerate(dates):
        for name in ("AAA", "BBB"):
            usual = 10 + (day * (7 if name == "AAA" else 5) % 11) / 10
            close = tweak.get((day, name), usual)
            if name == "AAA" or day < vanishes:
                rows.append(f"{label},{name},10.25,{max(close, 11.5)},9,{close},{100 + day}")
    return load_panel(PanelSource(write(folder, *rows)))


def test_what_looks_wrong_and_may_be_right_is_noted_and_not_changed(tmp_path: Path) -> None:
    panel = long_panel(tmp_path, 260, {(9, "AAA"): 8.0})
    told = [note.partition(" suspected: ")[0] for note in panel.notes]
    assert told[0] == "odd bars"
    assert "1 with open or close outside low to high: AAA 2015-01-10; " in panel.notes[0]
    assert panel.fields["close"][9, 0] == 8.0


def test_a_panel_whose_names_vanish_is_not_suspected(tmp_path: Path) -> None:
    assert not [note for note in long_panel(tmp_path, 260, {}, vanishes=200).notes if "survivorship" in note]


def test_real_prices_load(tmp_path: Path) -> None:
    path = DATA / "us_sp500_2008_2017.parquet"
    if not path.exists():
        pytest.skip("the S&P 500 sample is not on this machine; set ALPHALOOM_DATA to its folder")
    panel = load_panel(PanelSource(path, sectors=DATA / "us_sp500_sectors.parquet"))
    assert (panel.days, panel.names, int(panel.universe.sum())) == (2518, 494, 1_168_211)
    assert len(panel.group_labels["sector"]) == 11
    assert panel.notes[1].startswith("survivorship suspected: all 494 names")


def test_a_real_panel_with_names_that_vanish_loads(tmp_path: Path) -> None:
    path = DATA / "us_crawl_top1500_2015_2017.parquet"
    if not path.exists():
        pytest.skip("the crawled sample is not on this machine; set ALPHALOOM_DATA to its folder")
    panel = load_panel(PanelSource(path, derive={"prices": "adj_factor"}))
    assert (panel.days, panel.names, int(panel.universe.sum())) == (513, 1500, 725_789)
    assert not [note for note in panel.notes if "survivorship" in note]
    assert [note for note in panel.notes if note.startswith("bad ticks suspected") and "MS 2017-02-14 (2 days)" in note]
