"""Load a panel from files of prices and sectors; all mistakes are reported at once, before any work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .derive import check_derivations, derive_fields
from .errors import Audit, Finding
from .panel import PRICE_FIELDS, REQUIRED_FIELDS, Panel
from .quality import find_data_warnings
from .quality.back_adjustment import may_be_adjusted
from .table import MISSING_DAY, Table, find_missing_columns, read_days, read_numbers, read_symbols, read_table

INDUSTRY_COLUMNS = ("industry", "sub_industry")
NO_ROW_SECTOR = "unknown"
"""Group of the symbols that the file has no row for."""
FIELD_NAME = r"[a-z_][a-z0-9_]*"


@dataclass(frozen=True)
class PanelSource:
    """Where a panel comes from.

    Attributes
    ----------
    path : Path
        Tidy Parquet or CSV, one row per date and symbol: date, symbol, open, high, low, close, volume; other numeric
        columns become fields. An empty cell is missing data. Column names are read in lower case.
    sectors : Path, optional
        Parquet or CSV with symbol, sector and, if wanted, industry or sub_industry.
    as_of : date, optional
        No row may be later; by default the last date of the file.
    derive : Mapping[str, str]
        Fields to compute, such as `{"vwap": "typical"}`; stamped in the panel's notes.
    name : str
        The name of the data; by default the file's name without its extension.
    """

    path: Path
    sectors: Path | None = None
    as_of: date | None = None
    derive: Mapping[str, str] = field(default_factory=dict)
    name: str = ""

    def __post_init__(self) -> None:
        """Fill in the name, and turn paths given as text into paths."""
        object.__setattr__(self, "path", Path(self.path))
        object.__setattr__(self, "sectors", None if self.sectors is None else Path(self.sectors))
        object.__setattr__(self, "name", self.name or self.path.stem)


def load_panel(source: PanelSource) -> Panel:
    """Load a panel from files, with the data warnings in its notes.

    Raises
    ------
    PanelError
        As `read_panel`.
    """
    panel = read_panel(source)
    return replace(panel, notes=(*panel.notes, *map(str, find_data_warnings(panel))))


def read_panel(source: PanelSource) -> Panel:
    """Read a panel from files.

    A symbol is in the universe on the days on which it has an open and a close. Nothing is repaired: values that look
    wrong and may be right are left to `find_data_warnings`.

    Raises
    ------
    PanelError
        With every finding in the files (`.findings`, at most 20 of a kind and a count), or for an unknown derivation.
    """
    check_derivations(source.derive)
    table = read_table(source.path)
    audit = Audit(table.row_numbers)
    prices = audit_prices(table, source.as_of, audit)
    groups: dict[str, list[str]] = {}
    sector_notes: tuple[str, ...] = ()
    if source.sectors is not None:
        groups, sector_notes = read_sectors(source.sectors, prices, audit)
    audit.refuse(f"{source.path} with {source.sectors}" if source.sectors else str(source.path))
    fields, stamps = derive_fields(prices.fields, source.derive)
    notes = (*stamps, *prices.notes, *sector_notes)
    panel = assemble_panel(replace(prices, fields=fields, notes=notes), groups)
    return replace(panel, back_adjusted=may_be_adjusted(panel))


def assemble_panel(prices: Prices, groups: Mapping[str, list[str]]) -> Panel:
    """Build the panel `[T, N]` from the rows of a file."""
    first = int(prices.days.min())
    is_day = np.zeros(int(prices.days.max()) - first + 1, dtype=np.bool_)
    is_day[prices.days - first] = True
    row = np.cumsum(is_day) - 1
    shape = (int(is_day.sum()), len(prices.symbols))
    cell = row[prices.days - first] * shape[1] + prices.codes
    return Panel.build(
        dates=(np.flatnonzero(is_day) + first).astype("datetime64[D]"),
        symbols=prices.symbols,
        fields={name: _spread_rows(values, cell, shape) for name, values in prices.fields.items()},
        groups=groups,
        notes=prices.notes,
    )


def _spread_rows(values: NDArray[np.float64], cell: NDArray[np.int64], shape: tuple[int, int]) -> NDArray[np.float64]:
    """Return the values as an array `[T, N]`, NaN where there is no row."""
    out = np.full(shape[0] * shape[1], np.nan)
    out[cell] = values
    return out.reshape(shape)


def read_sectors(path: Path, prices: Prices, audit: Audit) -> tuple[dict[str, list[str]], tuple[str, ...]]:
    """Return the labels of every grouping, in the order of the prices' symbols, and notes.

    An empty cell means no group. Symbols without a row form a group of their own; a file without any of the symbols is
    refused.
    """
    table = read_table(path)
    sector_audit = Audit(table.row_numbers)
    sector_audit.add(*table.clashes, *find_missing_columns(table, ("symbol", "sector")))
    sector_audit.add_broken(table.broken)
    labels: dict[str, list[str]] = {}
    notes: list[str] = []
    if table.rows and "symbol" in table.columns:
        rows = read_symbol_rows(table, sector_audit)
        notes += _note_missing_rows(path, prices, rows, sector_audit)
        labels = {name: read_labels(table, column, prices, rows) for name, column in find_groupings(table).items()}
    audit.add(*(Finding(f.row, f"{path.name} {f.column}".strip(), f.message) for f in sector_audit.findings))
    notes += [
        f"{name}: {blank} of {len(words)} names have none"
        for name, words in labels.items()
        if (blank := sum(not word for word in words))
    ]
    return labels, tuple(notes)


def find_groupings(table: Table) -> dict[str, str]:
    """Return the column of each grouping that the file has."""
    columns = {"sector": "sector"} if "sector" in table.columns else {}
    industry = [name for name in INDUSTRY_COLUMNS if name in table.columns]
    return columns | ({"industry": industry[0]} if industry else {})


def read_symbol_rows(table: Table, audit: Audit) -> dict[str, int]:
    """Return the first row of each symbol; a symbol with two rows is a finding."""
    codes, words = read_symbols(table, "symbol", audit)
    _, first = np.unique(codes[codes >= 0], return_index=True)
    rows = dict(zip(words, np.flatnonzero(codes >= 0)[first].tolist(), strict=True))
    repeated = np.array(
        [row for row, code in enumerate(codes.tolist()) if code >= 0 and rows[words[code]] != row], np.intp
    )
    audit.add_rows("symbol", repeated, lambda row: f"{words[codes[row]]!r} is there twice")
    return rows


def _note_missing_rows(path: Path, prices: Prices, rows: dict[str, int], audit: Audit) -> list[str]:
    """Return a note on the symbols without a row; if no symbol has one, that is a finding."""
    absent = [symbol for symbol in prices.symbols if symbol not in rows]
    if rows and absent and len(absent) == len(prices.symbols):
        message = (
            f"none of the prices' {len(absent)} symbols has a row here, such as {absent[0]!r}; "
            f"it begins with {next(iter(rows))!r}"
        )
        audit.add(Finding(0, "symbol", message))
    if not absent:
        return []
    share = f"{len(absent)} of {len(prices.symbols)} symbols ({100 * len(absent) / len(prices.symbols):.1f} %)"
    return [f"{path.name}: no row for {share}: they form a group of their own, '{NO_ROW_SECTOR}'"]


def read_labels(table: Table, column: str, prices: Prices, rows: dict[str, int]) -> list[str]:
    """Return the label of every symbol of the prices: empty where the cell is, "unknown" without a row."""
    words = [str(word).strip() if word is not None else "" for word in table.columns[column].to_pylist()]
    return [words[rows[symbol]] if symbol in rows else NO_ROW_SECTOR for symbol in prices.symbols]


@dataclass(frozen=True)
class Prices:
    """The cells of a price file: day number and symbol code of each row, and one array `[rows]` a field."""

    days: NDArray[np.int64]
    codes: NDArray[np.int64]
    symbols: tuple[str, ...]
    fields: dict[str, NDArray[np.float64]]
    notes: tuple[str, ...]


def audit_prices(table: Table, as_of: date | None, audit: Audit) -> Prices:
    """Read every column and add all mistakes to the audit; unreadable cells are missing in the result."""
    audit.add(*table.clashes, *find_missing_columns(table, ("date", "symbol", *REQUIRED_FIELDS)))
    audit.add_broken(table.broken)
    if table.rows == 0:
        audit.add(Finding(0, "", "the file has no rows"))
        return Prices(np.zeros(0, np.int64), np.zeros(0, np.int64), (), {}, ())
    absent = np.full(table.rows, MISSING_DAY)
    days = read_days(table, "date", audit) if "date" in table.columns else absent
    codes, symbols = read_symbols(table, "symbol", audit) if "symbol" in table.columns else (absent, ())
    fields, notes = read_fields(table, audit)
    check_prices(fields, audit)
    check_rows(days, codes, symbols, audit)
    if as_of is not None:
        check_as_of(days, as_of, audit)
    return Prices(days, codes, symbols, fields, notes)


def read_fields(table: Table, audit: Audit) -> tuple[dict[str, NDArray[np.float64]], tuple[str, ...]]:
    """Read the required and the extra numeric columns; the notes name the extra columns left out, with the reason."""
    fields: dict[str, NDArray[np.float64]] = {}
    notes = []
    for name in table.columns:
        if name in ("date", "symbol"):
            continue
        reason = "" if name in REQUIRED_FIELDS else explain_ignored_column(table, name)
        if reason:
            notes.append(f"{name}: column ignored, {reason}")
            continue
        fields[name] = read_numbers(table, name, audit)
        if name in REQUIRED_FIELDS and not np.isfinite(fields[name]).any():
            audit.add(Finding(0, name, "the column holds no number at all"))
    return fields, tuple(notes)


def explain_ignored_column(table: Table, name: str) -> str:
    """Return why an extra column cannot be a field; empty if it can."""
    column = table.columns[name]
    if name == "returns":
        return "returns are computed from close"
    if not pc.match_substring_regex(pa.scalar(name), f"^{FIELD_NAME}$").as_py():
        return "a field's name is letters, digits and underscores"
    if pa.types.is_floating(column.type) or pa.types.is_integer(column.type) or pa.types.is_decimal(column.type):
        return ""
    if not table.from_text:
        return f"it holds {column.type}, not numbers"
    sample = column.filter(pc.not_equal(column, ""))[:1000]
    numeric = pc.sum(pc.match_substring_regex(sample, r"^\s*[-+]?\.?[0-9]")).as_py() or 0
    return "" if 2 * numeric > len(sample) or not len(sample) else "it holds text"


def check_prices(fields: dict[str, NDArray[np.float64]], audit: Audit) -> None:
    """Find infinities, prices that are not positive, volumes below zero, and days whose high is below their low."""
    for name, values in fields.items():
        add_bad_values(name, values, np.isinf(values), "is not finite", audit)
    for name in (*PRICE_FIELDS, "close_raw", "vwap"):
        if name in fields:
            add_bad_values(name, fields[name], fields[name] <= 0, "is not a positive price", audit)
    if "volume" in fields:
        add_bad_values("volume", fields["volume"], fields["volume"] < 0, "is below zero", audit)
    if "high" in fields and "low" in fields:
        high, low = fields["high"], fields["low"]
        audit.add_rows("high", np.flatnonzero(high < low), lambda row: f"{high[row]:g} is below the low, {low[row]:g}")


def add_bad_values(name: str, values: NDArray[np.float64], bad: NDArray[np.bool_], problem: str, audit: Audit) -> None:
    """Add a finding for each bad value of a column."""
    audit.add_rows(name, np.flatnonzero(bad), lambda row: f"{values[row]:g} {problem}")


def check_rows(days: NDArray[np.int64], codes: NDArray[np.int64], symbols: tuple[str, ...], audit: Audit) -> None:
    """Find repeated (date, symbol) pairs, dates out of order within a symbol, and a panel of one symbol."""
    known = np.flatnonzero((days != MISSING_DAY) & (codes >= 0))
    if len(symbols) == 1:
        what = f"{symbols[0]!r} is the only symbol; a panel compares names on the same day and needs at least two"
        audit.add(Finding(0, "symbol", what))
    if not len(known):
        return
    first = days[known].min()
    key = codes[known] * (days[known].max() - first + 1) + days[known] - first
    if np.all(np.diff(key) > 0):
        return  # sorted by (symbol, date): nothing repeats, nothing is out of order
    check_repeats(known, key, days, codes, symbols, audit)
    check_order(known, days, codes, symbols, audit)


def check_repeats(
    known: NDArray[np.intp],
    key: NDArray[np.int64],
    days: NDArray[np.int64],
    codes: NDArray[np.int64],
    symbols: tuple[str, ...],
    audit: Audit,
) -> None:
    """Find every row that repeats a (date, symbol), and the row that had it first."""
    order = np.argsort(key, kind="stable")
    repeated = np.flatnonzero(np.diff(key[order]) == 0) + 1
    if not len(repeated):
        return
    _, begins = np.unique(key[order], return_index=True)
    group = np.searchsorted(begins, repeated, side="right") - 1
    rows, firsts = known[order[repeated]], known[order[begins[group]]]
    first_of = dict(zip(rows.tolist(), firsts.tolist(), strict=True))

    def describe(row: int) -> str:
        pair = f"({format_day(int(days[row]))}, {symbols[codes[row]]})"
        return f"{pair} is there twice, first in row {audit.numbers[first_of[row]]}"

    audit.add_rows("date, symbol", np.sort(rows), describe)


def check_order(
    known: NDArray[np.intp],
    days: NDArray[np.int64],
    codes: NDArray[np.int64],
    symbols: tuple[str, ...],
    audit: Audit,
) -> None:
    """Find every row whose date is before that of the symbol's previous row."""
    if np.all(np.diff(days[known]) >= 0):
        return
    order = known[np.argsort(codes[known], kind="stable")]
    back = (np.diff(days[order]) < 0) & (np.diff(codes[order]) == 0)
    above = dict(zip(order[1:][back].tolist(), order[:-1][back].tolist(), strict=True))

    def describe(row: int) -> str:
        before = above[row]
        return (
            f"{format_day(int(days[row]))} of {symbols[codes[row]]} comes after {format_day(int(days[before]))} "
            f"(row {audit.numbers[before]}): sort each symbol by date"
        )

    audit.add_rows("date", np.sort(order[1:][back]), describe)


def check_as_of(days: NDArray[np.int64], as_of: date, audit: Audit) -> None:
    """Find every row after the as-of date."""
    limit = int(np.datetime64(as_of, "D").astype(np.int64))
    audit.add_rows(
        "date",
        np.flatnonzero(days > limit),
        lambda row: f"{format_day(int(days[row]))} is after the as-of date, {as_of}",
    )


def format_day(day: int) -> str:
    """Return a day number as an ISO date."""
    return str(np.datetime64(day, "D"))
