"""All mistakes in a price file, found in one pass before any work is done."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .errors import Audit, Finding
from .panel import PRICE_FIELDS, REQUIRED_FIELDS
from .table import MISSING_DAY, Table, find_missing_columns, read_days, read_numbers, read_symbols

FIELD_NAME = r"[a-z_][a-z0-9_]*"


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
