"""The cells of a price table, row by row, and everything that can be wrong in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .errors import Audit, Finding, format_count, quote_cell, unusable_error
from .forms.arrays import is_text
from .forms.days import MISSING_DAY, read_days
from .forms.known import KNOWN_COLUMN, find_early, read_known_days
from .forms.names import FIELD_NAME, UNNAMED, VENDOR_FIELDS, VENDOR_NAMES
from .forms.numbers import DECIMAL_COMMA, DECIMAL_QUESTION, looks_numeric, read_number_columns
from .panel import PRICE_FIELDS, REQUIRED_FIELDS
from .reading import Reading
from .table import Table, encode_words, find_missing_columns, read_symbols

CONTRADICTION = "with other figures than an earlier one of the same cell: only the source says which is right"
WITHIN_DAY = (
    "one row a day and symbol is read, and these are bars within a day: make one row of each day, with its first open, "
    "highest high, lowest low, last close and the sum of its volumes"
)
ZERO_VOLUME = "their size is taken as their sector's mean, which changes scores: give their volume, or a column cap"
MIN_VOLUMES, MIN_FINE_SHARE = 20, 0.5
"""Volumes from which on, and share with a third digit, that may be thousands."""
MEMBER_COLUMN = "in_universe"
MEMBER_NOTE = "universe: in_universe"
MEMBER_WORDS = dict.fromkeys(("true", "1", "1.0", "yes"), True) | dict.fromkeys(("false", "0", "0.0", "no"), False)
ONE_SYMBOL = (
    "; the table is of one symbol: put one such file for each symbol into a folder, named SYMBOL.csv, "
    "and give the folder"
)
SEVERAL_SYMBOLS = "; each date is there several times, so a column has to say of which symbol a row is"
FETCH_ADVICE = (
    "a position is filled at the next open, and formulas read highs, lows and volumes: take them from where the closes "
    "come from, or fetch them: alphaloom data fetch TICKERS --since YEAR"
)
OTHER_TABLES: Mapping[str, tuple[tuple[str, ...], str]] = {
    "members": (("symbol", "from", "to"), "members"),
    "symbol_changes": (("symbol", "new_symbol"), "symbol changes"),
    "fundamentals": (("symbol", KNOWN_COLUMN), "figures with the day on which they became known"),
    "actions": (("date", "symbol", "dividend"), "dividends and splits"),
    "sectors": (("symbol", "sector"), "sectors"),
}
"""Tables that stand beside the prices: their setting, the columns that show them, and what they are of."""


@dataclass(frozen=True)
class Prices:
    """The cells of a price table.

    Attributes
    ----------
    days, codes : NDArray[np.int64]
        Day number and symbol code of each row `[rows]`.
    symbols : tuple of str
        The symbols that the codes stand for, sorted.
    fields : dict of str to NDArray[np.float64]
        One array `[rows]` a field.
    notes : tuple of str
        What was inferred and what was left out.
    member : NDArray[np.bool_], optional
        `[rows]`: the symbol was in the universe that day; None where the table does not say it.
    known : NDArray[np.int64], optional
        `[rows]`: the day number since which the row's figures are known; None where the table does not say it.
    """

    days: NDArray[np.int64]
    codes: NDArray[np.int64]
    symbols: tuple[str, ...]
    fields: dict[str, NDArray[np.float64]]
    notes: tuple[str, ...]
    member: NDArray[np.bool_] | None = None
    known: NDArray[np.int64] | None = None

    def take(self, rows: NDArray[np.intp]) -> Prices:
        """Return some of the rows."""
        return replace(
            self,
            days=self.days[rows],
            codes=self.codes[rows],
            fields={name: values[rows] for name, values in self.fields.items()},
            member=None if self.member is None else self.member[rows],
            known=None if self.known is None else self.known[rows],
        )


def read_tidy(table: Table, audit: Audit, derive: Mapping[str, str] = MappingProxyType({})) -> Prices:
    """Read every column of a tidy table and add all mistakes to the audit; unreadable cells are missing."""
    refuse_other_table(table)
    missing = find_missing_columns(table, ("date", "symbol", *REQUIRED_FIELDS))
    lacking = {finding.column for finding in missing if "if it is" not in finding.message}
    if lacking >= {"open", "high", "low"} and "close" not in lacking:
        missing.append(Finding(0, "", f"the table has closes only; {FETCH_ADVICE}"))
    if [finding.column for finding in missing] == ["symbol"] and "say columns" not in missing[0].message:
        of_one = len(pc.unique(table.columns["date"])) == table.rows
        missing = [replace(missing[0], message=missing[0].message + (ONE_SYMBOL if of_one else SEVERAL_SYMBOLS))]
    audit.add(*table.clashes, *missing)
    audit.needs_setting |= any("say columns" in finding.message for finding in missing)
    audit.add_broken(table.broken)
    audit.notes += table.notes
    if table.rows == 0:
        audit.add(Finding(0, "", "the file has no rows"))
        return Prices(np.zeros(0, np.int64), np.zeros(0, np.int64), (), {}, ())
    absent = np.full(table.rows, MISSING_DAY)
    days = read_days(table, "date", audit) if "date" in table.columns else absent
    codes, symbols = read_symbols(table, "symbol", audit) if "symbol" in table.columns else (absent, ())
    member = read_membership(table, audit)
    fields = read_fields(table, audit, derive)
    known = read_known_days(table, audit) if KNOWN_COLUMN in table.columns else None
    if known is not None:
        find_early(known, days, "its date", audit)
    return Prices(days, codes, symbols, fields, tuple(audit.notes), member, known)


def refuse_other_table(table: Table) -> None:
    """Refuse a table that stands beside the prices, and say where it belongs.

    Raises
    ------
    PanelError
        The table has no price, and the columns of such a table.
    """
    if {*PRICE_FIELDS} & {*table.columns}:
        return
    for setting, (columns, content) in OTHER_TABLES.items():
        if {*columns} <= {*table.columns}:
            what = f"this is a table of {content} ({', '.join(columns)}), not of prices"
            hint = (
                "Give the prices, and this file beside them: "
                f"market: {{panel: PRICES, {setting}: {table.path.name}}} in a campaign file."
            )
            raise unusable_error(table.path, what, hint)


def check_cells(prices: Prices, as_of: date | None, audit: Audit, reading: Reading) -> Prices:
    """Add everything that is wrong in the cells to the audit, and return them without rows that repeat another one."""
    check_values(prices.fields, audit)
    if not reading.decimal:
        ask_about_thousands(prices, audit)
    prices = check_rows(prices, reading.duplicates, audit)
    if as_of is not None:
        check_as_of(prices.days, as_of, audit)
    return replace(prices, notes=(*prices.notes, *note_empty_fields(prices)))


def read_fields(table: Table, audit: Audit, derive: Mapping[str, str]) -> dict[str, NDArray[np.float64]]:
    """Read the required and the extra numeric columns; the notes name the extra columns left out, with the reason."""
    chosen: dict[str, pa.ChunkedArray] = {}
    needed = {rule.replace(" ", "") for rule in derive.values()}
    for name, column in table.columns.items():
        field = VENDOR_NAMES.get(name, "")
        if name in ("date", "symbol", MEMBER_COLUMN, KNOWN_COLUMN) or field in table.columns:
            continue
        if field in needed:
            chosen[field] = column
            continue
        if field:
            audit.notes.append(f"{field}: left out, {VENDOR_FIELDS[field]}")
            continue
        reason = "" if name in REQUIRED_FIELDS else explain_ignored_column(table, name)
        if reason:
            audit.notes.append(f"{name}: column ignored, {reason}")
        else:
            chosen[name] = column
    fields = read_number_columns(table, chosen, audit)
    refused = {finding.column for finding in audit.findings}
    undecided = any(DECIMAL_QUESTION in finding.message for finding in audit.findings)  # then no text is a number yet
    for name in REQUIRED_FIELDS if not undecided else ():
        if name in fields and name not in refused and not np.isfinite(fields[name]).any():
            audit.add(Finding(0, name, "the column holds no number at all"))
    return fields


def ask_about_thousands(prices: Prices, audit: Audit) -> None:
    """Ask what the points of volumes such as 575.408 are, where all volumes are like that."""
    if "volume" not in prices.fields or not (example := find_thousands(prices.fields["volume"])):
        return
    mark = "comma" if any(note.startswith(DECIMAL_COMMA) for note in prices.notes) else "point"
    audit.ask(
        "volume",
        f"every cell is below 1,000 with three digits behind its {mark}, such as {example}: if these are thousands, "
        f"write the volumes without a mark between them; if they are decimals, say decimal: {mark}",
    )


def find_thousands(volume: NDArray[np.float64]) -> str:
    """Return an example of volumes whose points may stand between thousands; empty where they do not look like it."""
    if (volume >= 1000).any():
        return ""
    known = volume[np.isfinite(volume) & (volume > 0)]
    thousands = known * 1000.0
    whole = np.abs(thousands - np.rint(thousands)) < 1e-6
    fine = np.rint(thousands) % 10 != 0  # the third digit counts, as in nine of ten such numbers
    if known.size < MIN_VOLUMES or not whole.all() or fine.mean() < MIN_FINE_SHARE:
        return ""
    return f"{known[fine][0]:.3f}"


def explain_ignored_column(table: Table, name: str) -> str:
    """Return why an extra column cannot be a field; empty if it can."""
    column = table.columns[name]
    if name == "returns":
        return "returns are computed from close"
    if name.startswith(UNNAMED.format("")):
        return f"it has no name; columns: {{FIELD: {name}}} gives it one"
    if not FIELD_NAME.fullmatch(name):
        return "a field's name is letters, digits and underscores"
    if pa.types.is_floating(column.type) or pa.types.is_integer(column.type) or pa.types.is_decimal(column.type):
        return ""
    if not table.from_text:
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        return f"it holds {kind}, not numbers"
    return "" if looks_numeric(column) else "it holds text"


def read_membership(table: Table, audit: Audit) -> NDArray[np.bool_] | None:
    """Return the column `in_universe` `[rows]`; None if the table has none."""
    column = table.columns.get(MEMBER_COLUMN)
    if column is None:
        return None
    audit.notes.append(MEMBER_NOTE)
    codes, words = encode_words(column if is_text(column.type) else column.cast(pa.string()))
    values = [MEMBER_WORDS.get(word.strip().lower()) for word in words]
    known = np.array([value is not None for value in values] + [False])
    audit.add_rows(
        MEMBER_COLUMN,
        np.flatnonzero(~known[codes]),
        lambda row: f"{quote_cell(words[codes[row]] if codes[row] >= 0 else '')} is neither true nor false",
    )
    return np.array([bool(value) for value in values] + [False])[codes]


def check_values(fields: dict[str, NDArray[np.float64]], audit: Audit) -> None:
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


def check_rows(prices: Prices, duplicates: str, audit: Audit) -> Prices:
    """Find repeated (date, symbol) pairs and a panel of one symbol; return the rows that are kept.

    The order of the rows means nothing: each has its cell in the panel.
    """
    if len(prices.symbols) == 1:
        what = (
            f"{prices.symbols[0]!r} is the only symbol; a panel compares names on the same day and needs at least two: "
            "put one such file for each symbol into a folder, named SYMBOL.csv, and give the folder"
        )
        audit.add(Finding(0, "symbol", what))
    known = np.flatnonzero((prices.days != MISSING_DAY) & (prices.codes >= 0))
    if not len(known):
        return prices
    key = _number_cells(prices, known)
    if _are_distinct(key, len(prices.symbols)):
        return prices
    order = np.argsort(key, kind="stable")
    repeated = np.flatnonzero(np.diff(key[order]) == 0) + 1
    _, begins = np.unique(key[order], return_index=True)
    group = np.searchsorted(begins, repeated, side="right") - 1
    return _judge_repeats(prices, known[order[repeated]], known[order[begins[group]]], duplicates, audit)


def _number_cells(prices: Prices, known: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return a number for the cell of each known row; rows of one symbol and day have the same."""
    days = prices.days if len(known) == len(prices.days) else prices.days[known]
    codes = prices.codes if len(known) == len(prices.codes) else prices.codes[known]
    return np.asarray((days - days.min()) * len(prices.symbols) + codes, np.int64)


