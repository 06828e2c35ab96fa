"""A folder of tables: one wide table for each field, or one table for each symbol."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..errors import Audit, Finding, format_count, unusable_error
from ..panel import REQUIRED_FIELDS
from ..prices import Prices, read_tidy
from ..table import RawTable, Table, name_columns, read_raw_table
from .days import MISSING_DAY, read_day_column
from .layout import ONE_FIELD, TWO_LEVELS, find_layout
from .names import FIELD_NAMES, plain_name
from .numbers import read_number_columns
from .wide import read_wide, stack_rows

if TYPE_CHECKING:
    from ..load import PanelSource

FOLDER_SUFFIXES = (".csv", ".tsv", ".parquet")


def read_folder(source: PanelSource, audit: Audit) -> Prices:
    """Read all tables of a folder; the findings name the file."""
    paths = sorted(path for path in source.path.iterdir() if path.suffix.lower() in FOLDER_SUFFIXES)
    if not paths:
        raise unusable_error(source.path, "the folder holds no CSV and no Parquet file")
    fields = {path: name_field(path.stem) for path in paths}
    if all(fields.values()):
        return _read_fields({fields[path]: path for path in paths}, source, audit)
    return _read_symbols(paths, source, audit)


def name_field(stem: str) -> str:
    """Return the field that a file's name says, such as `closes` for close; empty if it says none."""
    plain = plain_name(stem)
    return next((name for name in (plain, plain.removesuffix("s")) if name in FIELD_NAMES), "")


def _read_fields(paths: dict[str, Path], source: PanelSource, audit: Audit) -> Prices:
    """Read one wide table for each field; days and symbols are those of any of them."""
    tables = {name: _read_field(name, path, source, audit) for name, path in paths.items()}
    for name in REQUIRED_FIELDS:
        if name not in tables:
            audit.add(Finding(0, name, f"the folder has no file {name}.csv"))
    known = [days[days != MISSING_DAY] for days, _, _ in tables.values()]
    days = np.unique(np.concatenate(known))
    symbols = tuple(sorted({symbol for _, words, _ in tables.values() for symbol in words}))
    fields = {}
    for name, (own, words, values) in tables.items():
        fields[name] = np.full((len(days), len(symbols)), np.nan)
        rows, columns = np.flatnonzero(own != MISSING_DAY), np.searchsorted(symbols, words)
        fields[name][np.searchsorted(days, own[rows])[:, None], columns] = values[rows]
    audit.notes.append(f"table: {format_count(len(paths), 'wide table')}, one for each field")
    audit.numbers = np.zeros(len(days), np.int64)
    prices = stack_rows((days, symbols, fields), audit)
    owner = audit.owners
    if owner is not None:
        dates = prices.days.astype("datetime64[D]")
        audit.owners = lambda row: f"{owner(row)} {dates[row]}"
    return prices


def _read_field(
    name: str, path: Path, source: PanelSource, audit: Audit
) -> tuple[NDArray[np.int64], list[str], NDArray[np.float64]]:
    """Return the days, symbols and values `[T, N]` of the wide table of a field."""
    raw = read_raw_table(path, source.reading, typed=True)
    own = Audit(raw.row_numbers)
    own.add_broken(raw.broken)
    layout = find_layout(raw, source.reading)
    if layout.kind != ONE_FIELD:
        own.add(Finding(0, "", f"it is no wide table of {name}: one column for the dates, one for each symbol"))
        values: tuple[NDArray[np.int64], list[str], NDArray[np.float64]] = (np.zeros(0, np.int64), [], np.zeros((0, 0)))
    else:
        own.add(*(Finding(0, twice, "the column is there twice") for twice in layout.twice))
        table = Table(path, {}, raw.row_numbers, raw.from_text, reading=source.reading)
        days = read_day_column(table, raw.arrays[layout.index], "date", own)
        _find_repeated_days(days, own)
        cells = {symbol: raw.arrays[place] for symbol, place in layout.cells[""].items()}
        columns = read_number_columns(table, cells, own)
        values = (days, list(columns), np.column_stack(list(columns.values())))
    _take_over(own, path, audit)
    return values


def _find_repeated_days(days: NDArray[np.int64], audit: Audit) -> None:
    _, firsts = np.unique(days, return_index=True)
    again = np.setdiff1d(np.flatnonzero(days != MISSING_DAY), firsts)
    audit.add_rows("date", again, lambda row: f"{days[row].astype('datetime64[D]')} is there twice")


def _read_symbols(paths: list[Path], source: PanelSource, audit: Audit) -> Prices:
    """Read one table for each symbol, which is the name of its file."""
    parts = []
    numbers = []
    for path in paths:
        raw = read_raw_table(path, source.reading, typed=True)
        own = Audit(raw.row_numbers)
        layout = find_layout(raw, source.reading)
        if layout.kind == TWO_LEVELS:
            parts.append(read_wide(raw, layout, source, own))
        else:
            parts.append(read_tidy(_name_symbol(raw, path, source), own, source.derive))
        numbers.append(own.numbers)
        _take_over(own, path, audit)
    audit.notes.append(f"table: {format_count(len(paths), 'table')}, one for each symbol")
    names = sorted({name for part in parts for name in part.fields})
    symbols = tuple(sorted({symbol for part in parts for symbol in part.symbols}))
    codes = [_renumber(part, symbols) for part in parts]
    fields = {
        name: np.concatenate([part.fields.get(name, np.full(len(part.days), np.nan)) for part in parts])
        for name in names
    }
    audit.numbers = np.concatenate(numbers)
    all_codes = np.concatenate(codes)
    audit.owners = lambda row: symbols[all_codes[row]]
    notes = tuple(dict.fromkeys(audit.notes))
    days = np.concatenate([part.days for part in parts])
    return Prices(days, all_codes, symbols, fields, notes, *_join_statements(parts))


def _join_statements(parts: list[Prices]) -> tuple[NDArray[np.bool_] | None, NDArray[np.int64] | None]:
    """Return membership and known days of all rows; where a file does not say them, its rows hold from their date."""
    member = known = None
    if any(part.member is not None for part in parts):
        member = np.concatenate([np.ones(len(p.days), np.bool_) if p.member is None else p.member for p in parts])
    if any(part.known is not None for part in parts):
        known = np.concatenate([part.days if part.known is None else part.known for part in parts])
    return member, known


def _renumber(part: Prices, symbols: tuple[str, ...]) -> NDArray[np.int64]:
    place = np.array([*(symbols.index(symbol) for symbol in part.symbols), -1])
    return place[part.codes]


def _name_symbol(raw: RawTable, path: Path, source: PanelSource) -> Table:
    """Return the table of a file with its name as the symbol of every row, unless it has a column of symbols."""
    table = name_columns(raw, source.reading)
    if "symbol" in table.columns:
        return table
    word = pa.DictionaryArray.from_arrays(pa.array(np.zeros(table.rows, np.int32)), pa.array([path.stem]))
    return replace(table, columns={**table.columns, "symbol": pa.chunked_array([word])})


def _take_over(own: Audit, path: Path, audit: Audit) -> None:
    """Add the findings and notes of one file, with its name, to those of the folder."""
    audit.findings += [replace(finding, column=f"{path.name} {finding.column}".strip()) for finding in own.findings]
    audit.total += own.total
    audit.needs_setting |= own.needs_setting
    audit.within_day |= own.within_day
    audit.notes += [note for note in own.notes if note not in audit.notes]
