"""Wide tables as rows: one row of a wide table is a day of all symbols."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import Audit, Finding, format_count
from ..panel import REQUIRED_FIELDS
from ..prices import FETCH_ADVICE, Prices
from ..table import RawTable, Table, explain_bad_symbol
from .days import read_day_column
from .layout import DATES_ACROSS, ONE_FIELD, TableLayout
from .names import FIELD_NAME, VENDOR_FIELDS
from .numbers import read_number_columns

if TYPE_CHECKING:
    from ..load import PanelSource

Wide = tuple[NDArray[np.int64], tuple[str, ...], dict[str, NDArray[np.float64]]]
"""Day numbers `[T]`, symbols `[N]` and one array `[T, N]` a field."""
MAX_WORDS_NAMED = 8


def read_wide(raw: RawTable, layout: TableLayout, source: PanelSource, audit: Audit) -> Prices:
    """Read a wide table; all mistakes go to the audit."""
    audit.add_broken(raw.broken)
    if layout.twice:
        names = ", ".join(name or "a column without a name" for name in layout.twice[:MAX_WORDS_NAMED])
        more = f" and {len(layout.twice) - MAX_WORDS_NAMED:,} more" if len(layout.twice) > MAX_WORDS_NAMED else ""
        audit.add(Finding(0, f"{names}{more}", "the column is there twice"))
    if layout.kind == DATES_ACROSS:
        what = "the dates run across: write one row for each date, in pandas with frame.T"
        audit.add(Finding(0, "", what))
        return _no_prices()
    cells = dict(layout.cells)
    if layout.kind == ONE_FIELD:
        audit.add(Finding(0, "", _explain_one_field(source.path, cells[""])))
        return _no_prices()
    audit.notes += [*raw.notes, f"table: wide, {format_count(len(cells), 'field')} of each symbol"]
    _check_fields(cells, audit)
    chosen = _choose_fields(cells, source.derive, audit)
    table = Table(raw.path, {}, raw.row_numbers, raw.from_text, reading=source.reading)
    days = read_day_column(table, raw.arrays[layout.index], raw.labels[layout.index][0] or "date", audit)
    symbols = _check_symbols(cells, audit)
    values = read_number_columns(
        table,
        {f"{name} {symbol}": raw.arrays[place] for name in chosen for symbol, place in cells[name].items()},
        audit,
    )
    fields = {name: np.full((len(days), len(symbols)), np.nan) for name in chosen}
    column = {symbol: place for place, symbol in enumerate(symbols)}
    for name in chosen:
        for symbol in cells[name].keys() & column.keys():
            fields[name][:, column[symbol]] = values[f"{name} {symbol}"]
    return stack_rows((days, symbols, fields), audit)


def stack_rows(wide: Wide, audit: Audit) -> Prices:
    """Return one row for each day and symbol that has a value; symbols without any are left out and noted."""
    days, symbols, fields = wide
    present = np.zeros((len(days), len(symbols)), np.bool_)
    for values in fields.values():
        present |= ~np.isnan(values)
    never = [symbols[place] for place in np.flatnonzero(~present.any(axis=0)).tolist()]
    if never:
        audit.notes.append(f"symbols: {len(never)} without any value left out: {', '.join(never[:MAX_WORDS_NAMED])}")
    day, code = np.nonzero(present)
    if not len(day) and not audit.findings:
        audit.add(Finding(0, "", "the table holds no number at all"))
    numbers = audit.numbers
    audit.numbers = numbers[day]
    kept = tuple(symbol for symbol in symbols if symbol not in set(never))
    renumber = np.cumsum(present.any(axis=0)) - 1
    audit.owners = _name_owner(kept, renumber[code])
    rows = {name: values[day, code] for name, values in fields.items()}
    return Prices(days[day], renumber[code], kept, rows, tuple(audit.notes))


def _name_owner(symbols: Sequence[str], codes: NDArray[np.int64]) -> Callable[[int], str]:
    return lambda row: symbols[codes[row]]


def _no_prices() -> Prices:
    return Prices(np.zeros(0, np.int64), np.zeros(0, np.int64), (), {}, ())


def _explain_one_field(path: Path, columns: Mapping[str, int]) -> str:
    """Return why a table of one field is no panel, and what to give."""
    names = ", ".join(list(columns)[:3])
    return (
        f"a wide table of one field, {len(columns)} symbols such as {names}; a panel needs open, high, low, close and "
        f"volume: put one such table for each into a folder, named open{path.suffix or '.csv'} and so on, "
        f"and give the folder; {FETCH_ADVICE}"
    )


def _check_fields(cells: Mapping[str, Mapping[str, int]], audit: Audit) -> None:
    """Find required fields that no symbol has."""
    for name in REQUIRED_FIELDS:
        if name not in cells:
            audit.add(Finding(0, name, f"no column has it; the table holds {', '.join(list(cells)[:MAX_WORDS_NAMED])}"))


def _choose_fields(cells: Mapping[str, Mapping[str, int]], derive: Mapping[str, str], audit: Audit) -> list[str]:
    """Return the fields that are read; the others are noted with the reason."""
    needed = {rule.replace(" ", "") for rule in derive.values()}
    chosen = []
    for name in cells:
        if name in VENDOR_FIELDS and name not in needed:
            audit.notes.append(f"{name}: left out, {VENDOR_FIELDS[name]}")
        elif not FIELD_NAME.fullmatch(name):
            audit.notes.append(f"{name}: left out, a field's name is letters, digits and underscores")
        else:
            chosen.append(name)
    return chosen


def _check_symbols(cells: Mapping[str, Mapping[str, int]], audit: Audit) -> tuple[str, ...]:
    """Return the sorted symbols of the header; one that cannot be a symbol is a finding."""
    symbols = sorted({symbol for columns in cells.values() for symbol in columns})
    for symbol in symbols:
        if problem := explain_bad_symbol(symbol):
            audit.add(Finding(0, "symbol", problem))
    return tuple(symbols)
