"""Figures enter a panel as they were known, never earlier, and a later file changes no earlier day."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from alphaloom.factors import Engine, parse
from alphaloom.market import Panel, PanelError, PanelSource, Reading, load_panel, read_panel, take_panel_as_of

from .test_forms import tidy

STATED = """symbol,known,period,eps,book
AAA,2013-01-04,2012-09-30,1.0,10
AAA,2013-01-10,2012-12-31,2.0,
AAA,2013-01-15,2012-09-30,1.5,11
AAA,2013-01-21,2012-12-31,2.5,12
BRK.B,2013-01-12,2012-12-31,7.0,70
ZZZ,2013-01-12,2012-12-31,9.0,90
BRK.B,2014-01-12,2013-12-31,8.0,80
"""


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    tidy().to_csv(tmp_path / "prices.csv", index=False)
    return tmp_path / "prices.csv"


def stated(folder: Path, text: str = STATED) -> Path:
    (folder / "fundamentals.csv").write_text(text, encoding="utf-8")
    return folder / "fundamentals.csv"


def value(panel: Panel, field: str, symbol: str, day: str) -> float:
    row = int(np.searchsorted(panel.dates, np.datetime64(day)))
    return float(panel.fields[field][row, panel.symbols.index(symbol)])


def refused(prices: Path, file: Path, **reading: object) -> str:
    with pytest.raises(PanelError) as error:
        read_panel(PanelSource(prices, fundamentals=file, reading=Reading(**reading)))  # type: ignore[arg-type]
    return str(error.value)


def test_figures_enter_on_the_day_on_which_they_are_known(tmp_path: Path, prices: Path) -> None:
    panel = read_panel(PanelSource(prices, fundamentals=stated(tmp_path)))
    assert np.isnan(value(panel, "eps", "AAA", "2013-01-03"))
    assert value(panel, "eps", "AAA", "2013-01-04") == 1.0
    assert value(panel, "eps", "AAA", "2013-01-09") == 1.0
    assert value(panel, "eps", "AAA", "2013-01-10") == 2.0
    assert value(panel, "eps", "AAA", "2013-01-21") == 2.5
    assert value(panel, "eps", "BRK.B", "2013-01-11") != 7.0
    assert value(panel, "eps", "BRK.B", "2013-01-14") == 7.0  # known on a Saturday
    assert "fundamentals: known" in panel.stamps
    assert "fundamentals.csv: eps, book as known each day" in panel.notes


def test_a_late_statement_of_an_older_period_changes_nothing(tmp_path: Path, prices: Path) -> None:
    panel = read_panel(PanelSource(prices, fundamentals=stated(tmp_path)))
    assert value(panel, "eps", "AAA", "2013-01-15") == 2.0
    assert value(panel, "book", "AAA", "2013-01-10") == 10  # an empty cell states nothing
    assert value(panel, "book", "AAA", "2013-01-15") == 11


def test_a_value_stands_only_in_cells_with_a_price(tmp_path: Path, prices: Path) -> None:
    panel = read_panel(PanelSource(prices, fundamentals=stated(tmp_path, "symbol,known,eps\nBRK.B,2012-01-01,3\n")))
    place = panel.symbols.index("BRK.B")
    np.testing.assert_array_equal(~np.isnan(panel.fields["eps"][:, place]), ~np.isnan(panel.fields["close"][:, place]))


def test_truncating_the_files_at_any_day_changes_no_value_until_it(tmp_path: Path, prices: Path) -> None:
    whole = read_panel(PanelSource(prices, fundamentals=stated(tmp_path)))
    rows = pd.read_csv(prices, parse_dates=["date"])
    known = pd.read_csv(tmp_path / "fundamentals.csv", parse_dates=["known"])
    for stop, day in enumerate(whole.dates[3:], 4):
        rows[rows["date"] <= day].to_csv(tmp_path / "cut.csv", index=False)
        known[known["known"] <= day].to_csv(tmp_path / "cut_known.csv", index=False)
        part = read_panel(PanelSource(tmp_path / "cut.csv", fundamentals=tmp_path / "cut_known.csv"))
        places = [whole.symbols.index(symbol) for symbol in part.symbols]
        for name in part.fields:
            np.testing.assert_array_equal(part.fields[name], whole.fields[name][:stop, places])
        assert take_panel_as_of(whole, day.astype(object)).fields["eps"][-1, places[0]] == pytest.approx(
            part.fields["eps"][-1, 0], nan_ok=True
        )


@pytest.mark.parametrize("time", [" 17:30", "T17:30:00"])
def test_a_time_of_day_is_known_from_the_next_day_on(tmp_path: Path, prices: Path, time: str) -> None:
    file = stated(tmp_path, f"symbol,known,eps\nAAA,2013-01-08{time},3\nAAA,2013-01-15 00:00:00,4\n")
    panel = read_panel(PanelSource(prices, fundamentals=file))
    assert np.isnan(value(panel, "eps", "AAA", "2013-01-08"))
    assert value(panel, "eps", "AAA", "2013-01-09") == 3
    assert value(panel, "eps", "AAA", "2013-01-15") == 4


def test_an_instant_with_a_zone_needs_the_exchange(tmp_path: Path, prices: Path) -> None:
    file = stated(tmp_path, "symbol,known,eps\nAAA,2013-01-09T02:30:00Z,3\n")
    assert "time_zone: America/New_York" in refused(prices, file)
    panel = read_panel(PanelSource(prices, fundamentals=file, reading=Reading(time_zone="America/New_York")))
    assert np.isnan(value(panel, "eps", "AAA", "2013-01-08"))  # filed at 21:30 in New York
    assert value(panel, "eps", "AAA", "2013-01-09") == 3


def test_a_price_file_may_say_since_when_its_figures_are_known(tmp_path: Path) -> None:
    frame = tidy()
    frame["eps"] = np.arange(len(frame), dtype=float)
    frame["known"] = frame["date"] + pd.Timedelta(days=7)
    frame.to_csv(tmp_path / "prices.csv", index=False)
    panel = read_panel(PanelSource(tmp_path / "prices.csv"))
    first = frame[frame["symbol"] == "AAA"].iloc[0]
    assert np.isnan(value(panel, "eps", "AAA", "2013-01-08"))
    assert value(panel, "eps", "AAA", "2013-01-09") == first["eps"]
    assert value(panel, "close", "AAA", "2013-01-02") == first["close"]
    assert "known" not in panel.fields


def test_formulas_may_use_them(tmp_path: Path, prices: Path) -> None:
    panel = read_panel(PanelSource(prices, fundamentals=stated(tmp_path)))
    values = Engine(panel).evaluate([parse("rank(eps / close)", fields=[*panel.fields])])[0]
    assert np.isfinite(values[-1, [panel.symbols.index("AAA"), panel.symbols.index("BRK.B")]]).all()


MISTAKES = {
    "symbol,known,eps\n": "the file has no rows",
    "symbol,known,eps\nZZZ,2013-01-04,1\n": "symbol: none of the prices' 3 symbols has a row here, such as '0005.HK'; "
    "it begins with 'ZZZ'",
    "symbol,eps\nAAA,1\n": "known: the column is missing",
    "symbol,period,eps\nAAA,2012-12-31,1\n": "known: the column is missing: it holds the day on which each figure was "
    "published, which is weeks after the last day of its period",
    "symbol,sector,filed,eps\nAAA,Oil,2013-01-04,1\n": "if it is 'filed', say columns: {known: filed}",
    "symbol,known,close\nAAA,2013-01-04,1\n": "close: the panel has this field already: rename the column",
    "symbol,known,P/E\nAAA,2013-01-04,1\n": "p/e: a field's name is a to z, 0 to 9 and _: rename the column",
    "symbol,known,eps\nAAA,soon,1\n": "row 1, known: 'soon' is not a date",
    "symbol,known,eps\nAAA,,1\n": "row 1, known: the cell is empty",
    "symbol,known,period,eps\nAAA,2013-01-04,2013-03-31,1\n": "since 2013-01-04, before the end of its "
    "period, 2013-03-31",
    "symbol,known,eps\nAAA,2013-01-04,1\nAAA,2013-01-04,\nAAA,2013-01-04,2\n": "row 3, eps: 2 of AAA counts from "
    "2013-01-04 on, and so does 1 of row 1: keep one",
    "symbol,known,desk\nAAA,2013-01-04,x\n": "the file has no column of figures",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, prices: Path, text: str) -> None:
    assert MISTAKES[text] in refused(prices, stated(tmp_path, text))


@pytest.mark.parametrize("columns", ["known,period", "known"])
def test_figures_that_are_known_when_their_period_ends_are_suspected(
    tmp_path: Path, prices: Path, columns: str
) -> None:
    for lag, suspected in ((0, True), (40, False)):
        ends = pd.date_range("2012-03-31", periods=4, freq="QE").strftime("%Y-%m-%d")
        known = (pd.to_datetime(ends) + pd.Timedelta(days=lag)).strftime("%Y-%m-%d")
        rows = [f"AAA,{','.join(pair[: columns.count(',') + 1])},1.5" for pair in zip(known, ends, strict=True)]
        panel = load_panel(
            PanelSource(prices, fundamentals=stated(tmp_path, "\n".join([f"symbol,{columns},eps", *rows])))
        )
        assert any(note.startswith("early figures suspected") for note in panel.notes) == suspected
    if columns == "known":
        monthly = "".join(f"AAA,2012-{month:02d}-{day},1.5\n" for month, day in ((6, 30), (7, 31), (8, 31), (9, 30)))
        panel = load_panel(PanelSource(prices, fundamentals=stated(tmp_path, f"symbol,known,eps\n{monthly}")))
        assert not any("early figures" in note for note in panel.notes)


def test_the_mapping_of_columns_holds_for_this_file_too(tmp_path: Path, prices: Path) -> None:
    file = stated(tmp_path, "Ticker,filed,eps\nAAA,2013-01-04,1\n")
    panel = read_panel(PanelSource(prices, fundamentals=file, reading=Reading(columns={"known": "filed"})))
    assert value(panel, "eps", "AAA", "2013-01-04") == 1


NEW_YORK = Reading(time_zone="America/New_York")
INSTANTS = ["2013-01-09T00:00:00Z", "2013-01-08T22:30:00+00:00", "2013-01-08 17:30"]


@pytest.mark.parametrize("kind", ["csv", "parquet", "unix"])
@pytest.mark.parametrize("instant", INSTANTS)
def test_an_evening_in_the_exchange_counts_from_the_next_day_on(
    tmp_path: Path, prices: Path, kind: str, instant: str
) -> None:
    zoned = pd.Timestamp(instant)
    zoned = zoned if zoned.tz else zoned.tz_localize("America/New_York")
    file, reading = tmp_path / f"known.{'csv' if kind == 'csv' else 'parquet'}", NEW_YORK
    if kind == "csv":
        file.write_text(f"symbol,known,eps\nAAA,{instant},3\n", encoding="utf-8")
    elif kind == "parquet":
        pd.DataFrame({"symbol": ["AAA"], "known": [zoned.tz_convert("UTC")], "eps": [3.0]}).to_parquet(file)
    else:
        reading = Reading(time_zone="America/New_York", dates="unix")
        pd.DataFrame({"symbol": ["AAA"], "known": [int(zoned.timestamp())], "eps": [3.0]}).to_parquet(file)
    panel = read_panel(PanelSource(prices, fundamentals=file, reading=reading))
    assert np.isnan(value(panel, "eps", "AAA", "2013-01-08"))
    assert value(panel, "eps", "AAA", "2013-01-09") == 3


def test_midnight_in_the_exchange_counts_that_day(tmp_path: Path, prices: Path) -> None:
    file = stated(tmp_path, "symbol,known,eps\nAAA,2013-01-08T05:00:00Z,3\n")
    assert value(read_panel(PanelSource(prices, fundamentals=file, reading=NEW_YORK)), "eps", "AAA", "2013-01-08") == 3


def test_a_figure_of_a_symbols_own_table_waits_until_it_is_known(tmp_path: Path) -> None:
    folder = tmp_path / "symbols"
    folder.mkdir()
    for symbol, rows in tidy().groupby("symbol"):
        late = rows.assign(eps=1.0, known=rows["date"] + pd.Timedelta(days=7), in_universe=rows["date"] > "2013-01-20")
        late.drop(columns="symbol").to_csv(folder / f"{symbol}.csv", index=False)
    panel = read_panel(PanelSource(folder))
    assert np.isnan(value(panel, "eps", "AAA", "2013-01-08"))
    assert value(panel, "eps", "AAA", "2013-01-09") == 1
    assert not panel.universe[panel.dates <= np.datetime64("2013-01-20")].any()


def test_a_row_that_is_known_before_its_date_is_refused(tmp_path: Path) -> None:
    frame = tidy().assign(eps=1.0)
    frame.assign(known=frame["date"] - pd.Timedelta(days=3)).to_csv(tmp_path / "prices.csv", index=False)
    with pytest.raises(PanelError, match="row 1, known: known since 2012-12-30, before its date, 2013-01-02"):
        read_panel(PanelSource(tmp_path / "prices.csv"))


def test_rows_that_differ_in_their_known_day_are_no_copies(tmp_path: Path) -> None:
    frame = tidy().assign(eps=1.0)
    frame["known"] = frame["date"]
    later = frame.head(1).assign(known=frame["date"][0] + pd.Timedelta(days=5))
    pd.concat([frame, later]).to_csv(tmp_path / "prices.csv", index=False)
    with pytest.raises(PanelError, match="with another in_universe or known"):
        read_panel(PanelSource(tmp_path / "prices.csv", reading=Reading(duplicates="drop_equal")))


def test_statements_that_agree_are_no_contradiction(tmp_path: Path, prices: Path) -> None:
    text = "symbol,known,eps,book\nAAA,2013-01-04,1,\nAAA,2013-01-04,,9\nAAA,2013-01-04,1,9\n"
    panel = read_panel(PanelSource(prices, fundamentals=stated(tmp_path, text)))
    assert (value(panel, "eps", "AAA", "2013-01-04"), value(panel, "book", "AAA", "2013-01-04")) == (1, 9)
