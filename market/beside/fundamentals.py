"""Figures that become known on a day of their own: earnings, book values, analysts' means.

A row holds for a symbol and a period, and says since which day it is known. On a day of the panel the value of a field
is that of the latest period known by then, in its latest statement known by then: a figure that is restated later
changes from the day of its restatement on, and a late statement of an older period changes nothing. A value is known
from the close of its day on; a row with a time of day, such as a filing in the evening, from the next day on. An empty
cell states nothing. A value stands only in cells that have a price row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import Audit, Finding, format_count
from ..forms.days import read_days
from ..forms.known import KNOWN_COLUMN, find_early, read_known_days
from ..forms.names import FIELD_NAME
from ..forms.numbers import read_number_columns
from ..panel import PRICE_FIELDS, Panel
from ..prices import Prices, explain_ignored_column
from ..reading import AS_IT_STANDS, Reading
from ..table import Table, open_side_table, read_symbols
from .symbol_changes import SymbolChanges

PERIOD_COLUMN = "period"
FUNDAMENTALS_NOTE = "fundamentals: known"
KNOWN_EARLY = "are known on the last day of their period"
MIN_EARLY_SHARE, MIN_QUARTER_DAYS = 0.9, 85
MARKET_FIELDS = (*PRICE_FIELDS, "volume", "close_raw", "vwap", "amount", "cap", "adj_factor", "adj_close")
"""Fields of a price row that are known at its close, whatever its column `known` says."""


@dataclass(frozen=True, eq=False)
class Fundamentals:
    """Statements, one row a symbol and period.

    Attributes
    ----------
    symbols : tuple of str
        The symbols that the codes stand for.
    codes, known, period : NDArray[np.int64]
        `[R]`: symbol, first day on which the row is known, and end of the period (or 0), in days since 1970-01-01.
    fields : dict of str to NDArray[np.float64]
        `[R]`: the stated values, NaN where a row states nothing.
    notes : tuple of str
        What was inferred.
    """

    symbols: tuple[str, ...]
    codes: NDArray[np.int64]
    known: NDArray[np.int64]
    period: NDArray[np.int64]
    fields: dict[str, NDArray[np.float64]]
    notes: tuple[str, ...] = ()

    def spread(self, dates: NDArray[np.datetime64], symbols: tuple[str, ...]) -> dict[str, NDArray[np.float64]]:
        """Return each field as it was known on each day `[T, N]`, NaN before the first statement."""
        place = {symbol: column for column, symbol in enumerate(symbols)}
        column = np.array([place.get(symbol, -1) for symbol in self.symbols] + [-1])[self.codes]
        row = np.searchsorted(dates.astype(np.int64), self.known)
        usable = (column >= 0) & (row < len(dates))
        order = np.lexsort((self.period, self.known, column))
        order = order[usable[order]]
        return {
            name: _carry_forward(
                values, row, column, self._find_latest(values, column, order), (len(dates), len(symbols))
            )
            for name, values in self.fields.items()
        }

    def _find_latest(
        self, values: NDArray[np.float64], column: NDArray[np.int64], order: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        """Return the rows, by symbol and day, that state a value of the latest period known by then."""
        order = order[~np.isnan(values[order])]
        kept = []
        for rows in np.split(order, np.flatnonzero(np.diff(column[order])) + 1):
            periods = self.period[rows]
            kept.append(rows[periods >= np.maximum.accumulate(periods)] if len(rows) else rows)
        return np.concatenate(kept)


def _carry_forward(
    values: NDArray[np.float64],
    row: NDArray[np.intp],
    column: NDArray[np.int64],
    rows: NDArray[np.intp],
    shape: tuple[int, int],
) -> NDArray[np.float64]:
    """Return the stated values from their day on, each until the next one `[T, N]`."""
    out = np.full(shape, np.nan)
    out[row[rows], column[rows]] = values[rows]  # in the order of their days: the last statement of a day stands
    stated = ~np.isnan(out)
    latest = np.maximum.accumulate(np.where(stated, np.arange(shape[0])[:, None], -1), axis=0)
    return np.where(latest >= 0, np.take_along_axis(out, np.maximum(latest, 0), axis=0), np.nan)


def add_fundamentals(panel: Panel, stated: Fundamentals) -> dict[str, NDArray[np.float64]]:
    """Return the fields of a panel with what was known of its symbols, in cells that have a price row."""
    there = np.zeros((panel.days, panel.names), np.bool_)
    for name in (*PRICE_FIELDS, "volume"):
        there |= ~np.isnan(panel.fields[name])
    known = stated.spread(panel.dates, panel.symbols)
    return {**panel.fields, **{name: np.where(there, values, np.nan) for name, values in known.items()}}


def take_known_columns(prices: Prices) -> Fundamentals:
    """Return the figures of a price table with a column `known`: each row is a statement for its date."""
    known = prices.days if prices.known is None else prices.known
    fields = {name: values for name, values in prices.fields.items() if name not in MARKET_FIELDS}
    note = f"{', '.join(fields)}: as known each day" if fields else "known: no column of figures"
    return Fundamentals(prices.symbols, prices.codes, known, prices.days, fields, (FUNDAMENTALS_NOTE, note))


def read_fundamentals(
    path: Path, panel: Panel, reading: Reading = AS_IT_STANDS, changes: SymbolChanges | None = None
) -> Fundamentals:
    """Read a file with symbol, known, if wanted period, and columns of figures.

    Parameters
    ----------
    path
        Parquet or CSV.
    panel
        The panel that the figures enter. A column named as one of its fields is a finding, and so is a file without
        any of its symbols.
    reading
        How the file is written.
    changes
        Changes of symbols: a row is of what its symbol meant on the day since which it is known.

    Raises
    ------
    PanelError
        With every finding in the file.
    """
    table, audit = open_side_table(path, reading, ("symbol", KNOWN_COLUMN))
    codes, symbols = read_symbols(table, "symbol", audit)
    known = read_known_days(table, audit)
    if changes is not None:
        codes, symbols = _follow(changes, codes, symbols, known)
    period = read_days(table, PERIOD_COLUMN, audit) if PERIOD_COLUMN in table.columns else np.zeros_like(known)
    fields = _read_figures(table, tuple(panel.fields), audit)
    _check_symbols(symbols, panel, audit)
    if PERIOD_COLUMN in table.columns:
        find_early(known, period, "the end of its period", audit)
    stated = Fundamentals(symbols, codes, known, period, fields)
    _find_contradictions(stated, audit)
    audit.refuse(str(path))
    note = f"{path.name}: {', '.join(fields)} as known each day"
    early = _note_early(path.name, stated)
    return replace(stated, notes=(FUNDAMENTALS_NOTE, note, *early, *audit.notes))


def _note_early(name: str, stated: Fundamentals) -> list[str]:
    """Return a note where nearly all rows are known on the last day of their period, on which no company reports.

    Without periods these are rows that are known on the last day of a month, a quarter and more apart.
    """
    if stated.period.any():
        early = stated.known <= stated.period
    else:
        tomorrow = (stated.known + 1).astype("datetime64[D]")
        early = tomorrow == tomorrow.astype("datetime64[M]").astype("datetime64[D]")
        order = np.lexsort((stated.known, stated.codes))
        gaps = np.diff(stated.known[order])[np.diff(stated.codes[order]) == 0]
        early &= bool(gaps.size) and np.median(gaps) >= MIN_QUARTER_DAYS
    if early.mean() < MIN_EARLY_SHARE:
        return []
    return [f"{name}: {int(early.sum()):,} of {format_count(len(early), 'row')} {KNOWN_EARLY}"]


def _follow(
    changes: SymbolChanges, codes: NDArray[np.int64], symbols: tuple[str, ...], known: NDArray[np.int64]
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return codes and symbols of rows under the newest symbols."""
    named = np.flatnonzero(codes >= 0)
    newest = changes.trace([symbols[code] for code in codes[named].tolist()], known[named].tolist())
    words, places = np.unique(newest, return_inverse=True)
    followed = np.full(len(codes), -1, np.int64)
    followed[named] = places
    return followed, tuple(words.tolist())


