"""Symbols that changed, and companies that ended: a file of (date, symbol, new_symbol).

Rows of `symbol` before the day are those of `new_symbol`, so that a company is one series under its newest symbol. Rows
of the same symbol from that day on are another company's. With an empty `new_symbol` the company ended that day,
acquired or delisted: its series ends at its last price before, and later rows, which repeat that price, are left out.
Other files beside the prices are read by the same rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import Audit, Finding, format_count
from ..forms.arrays import is_text
from ..forms.days import read_days
from ..prices import Prices, format_day
from ..reading import AS_IT_STANDS, Reading
from ..table import (
    Table,
    encode_words,
    explain_bad_symbol,
    open_side_table,
    read_symbols,
)

SHOWN_CHANGES = 3
MISSING_CODE, LEFT_CODE = -2, -3
"""Codes of a symbol that no row has, and of a row between its symbols; -1 is a row without a symbol."""


@dataclass(frozen=True, eq=False)
class SymbolChanges:
    """Changes of symbols, by day.

    Attributes
    ----------
    name : str
        What notes call the file.
    days : tuple of int
        `[C]`: the first day of the new symbol, or without the company, as days since 1970-01-01; rising.
    symbols, successors : tuple of str
        `[C]`: the old symbol, and the new one; empty where the company ended.
    rows : tuple of int
        `[C]`: the data row in the file.
    """

    name: str
    days: tuple[int, ...]
    symbols: tuple[str, ...]
    successors: tuple[str, ...]
    rows: tuple[int, ...]

    @property
    def renames(self) -> tuple[tuple[str, str, str], ...]:
        """Return the ISO day, old and new symbol of each change, without companies that ended."""
        changes = zip(self.days, self.symbols, self.successors, strict=True)
        return tuple((format_day(day), old, new) for day, old, new in changes if new)

    def trace(self, symbols: Sequence[str], days: Sequence[int]) -> list[str]:
        """Return the newest symbol of what was called a symbol on a day, for each pair of them.

        Changes of one day happen at once: a symbol that is handed over on a day is not followed further on that day.
        """
        places: dict[str, list[int]] = {}
        for place, symbol in enumerate(self.symbols):
            places.setdefault(symbol, []).append(place)

        def follow(symbol: str, day: int) -> str:
            while True:
                coming = (at for at in places.get(symbol, ()) if day < self.days[at] and self.successors[at])
                change = next(coming, -1)
                if change < 0:
                    return symbol
                symbol, day = self.successors[change], self.days[change]

        return [follow(symbol, day) for symbol, day in zip(symbols, days, strict=True)]

    def join(self, prices: Prices, audit: Audit) -> Prices:
        """Return the rows under the newest symbols, without those of companies that had ended.

        An old and a new symbol with different prices on the same day are two companies, which is a finding. Changes of
        one day happen at once, in whatever order the file has them.
        """
        if not len(prices.days):
            return prices
        symbols = tuple(sorted({*prices.symbols, *filter(None, self.successors)}))
        place = {symbol: code for code, symbol in enumerate(symbols)}
        codes = np.array([*(place[symbol] for symbol in prices.symbols), -1], np.int64)[prices.codes]
        joined = _Joined(prices, place, codes, np.zeros(len(codes), np.bool_), _Notes(self.name), audit)
        changes = zip(self.days, self.symbols, self.successors, self.rows, strict=True)
        for day, of_day in groupby(changes, key=itemgetter(0)):
            joined.change(day, [(old, new, line) for _, old, new, line in of_day])
        notes = joined.notes.written()
        return _keep_rows(replace(prices, codes=joined.codes, symbols=symbols), ~joined.gone, notes, audit)


@dataclass
class _Joined:
    """The codes `[rows]` of a table's rows as they change, and which rows are left out."""

    prices: Prices
    place: Mapping[str, int]
    codes: NDArray[np.int64]
    gone: NDArray[np.bool_]
    notes: _Notes
    audit: Audit

    def change(self, day: int, changes: Sequence[tuple[str, str, int]]) -> None:
        """Apply the changes of one day, each an old symbol, a new one, and a row of the file."""
        arriving = {new for _, new, _ in changes if new}
        leaving = []
        for old, new, _ in changes:
            own = np.flatnonzero(self.codes == self.place.get(old, MISSING_CODE))
            before, after = own[self.prices.days[own] < day], own[self.prices.days[own] >= day]
            after = after[:0] if old in arriving else after  # they are of the company that has the symbol from now on
            self.notes.add(old, new, day, len(before), len(after))
            if new:
                self.codes[before] = LEFT_CODE
            elif len(before):
                self.gone[after] = True
            leaving.append(before)
        for before, (old, new, line) in zip(leaving, changes, strict=True):
            if not new:
                continue
            if clash := _find_clash(self.prices, before, np.flatnonzero(self.codes == self.place[new])):
                self.audit.add(Finding(line, f"{self.notes.name} new_symbol", f"{old} and {new} {clash}"))
            self.codes[before] = self.place[old if clash else new]


