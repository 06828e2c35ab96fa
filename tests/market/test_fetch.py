"""A vendor's prices in shares of today become quotes, splits and dividends; no test asks a network."""

from __future__ import annotations

import json
import sys
from datetime import date
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow.parquet as pa_parquet
import pytest

from alphaloom.market import (
    FetchedPrices,
    MarketError,
    PanelSource,
    YahooSource,
    make_quotes,
    read_actions,
    read_panel,
    take_panel_as_of,
)

DAYS = pd.bdate_range("2014-01-02", periods=8, name="Date")
QUOTES = {
    "AAA": [100.0, 102.0, 101.0, 51.0, 52.0, 26.0, 26.5, 27.0],
    "BBB": [10.0, 10.1, 10.2, 10.0, 9.9, 9.8, 9.9, 10.0],
}
SPLITS = {"AAA": {3: 2.0, 5: 2.0}, "BBB": {}}
DIVIDENDS = {"AAA": {2: 1.0, 5: 0.4}, "BBB": {4: 0.2}}
"""Per share as it was the day before: that of row 5 is paid on shares of before the second split."""


def vendor_frame() -> pd.DataFrame:
    """Return the frame that Yahoo makes of these quotes: all in shares of today, `Adj Close` less dividends."""
    columns: dict[tuple[str, str], np.ndarray] = {}
    for symbol, quotes in QUOTES.items():
        splits = np.array([SPLITS[symbol].get(row, 1.0) for row in range(len(DAYS))])
        here = np.cumprod(splits[::-1])[::-1]
        close, paid = np.array(quotes) / (here / splits), np.zeros(len(DAYS))
        for row, amount in DIVIDENDS[symbol].items():
            paid[row] = amount / here[row]
        keep = np.ones(len(DAYS))
        for row in np.flatnonzero(paid).tolist():
            keep[:row] *= 1 - paid[row] / close[row - 1]
        columns |= {("Close", symbol): close, ("Adj Close", symbol): close * keep, ("Dividends", symbol): paid}
        columns |= {("Open", symbol): close, ("High", symbol): close * 1.01, ("Low", symbol): close * 0.99}
        columns |= {
            ("Volume", symbol): 1000.0 * here / splits,
            ("Stock Splits", symbol): np.where(splits == 1, 0, splits),
        }
    frame = pd.DataFrame(columns, index=DAYS)
    for name in ("Open", "High", "Low", "Close", "Adj Close", "Volume", "Dividends", "Stock Splits"):
        frame[name, "GONE"] = np.nan
    return frame.rename_axis(columns=["Price", "Ticker"])


@pytest.fixture(scope="module")
def fetched() -> FetchedPrices:
    return make_quotes(vendor_frame())


def column(fetched: FetchedPrices, name: str, symbol: str) -> list[float]:
    rows = fetched.prices.to_pandas()
    return list(rows[rows["symbol"] == symbol][name])


def test_the_quoted_close_and_the_traded_volume_come_back(fetched: FetchedPrices) -> None:
    for symbol, quotes in QUOTES.items():
        np.testing.assert_allclose(column(fetched, "close_raw", symbol), quotes)
        np.testing.assert_allclose(column(fetched, "volume", symbol), 1000.0)


def test_splits_and_dividends_are_those_of_their_day(fetched: FetchedPrices) -> None:
    rows = fetched.actions.to_pandas().set_index(["symbol", "date"]).sort_index()
    days = DAYS.date
    assert rows.loc[("AAA", days[3])].tolist() == [0.0, 2.0]
    assert rows.loc[("AAA", days[2])].tolist() == [1.0, 1.0]
    assert rows.loc[("AAA", days[5])].tolist() == [0.4, 2.0]
    assert rows.loc[("BBB", days[4])].tolist() == [0.2, 1.0]
    assert len(rows) == 4


def test_either_order_of_levels_gives_the_same(fetched: FetchedPrices) -> None:
    swapped = make_quotes(vendor_frame().swaplevel(axis=1))
    assert swapped.prices.equals(fetched.prices)
    assert swapped.actions.equals(fetched.actions)
    assert (fetched.symbols, fetched.absent) == (("AAA", "BBB"), ("GONE",))


def test_the_panel_is_known_as_of_any_day(tmp_path: Path, fetched: FetchedPrices) -> None:
    pa_parquet.write_table(fetched.prices, tmp_path / "prices.parquet")
    pa_parquet.write_table(fetched.actions, tmp_path / "actions.parquet")
    panel = read_panel(PanelSource(tmp_path / "prices.parquet"))
    assert panel.back_adjusted
    known = take_panel_as_of(panel, date(2014, 1, 8), read_actions(tmp_path / "actions.parquet"), "quoted")
    expected = np.array(QUOTES["AAA"][:5])
    expected[:2] *= 1 - 1.0 / 102.0
    expected[:3] /= 2.0
    np.testing.assert_allclose(known.fields["close"][:, 0], expected, rtol=1e-6)


