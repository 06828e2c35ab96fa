"""Which stored windows share data with a given one: the same returns under any symbols and dates, or a day and a name."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

from .database.protocol import Transaction
from .digest import canonical_json, compute_digest
from .fingerprints import Days, Fingerprints, Match
from .records import Boundaries, WindowKey

WINDOW_COLUMNS = "dataset, first_day, last_day, names"
WINDOW_EDGES = ("search_end", "selection_start", "selection_end", "sealed_start", "sealed_end")
SLACK_DAYS = 7
"""How far the edges of one data set may lie apart that were carried over from other dates: a row that is missing on an edge."""


class NameLists:
    """Lists of names, stored once by digest: a window of 500 names costs one hash a row."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, ...]] = {}
        self.fingerprints = Fingerprints()

    def keep(self, session: Transaction, names: tuple[str, ...]) -> str:
        """Store a list of names, inside the caller's transaction, and return its digest."""
        body = canonical_json(names)
        name = compute_digest(body)
        session.execute("INSERT INTO name_lists VALUES (?, ?) ON CONFLICT DO NOTHING", (name, body))
        return name

    def read(self, session: Transaction, name: str) -> tuple[str, ...]:
        """Return the list with this digest."""
        if name not in self._known:
            (body,) = session.execute("SELECT body FROM name_lists WHERE digest = ?", (name,)).fetchone()
            self._known[name] = tuple(json.loads(body))
        return self._known[name]

    def window(self, session: Transaction, columns: tuple[Any, ...]) -> WindowKey:
        """Turn the four columns of a window into its record."""
        dataset, first_day, last_day, names = columns
        return WindowKey(dataset, first_day, last_day, self.read(session, names))

    def overlapping(self, session: Transaction, table: str, window: WindowKey, until: str = "") -> list[int]:
        """Return the ids of the rows whose window shares returns, or a day and a name, with a window; oldest first.

        `until` asks what was known at a moment: fingerprints that were stored later do not count.
        """
        rows = session.execute(f"SELECT id, names, first_day, last_day FROM {table} ORDER BY id").fetchall()
        shares = self._sharing(session, window, until)
        spans = {span: shares(*span) for span in {(names, first, last) for _, names, first, last in rows}}
        return [row for row, *span in rows if spans[tuple(span)]]

    def _sharing(self, session: Transaction, window: WindowKey, until: str) -> Callable[[str, str, str], bool]:
        """Return what tells whether another window, as list, first and last day, shares data with this one."""
        wanted, own = frozenset(window.names), self.content(session, window, until)

        def shares(names: str, first: str, last: str) -> bool:
            same_days = first <= window.last_day and last >= window.first_day
            if same_days and not wanted.isdisjoint(self.read(session, names)):
                return True
            match = self.fingerprints.match(own, self.fingerprints.stored(session, names, until=until))
            return match.within((window.first_day, window.last_day), (first, last))

        return shares

    def content(self, session: Transaction, window: WindowKey, until: str = "") -> Days:
        """Return the returns of a window's data: those that it brings along, else what is stored of its names."""
        if window.fingerprint:
            return self.fingerprints.given(window.fingerprint)
        return self.fingerprints.stored(session, compute_digest(canonical_json(window.names)), until=until)

    def known_as(self, session: Transaction, window: WindowKey) -> tuple[str, str] | None:
        """Return a day and the other day under which the same returns were stored first; None where the days are the same."""
        own = self.content(session, window)
        for names, series in self.fingerprints.all_series(session):
            if match := self.fingerprints.match(own, self.fingerprints.stored(session, names, series)):
                return None if match.same_days else max(match.pairs, key=lambda pair: (match.pairs[pair], pair))
        return None

    def subjects(self, session: Transaction, table: str, window: WindowKey) -> set[str]:
        """Return what was looked at in windows that share data with this one."""
        return set(read_column(session, table, "subject", self.overlapping(session, table, window)))

    def columns(self, session: Transaction, window: WindowKey) -> tuple[str, str, str, str]:
        """Return a window as its four columns."""
        return window.dataset, window.first_day, window.last_day, self.keep(session, window.names)

    def carried(
        self, session: Transaction, fixed: Boundaries, series: int, span: WindowKey
    ) -> tuple[Boundaries, bool] | None:
        """Return stored edges on the days of a span's data, and whether its returns said where they lie; None: other data.

        Edges that were fixed before there were fingerprints, and so have no series, hold by names and days alone.
        """
        stored = (
            self.fingerprints.stored(session, compute_digest(canonical_json(fixed.names)), series) if series else {}
        )
        match = self.fingerprints.match(self.content(session, span), stored)
        if match:
            return _move_edges(fixed, match), True
        same_days = fixed.first_day <= span.last_day and fixed.sealed_end >= span.first_day
        return (fixed, False) if same_days and not set(span.names).isdisjoint(fixed.names) else None


def _move_edges(fixed: Boundaries, match: Match) -> Boundaries:
    """Return edges on the days on which the same returns stand elsewhere."""
    days: dict[str, Any] = {
        name: match.own_day(getattr(fixed, name), first=not name.endswith("_end"))
        for name in ("first_day", *WINDOW_EDGES)
    }
    return replace(fixed, **days)


def disagree(one: tuple[Boundaries, bool], other: tuple[Boundaries, bool]) -> bool:
    """Tell whether two say something else of where windows lie; a week is allowed between what was carried over."""
    by_returns = one[1] or other[1]
    slack, names = (SLACK_DAYS, WINDOW_EDGES) if by_returns else (0, ("first_day", *WINDOW_EDGES))
    days = [[date.fromisoformat(getattr(each, name)) for name in names] for each in (one[0], other[0])]
    return any(abs((mine - theirs).days) > slack for mine, theirs in zip(*days, strict=True))


def read_column(session: Transaction, table: str, name: str, rows: list[int]) -> list[Any]:
    """Return what some rows hold in one column, in one question to the database however many they are."""
    wanted = set(rows)
    if not wanted:
        return []
    return [value for row, value in session.execute(f"SELECT id, {name} FROM {table}").fetchall() if row in wanted]