@dataclass
class _Notes:
    """What a file of changes did to a table of prices."""

    name: str
    renamed: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)

    def add(self, old: str, new: str, day: int, before: int, after: int) -> None:
        """Note one change, by the rows of the old symbol before its day and from it on."""
        if not before:
            self.absent.append(old)
        elif new:
            self.renamed.append(f"{old} to {new} on {format_day(day)}")
            self.others += [old] * (after > 0)
        else:
            self.ended.append(f"{old} on {format_day(day)} ({format_count(after, 'later row')} left out)")

    def written(self) -> tuple[str, ...]:
        """Return the notes."""
        parts = (
            (self.renamed, "series go on under a new symbol"),
            (self.ended, "companies ended"),
            (self.others, "old symbols have rows after their change, which are taken for another company"),
            (self.absent, "old symbols have no row before their day"),
        )
        return tuple(f"{self.name}: {len(cases)} {what}: {_shorten(cases)}" for cases, what in parts if cases)


def _shorten(cases: Sequence[str]) -> str:
    return ", ".join(cases[:SHOWN_CHANGES]) + (", ..." if len(cases) > SHOWN_CHANGES else "")


def _find_clash(prices: Prices, before: NDArray[np.intp], others: NDArray[np.intp]) -> str:
    """Return on which days two symbols have different closes; empty if on none. Equal rows are duplicates."""
    _, mine, theirs = np.intersect1d(prices.days[before], prices.days[others], return_indices=True)
    closes = prices.fields.get("close", np.zeros(len(prices.days)))
    apart = np.flatnonzero(closes[before[mine]] != closes[others[theirs]])
    if not len(apart):
        return ""
    first = format_day(int(prices.days[before[mine[apart[0]]]]))
    return (
        f"have different prices on {format_count(len(apart), 'day')}, such as {first}, so they are two companies: "
        "leave new_symbol empty if the one was acquired, or correct the date"
    )


def _keep_rows(prices: Prices, kept: NDArray[np.bool_], notes: tuple[str, ...], audit: Audit) -> Prices:
    """Return some of the rows, with the symbols that still have one."""
    rows = np.flatnonzero(kept)
    audit.keep(rows)
    prices = prices.take(rows)
    used = np.bincount(prices.codes[prices.codes >= 0], minlength=len(prices.symbols)) > 0
    codes = np.append(np.cumsum(used) - 1, -1)[prices.codes]
    symbols = tuple(symbol for symbol, there in zip(prices.symbols, used.tolist(), strict=True) if there)
    return replace(prices, codes=codes, symbols=symbols, notes=(*prices.notes, *notes))


def read_symbol_changes(path: Path, reading: Reading = AS_IT_STANDS) -> SymbolChanges:
    """Read a file with date, symbol and new_symbol.

    Raises
    ------
    PanelError
        With every finding in the file.
    """
    table, audit = open_side_table(path, reading, ("date", "symbol", "new_symbol"))
    days, (codes, words) = read_days(table, "date", audit), read_symbols(table, "symbol", audit)
    if not table.rows:
        audit.add(Finding(0, "", "the file has no rows"))
    successors = _read_successors(table, audit)
    symbols = [words[code] if code >= 0 else "" for code in codes.tolist()]
    same = np.array([bool(old) and old == new for old, new in zip(symbols, successors, strict=True)], np.bool_)
    audit.add_rows("new_symbol", np.flatnonzero(same), lambda row: f"{symbols[row]!r} is the old symbol")
    audit.refuse(str(path))
    order = np.argsort(days, kind="stable").tolist()
    return SymbolChanges(
        path.name,
        tuple(int(days[row]) for row in order),
        tuple(symbols[row] for row in order),
        tuple(successors[row] for row in order),
        tuple(int(table.row_numbers[row]) for row in order),
    )


def _read_successors(table: Table, audit: Audit) -> list[str]:
    """Return the new symbol of each row, empty where there is none."""
    column = table.columns["new_symbol"]
    if not is_text(column.type):
        if column.null_count < len(column):
            audit.add(Finding(0, "new_symbol", f"the column holds {column.type}, not text"))
        return [""] * len(column)
    codes, words = encode_words(column)
    problems = [explain_bad_symbol(word) for word in words] + [""]
    bad = np.flatnonzero(np.array([bool(problem) for problem in problems])[codes])
    audit.add_rows("new_symbol", bad, lambda row: problems[int(codes[row])])
    return [words[code] if code >= 0 else "" for code in codes.tolist()]
