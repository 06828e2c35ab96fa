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
    "adjusted": "adj_close",
    "dividends": "dividend",
    "stock splits": "split",
    "capital gains": "capital_gain",
}
"""The fields of yfinance and quantmod frames that are called otherwise there."""
VENDOR_FIELDS: Mapping[str, str] = {
    "adj_close": "it knows later dividends; derive: {prices: adj_close} adjusts all prices by it",
    "dividend": "give splits and dividends as a file of actions",
    "split": "give splits and dividends as a file of actions",
    "capital_gain": "give splits and dividends as a file of actions",
}
"""Fields of yfinance frames that no formula may read, and what to do with them."""
MEANT_NAMES: Mapping[str, tuple[str, ...]] = {
    "symbol": ("code", "instrument", "stock", "asset", "name", "secid", "isin", "permno", "wkn", "kürzel", "kuerzel"),
    "known": ("filed", "filing_date", "date_filed", "published", "publication_date", "announced", "announcement_date"),
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
TUPLE = re.compile(r"^\('(.+)', '(.+)'\)$")
"""How pandas writes a column of two levels where an index has one."""
ANY_SEPARATOR = re.compile("[_ .:|/-]")
MARKS_AROUND = "_ :|/"
"""Marks that no symbol begins or ends with."""


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


def split_labels(labels: Sequence[str]) -> list[tuple[str, str]] | None:
    """Return field and symbol of names such as `AAPL_Adj Close`, or all `Close.AAPL`; None if one has no field."""
    labels = [TUPLE.sub(r"\1|\2", label) for label in labels]
    sides = [[_split_label(label, field_first=first) for label in labels] for first in (True, False)]
    whole = [[pair for pair in pairs if pair] for pairs in sides if all(pairs)]
    # LOW_Open has two readings: the symbols are on the side that has fewer fields
    return max(whole, key=lambda pairs: len({name for name, _ in pairs}), default=None)


def _split_label(label: str, *, field_first: bool) -> tuple[str, str] | None:
    """Return the longest field at one end of a name, and the symbol at its other end; None if it has no field there."""
    if _name_field(label):
        return None
    places = [place for place, mark in enumerate(label) if mark in SEPARATORS]
    for place in reversed(places) if field_first else places:
        head, tail = label[:place], label[place + 1 :]
        name, symbol = (_name_field(head), tail) if field_first else (_name_field(tail), head)
        if name and (symbol := symbol.strip(MARKS_AROUND)):
            return name, symbol
    return None


def _name_field(label: str) -> str:
    """Return the field that a part of a name says, such as `Adj_Close`; empty if it says none."""
    names = (plain_name(label), plain_name(" ".join(part for part in re.split(ANY_SEPARATOR, label) if part)))
    return next((name for name in names if name in FIELD_NAMES), "")
