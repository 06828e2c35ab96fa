"""How a table is laid out: tidy, or wide with field and symbol in its header.

tidy        one row for each date and symbol
two levels  one row for each date, one column for each field and symbol: yfinance, pandas with MultiIndex columns, and
            names such as AAPL_Close
one field   one row for each date, one column for each symbol: a table of closes
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from ..reading import Reading
from ..table import RawTable
from .arrays import is_text
from .days import parse_date
from .names import FIELD_NAMES, INDEX_NAMES, PRICES, ROW_NUMBERS, SAME_NAMES, plain_name, split_labels

TIDY, TWO_LEVELS, ONE_FIELD, DATES_ACROSS = "tidy", "two levels", "one field", "dates across"
MIN_SYMBOLS = 2
MIN_FIELDS = 3


@dataclass(frozen=True)
class TableLayout:
    """How a table is laid out.

    Attributes
    ----------
    kind : str
        One of the four words of this module.
    index : int
        The column of the dates; -1 where there is none.
    cells : mapping
        Of each field the column of each symbol; the field of a table with one is empty.
    twice : tuple of str
        Headers that occur twice.
    """

    kind: str
    index: int = -1
    cells: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    twice: tuple[str, ...] = ()


def find_layout(raw: RawTable, reading: Reading) -> TableLayout:
    """Return how a table is laid out."""
    if any(len(label) == 2 for label in raw.labels):
        return _find_levels(raw)
    names = [label[0].strip().removeprefix("\ufeff").lower() for label in raw.labels]
    if sum(parse_date(name) is not None for name in names) > len(names) / 2:
        return TableLayout(DATES_ACROSS)
    mapped = {name.strip().lower() for name in reading.columns.values()}
    if {"symbol", *SAME_NAMES["symbol"]} & set(names) or mapped & set(names):
        return TableLayout(TIDY)
    index = _find_index(raw, names)
    if index < 0:
        return TableLayout(TIDY)
    others = [place for place in range(len(names)) if place != index and not ROW_NUMBERS.fullmatch(names[place])]
    pairs = split_labels([raw.labels[place][0].strip() for place in others])
    if len(others) >= MIN_SYMBOLS and pairs:
        return _collect(index, [(*pair, place) for pair, place in zip(pairs, others, strict=True)])
    if len(others) < MIN_SYMBOLS or _holds_fields([plain_name(names[place]) for place in others]):
        return TableLayout(TIDY)
    symbols = [("", raw.labels[place][0].strip(), place) for place in others]
    layout = _collect(index, symbols)
    return TableLayout(ONE_FIELD, index, layout.cells, layout.twice)


def _holds_fields(names: list[str]) -> bool:
    """Return whether columns are the fields of one symbol; LOW and OPEN are symbols, too, among many others."""
    fields = len({*PRICES} & {*names})
    return fields >= MIN_FIELDS or 2 * fields >= len(names)


def _find_levels(raw: RawTable) -> TableLayout:
    """Return the layout of a header of two levels, in either order."""
    lone = [place for place, label in enumerate(raw.labels) if not label[-1]]
    dated = [place for place in lone if raw.labels[place][0].strip().lower() in ("date", *SAME_NAMES["date"])]
    index = next(iter((*dated, *lone)), 0)
    # a frame whose index was reset has its row numbers in a column without a name
    places = [place for place in range(len(raw.labels)) if place != index and any(raw.labels[place])]
    level = max((0, 1), key=lambda at: sum(plain_name(raw.labels[place][at]) in FIELD_NAMES for place in places))
    pairs = [(plain_name(raw.labels[place][level]), raw.labels[place][1 - level], place) for place in places]
    return _collect(index, pairs)


def _collect(index: int, pairs: list[tuple[str, str, int]]) -> TableLayout:
    """Return the columns of each field by symbol."""
    cells: dict[str, dict[str, int]] = {}
    twice = []
    for name, symbol, place in pairs:
        columns = cells.setdefault(name, {})
        if symbol in columns:
            twice.append(f"{name} {symbol}".strip())
        columns[symbol] = place
    return TableLayout(TWO_LEVELS, index, cells, tuple(twice))


def _find_index(raw: RawTable, names: list[str]) -> int:
    """Return the column of the dates: by its name or type, else the first one if it holds dates; -1 without any."""
    for place, name in enumerate(names):
        if name in ("date", *SAME_NAMES["date"]):
            return place
    for place, column in enumerate(raw.arrays):
        if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
            return place
    for place, (name, column) in enumerate(zip(names, raw.arrays, strict=True)):
        if (place == 0 or name in INDEX_NAMES) and _holds_dates(column):
            return place
    return -1


def _holds_dates(column: pa.ChunkedArray) -> bool:
    """Return whether the first cells of a text column are dates."""
    if not is_text(column.type) or not len(column):
        return False
    words = [word for word in pc.unique(column.slice(0, 50).cast(pa.string())).to_pylist() if word]
    return bool(words) and all(parse_date(word.strip()) is not None for word in words)
