"""Names of columns: which field a column is, whatever a vendor calls it.

A name is read for another one only where it cannot mean anything else: `Ticker` for `symbol`, never `Adj Close` for
`close`. What may be meant is said in the message, and `columns` of `Reading` settles it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence

FIELD_NAME = re.compile(r"[a-z_][a-z0-9_]*")
ROW_NUMBERS = re.compile(r"__index_level_\d+__")
"""Columns in which pandas stores an unnamed index."""
NUMBERED = re.compile(r"^\d+\. ")
"""Alpha Vantage numbers its columns: `1. open`."""

SAME_NAMES: Mapping[str, tuple[str, ...]] = {
    "symbol": ("ticker", "tickers", "symbols", "sym", "tic"),
    "date": ("datetime", "timestamp", "trade_date", "tradedate", "trading_date", "trading_day", "day", "datum"),
    "open": ("eröffnung", "eroeffnung", "eröffnungskurs", "offen", "erster"),
    "high": ("hoch", "höchst", "hoechst", "höchstkurs", "tageshoch"),
    "low": ("tief", "tiefst", "tiefstkurs", "tagestief"),
    "close": ("schluss", "schluß", "schlusskurs", "schlußkurs"),
    "volume": ("vol", "vol.", "volumen", "stück", "stücke", "stuecke"),
}
"""Names that mean the same, those of German exports too; where two of one field are there, neither is read for it."""
VENDOR_NAMES: Mapping[str, str] = {
    "adj close": "adj_close",
    "adjclose": "adj_close",
    "adjusted close": "adj_close",
    "dividends": "dividend",
    "stock splits": "split",
    "capital gains": "capital_gain",
}
"""The fields of yfinance frames that are called otherwise there."""
VENDOR_FIELDS: Mapping[str, str] = {
    "adj_close": "it knows later dividends; derive: {prices: adj_close} adjusts all prices by it",
    "dividend": "give splits and dividends as a file of actions",
    "split": "give splits and dividends as a file of actions",
    "capital_gain": "give splits and dividends as a file of actions",
}
"""Fields of yfinance frames that no formula may read, and what to do with them."""
MEANT_NAMES: Mapping[str, tuple[str, ...]] = {
    "symbol": ("code", "instrument", "stock", "asset", "name", "secid", "isin", "permno"),
    "date": ("time",),
    "volume": ("shares", "turnover_volume"),
    "close": ("adj_close", "adj close", "adjclose", "last", "price", "px_last", "kurs", "letzter"),
    "sector": ("gics_sector", "gics sector", "industry", "group"),
}
"""Names that may be meant, which a message suggests."""
PRICES = ("open", "high", "low", "close", "volume")
FIELD_NAMES = frozenset((*PRICES, "close_raw", "vwap", "amount", "adj_close", "dividend", "split", "capital_gain"))
UNNAMED = "column {}"
"""What a message calls a column without a name, by its place."""
INDEX_NAMES = ("", "index", "unnamed: 0")
SEPARATORS = ("_", " ", ".", ":", "|", "/", "-")


def plain_name(label: str) -> str:
    """Return a column's name in lower case, without a vendor's number or spelling."""
    name = NUMBERED.sub("", label.strip().removeprefix("\ufeff").strip().lower())
    for field, others in SAME_NAMES.items():
        if name in others and field in PRICES:
            return field
    return VENDOR_NAMES.get(name, name)


def find_same(field: str, present: Sequence[str]) -> str:
    """Return the one column that means a field that is absent; empty if there is none, or more than one."""
    found = [name for name in present if name in SAME_NAMES.get(field, ())]
    return found[0] if field not in present and len(found) == 1 else ""


def guess_meant(field: str, present: Sequence[str], required: Sequence[str]) -> str:
    """Return the column that may be meant by a field that is absent; empty if none is like it."""
    free = [name for name in present if name not in required]
    known = [name for name in free if name in (*MEANT_NAMES.get(field, ()), *SAME_NAMES.get(field, ()))]
    near = known or difflib.get_close_matches(field, free, n=1)
    return near[0] if near else ""


def split_label(label: str) -> tuple[str, str] | None:
    """Return field and symbol of a name such as `AAPL_Close` or `Close.AAPL`; None if it has no field."""
    for mark in SEPARATORS:
        head, _, tail = label.partition(mark)
        if tail and plain_name(head) in FIELD_NAMES:
            return plain_name(head), tail
        head, _, tail = label.rpartition(mark)
        if head and plain_name(tail) in FIELD_NAMES:
            return plain_name(tail), head
    return None