def _are_distinct(key: NDArray[np.int64], symbols: int) -> bool:
    """Return whether no cell occurs twice: by their order, or by marking each, if that takes little memory."""
    if np.all(key[1:] > key[:-1]):
        return True
    span = int(key.max()) + 1
    if span > 16 * len(key) + symbols:
        return len(np.unique(key)) == len(key)
    seen = np.zeros(span, np.bool_)
    seen[key] = True
    return int(np.count_nonzero(seen)) == len(key)


def _judge_repeats(
    prices: Prices, rows: NDArray[np.intp], firsts: NDArray[np.intp], duplicates: str, audit: Audit
) -> Prices:
    """Return the rows without those that equal an earlier one, if the settings say so; the others are findings."""
    equal = np.ones(len(rows), np.bool_)
    for values in prices.fields.values():
        equal &= (values[rows] == values[firsts]) | (np.isnan(values[rows]) & np.isnan(values[firsts]))
    if prices.member is not None:
        equal &= prices.member[rows] == prices.member[firsts]
    if prices.known is not None:
        equal &= prices.known[rows] == prices.known[firsts]
    first_of = dict(zip(rows.tolist(), firsts.tolist(), strict=True))

    def describe(row: int) -> str:
        pair = f"({format_day(int(prices.days[row]))}, {prices.symbols[prices.codes[row]]})"
        return f"{pair} is there twice, first in row {audit.numbers[first_of[row]]}"

    def compare(row: int) -> str:
        return f"{describe(row)}, with {_name_difference(prices, row, first_of[row])}"

    if audit.within_day:
        audit.total += len(rows)
        audit.findings.append(Finding(0, "date, symbol", f"{describe(int(rows[0]))}: {WITHIN_DAY}"))
        return prices
    audit.add_rows("date, symbol", np.sort(rows[~equal]), compare)
    if not equal.all():
        audit.findings.append(Finding(0, "date, symbol", f"{format_count(int((~equal).sum()), 'row')} {CONTRADICTION}"))
    if duplicates == "drop_equal":
        kept = np.setdiff1d(np.arange(len(prices.days)), rows[equal])
        note = f"duplicates: {format_count(int(equal.sum()), 'row')} that repeat another one left out"
        audit.keep(kept)
        return replace(prices.take(kept), notes=(*prices.notes, note)) if equal.any() else prices
    audit.add_rows("date, symbol", np.sort(rows[equal]), describe)
    if equal.any():
        audit.needs_setting = True
        count = format_count(int(equal.sum()), "row")
        advice = f"{count} equal to another one in every cell: say duplicates: drop_equal"
        audit.findings.append(Finding(0, "date, symbol", advice))
    return prices