def test_the_day_of_the_download_is_left_out_but_its_split_is_undone(fetched: FetchedPrices) -> None:
    for row in (5, 7):  # on row 5 there is a split
        early = make_quotes(vendor_frame().iloc[: row + 1], DAYS[row].date())
        assert early.cut == (DAYS[row].date(),)
        assert max(early.prices["date"].to_pylist()) == DAYS[row - 1].date()
        assert max(early.actions["date"].to_pylist()) < DAYS[row].date()
    whole = make_quotes(vendor_frame(), DAYS[5].date())
    for name in ("close_raw", "volume"):
        np.testing.assert_allclose(column(whole, name, "AAA"), column(fetched, name, "AAA")[:5])


def test_a_frame_without_a_field_or_a_price_is_refused() -> None:
    with pytest.raises(MarketError, match=r"split: the vendor's frame lacks a field"):
        make_quotes(vendor_frame().drop(columns="Stock Splits", level=0))
    with pytest.raises(MarketError, match="no ticker has a price"):
        make_quotes(vendor_frame() * np.nan)


def test_yahoo_is_asked_for_prices_until_today(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, object] = {}
    package = ModuleType("yfinance")

    def download(tickers: list[str], **options: object) -> pd.DataFrame:
        asked.update(options, tickers=tickers)
        return vendor_frame()

    package.download = download  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "yfinance", package)
    assert YahooSource().download(["AAA", "BBB"], date(2014, 1, 2)).equals(vendor_frame())
    assert asked.pop("tickers") == ["AAA", "BBB"]
    assert asked == {"start": "2014-01-02", "auto_adjust": False, "actions": True, "progress": False}
    package.download = lambda *_, **__: pd.DataFrame()  # type: ignore[attr-defined]
    with pytest.raises(MarketError, match="Yahoo returned no prices"):
        YahooSource().download(["AAA"], date(2014, 1, 2))


def test_without_the_package_its_installation_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yfinance", None)
    with pytest.raises(MarketError, match="pip install"):
        YahooSource().download(["AAA"], date(2014, 1, 2))


def test_what_yfinance_makes_of_yahoos_answers_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    """The package itself, with Yahoo's answers in place of its connection."""
    yfinance = pytest.importorskip("yfinance", reason="yfinance is not installed")
    yfinance.set_tz_cache_location(str(tmp_path))
    for name in ("get", "cache_get"):
        monkeypatch.setattr(yfinance.data.YfData, name, answer_as_yahoo)
    fetched = make_quotes(YahooSource().download(["AAA", "BBB"], date(2014, 1, 1)))
    assert fetched.symbols == ("AAA", "BBB")
    assert column(fetched, "close_raw", "AAA") == [20.0, 22.0, 24.0, 13.0, 14.0]
    assert column(fetched, "volume", "AAA") == [500.0, 500.0, 500.0, 1_000.0, 1_000.0]
    assert fetched.actions.to_pydict()["symbol"] == ["BBB", "AAA"]
    assert fetched.actions.to_pydict()["split"] == [1.0, 2.0]
    assert fetched.actions.to_pydict()["dividend"] == [0.5, 0.0]
    assert not [warning for warning in recwarn if "yfinance" in warning.filename]


def answer_as_yahoo(_self: object, url: str, *_: object, **__: object) -> SimpleNamespace:
    """Return the chart of a ticker as Yahoo writes it: AAA splits 2:1 on the fourth day, BBB pays on the third."""
    symbol = url.rsplit("/", 1)[-1]
    opens = [int(day.timestamp()) for day in pd.bdate_range("2014-01-02 09:30", periods=5, tz="America/New_York")]
    close = [10.0, 11.0, 12.0, 13.0, 14.0]
    split = {"date": opens[3], "numerator": 2.0, "denominator": 1.0, "splitRatio": "2:1"}
    paid = {"date": opens[2], "amount": 0.5}
    events = {"splits": {"1": split}} if symbol == "AAA" else {"dividends": {"1": paid}}
    session = {"timezone": "EST", "start": opens[-1], "end": opens[-1] + 23_400, "gmtoffset": -18_000}
    meta: dict[str, object] = {"currency": "USD", "symbol": symbol, "instrumentType": "EQUITY"}
    meta["exchangeTimezoneName"] = "America/New_York"
    meta |= {"regularMarketTime": opens[-1], "gmtoffset": -18_000, "timezone": "EST", "priceHint": 2}
    meta |= {"dataGranularity": "1d", "range": "", "validRanges": ["1d", "max"], "firstTradeDate": opens[0]}
    meta |= {"currentTradingPeriod": dict.fromkeys(("pre", "regular", "post"), session)}
    quote = {"open": close, "high": [one + 0.5 for one in close], "low": [one - 0.5 for one in close], "close": close}
    indicators = {"quote": [{**quote, "volume": [1_000] * 5}], "adjclose": [{"adjclose": close}]}
    result = {"meta": meta, "timestamp": opens, "events": events, "indicators": indicators}
    body = {"chart": {"result": [result], "error": None}}
    return SimpleNamespace(status_code=200, text=json.dumps(body), json=lambda: body)
