"""Who was in the universe on which day: a file of (symbol, from, to), point in time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import Audit, Finding
from ..forms.arrays import find_empty
from ..forms.days import MISSING_DAY, read_days
from ..panel import Panel
from ..reading import AS_IT_STANDS, Reading
from ..table import Table, open_side_table, read_symbols
from .symbol_changes import SymbolChanges

MEMBERS_NOTE = "universe: members"
SHOWN_SYMBOLS = 3
NEVER_ENDS = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Membership:
    """Spans of membership, one row a symbol and span.

    Attributes
    ----------
    symbols : tuple of str
        `[M]`.
    first, last : NDArray[np.int64]
        `[M]`: the first and the last day of each span, both included, as days since 1970-01-01.
    """

    symbols: tuple[str, ...]
    first: NDArray[np.int64]
    last: NDArray[np.int64]

    def follow(self, changes: SymbolChanges) -> Membership:
        """Return the spans under the newest symbols: a span is of what its symbol meant on its first day."""
        return replace(self, symbols=tuple(changes.trace(self.symbols, self.first.tolist())))

    def restrict(self, panel: Panel) -> NDArray[np.bool_]:
        """Return the panel's universe without the days on which a symbol was no member `[T, N]`."""
        days = panel.dates.astype(np.int64)
        column = {symbol: place for place, symbol in enumerate(panel.symbols)}
        member = np.zeros((panel.days, panel.names), np.bool_)
        for symbol, first, last in zip(self.symbols, self.first.tolist(), self.last.tolist(), strict=True):
            if (place := column.get(symbol)) is not None:
                member[np.searchsorted(days, first) : np.searchsorted(days, last, side="right"), place] = True
        return np.asarray(panel.universe & member)

    def describe(self, panel: Panel, name: str) -> list[str]:
        """Return notes: what the universe is, members without a price, and symbols that never were members."""
        members, priced = set(self.symbols), set(panel.symbols)
        notes = [MEMBERS_NOTE]
        for absent, what in (
            (sorted(members - priced), "members have no price in the table: results are those of the others"),
            (sorted(priced - members), "symbols of the table never were members"),
        ):
            if absent:
                more = ", ..." if len(absent) > SHOWN_SYMBOLS else ""
                notes.append(f"{name}: {len(absent)} {what}: {', '.join(absent[:SHOWN_SYMBOLS])}{more}")
        return notes


def read_membership_file(path: Path, reading: Reading = AS_IT_STANDS) -> Membership:
    """Read a file with symbol, from and to; an empty `to` means until today.

    Raises
    ------
    PanelError
        With every finding in the file.
    """
    table, audit = open_side_table(path, reading, ("symbol", "from", "to"))
    codes, words = read_symbols(table, "symbol", audit)
    first = read_days(table, "from", audit)
    last = _read_ends(table, audit)
    audit.add_rows("to", np.flatnonzero(last < first), lambda row: "the last day is before the first")
    if not len(codes):
        audit.add(Finding(0, "", "the file has no rows"))
    audit.refuse(str(path))
    return Membership(tuple(words[code] for code in codes), first, last)


def _read_ends(table: Table, audit: Audit) -> NDArray[np.int64]:
    """Return the last day of each span; an empty cell never ends."""
    column = table.columns["to"]
    empty = find_empty(column) | np.array([not str(cell or "").strip() for cell in column.to_pylist()], np.bool_)
    own = Audit(table.row_numbers)
    days = read_days(table, "to", own) if not empty.all() else np.full(table.rows, MISSING_DAY)
    own.findings = [finding for finding in own.findings if "the cell is empty" not in finding.message]
    audit.add(*own.findings)
    audit.needs_setting |= own.needs_setting
    return np.where(empty, NEVER_ENDS, days)