def _name_difference(prices: Prices, row: int, first: int) -> str:
    """Return the first figure in which two rows differ, that of the later row before that of the earlier one."""
    for name, values in prices.fields.items():
        if not (values[row] == values[first] or (np.isnan(values[row]) and np.isnan(values[first]))):
            here, there = tell_apart(float(values[row]), float(values[first]))
            return f"{name} {here} here and {there} there"
    return f"another {MEMBER_COLUMN} or {KNOWN_COLUMN}"


def tell_apart(one: float, other: float) -> tuple[str, str]:
    """Return two numbers with six digits that count, or with as many as show that they differ."""
    pairs = ((f"{one:.{digits}g}", f"{other:.{digits}g}") for digits in (6, 10, 17))
    return next((pair for pair in pairs if pair[0] != pair[1]), (repr(one), repr(other)))


def check_as_of(days: NDArray[np.int64], as_of: date, audit: Audit) -> None:
    """Find every row after the as-of date."""
    limit = int(np.datetime64(as_of, "D").astype(np.int64))
    audit.add_rows(
        "date",
        np.flatnonzero(days > limit),
        lambda row: f"{format_day(int(days[row]))} is after the as-of date, {as_of}",
    )


def note_empty_fields(prices: Prices) -> list[str]:
    """Return a note for each field that some symbols have no value of at all, and for symbols that never trade."""
    if len(prices.symbols) < 2 or not len(prices.codes) or prices.codes.min() < 0:
        return []
    notes = []
    for name, values in prices.fields.items():
        known = ~np.isnan(values)
        if known.all() and name != "volume":
            continue
        some = np.bincount(prices.codes[known], minlength=len(prices.symbols)) > 0
        if some.any() and not some.all():
            notes.append(f"{name}: no value for {_list_symbols(prices, ~some)}")
        if name == "volume":
            traded = np.bincount(prices.codes[known & (values > 0)], minlength=len(prices.symbols)) > 0
            if (idle := some & ~traded).any():
                notes.append(f"volume: 0 on every day for {_list_symbols(prices, idle)}; {ZERO_VOLUME}")
    return notes


def _list_symbols(prices: Prices, chosen: NDArray[np.bool_]) -> str:
    """Return how many of the symbols are chosen, and the first three of them."""
    names = [prices.symbols[code] for code in np.flatnonzero(chosen).tolist()]
    more = ", ..." if len(names) > 3 else ""
    return f"{len(names)} of {len(chosen)} symbols: {', '.join(names[:3])}{more}"


def format_day(day: int) -> str:
    """Return a day number as an ISO date."""
    return str(np.datetime64(day, "D"))