def _check_symbols(symbols: tuple[str, ...], panel: Panel, audit: Audit) -> None:
    """Find a file that says nothing of any symbol of the panel: without rows, or spelled otherwise."""
    if not len(audit.numbers):
        audit.add(Finding(0, "", "the file has no rows"))
    elif symbols and not set(symbols) & set(panel.symbols):
        what = f"none of the prices' {panel.names} symbols has a row here, such as {panel.symbols[0]!r}"
        audit.add(Finding(0, "symbol", f"{what}; it begins with {symbols[0]!r}"))


def _find_contradictions(stated: Fundamentals, audit: Audit) -> None:
    """Find values that differ from another one for the same symbol and period, known since the same day."""
    keys = (stated.codes, stated.known, stated.period)
    order = np.lexsort(keys)
    order = order[stated.codes[order] >= 0]
    for name, values in stated.fields.items():
        rows = order[~np.isnan(values[order])]
        again = np.logical_and.reduce([key[rows[1:]] == key[rows[:-1]] for key in keys])
        places = np.flatnonzero(again & (values[rows[1:]] != values[rows[:-1]]))
        before = {int(rows[place + 1]): int(rows[place]) for place in places.tolist()}

        def describe(row: int, values: NDArray[np.float64] = values, before: dict[int, int] = before) -> str:
            other = before[row]
            what = f"{values[row]:g} of {stated.symbols[stated.codes[row]]}"
            since = np.datetime64(int(stated.known[row]), "D")
            return (
                f"{what} counts from {since} on, and so does {values[other]:g} of row {audit.numbers[other]}: keep one"
            )

        audit.add_rows(name, np.sort(rows[places + 1]), describe)


def _read_figures(table: Table, taken: tuple[str, ...], audit: Audit) -> dict[str, NDArray[np.float64]]:
    """Read the columns of figures; text is left out with a note, and a name that is taken is a finding."""
    chosen = {}
    for name, column in table.columns.items():
        if name in ("symbol", KNOWN_COLUMN, PERIOD_COLUMN, "date"):
            continue
        if name in taken or not FIELD_NAME.fullmatch(name):
            what = "the panel has this field already" if name in taken else "a field's name is a to z, 0 to 9 and _"
            audit.add(Finding(0, name, f"{what}: rename the column"))
        elif reason := explain_ignored_column(table, name):
            audit.notes.append(f"{name}: column ignored, {reason}")
        else:
            chosen[name] = column
    if not chosen and not audit.findings:
        audit.add(Finding(0, "", "the file has no column of figures"))
    return read_number_columns(table, chosen, audit)
