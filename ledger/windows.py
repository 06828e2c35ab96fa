"""Which stored windows share a day and a name with a given one."""

from __future__ import annotations

import json
from typing import Any

from .database import Session
from .digest import canonical_json, digest
from .records import WindowKey

COLUMNS = "dataset, first_day, last_day, names"


class NameLists:
    """Lists of names, stored once by digest: a window of 500 names costs one hash a row."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, ...]] = {}

    def keep(self, session: Session, names: tuple[str, ...]) -> str:
        """Store a list of names, inside the caller's transaction, and return its digest."""
        body = canonical_json(names)
        name = digest(body)
        session.execute("INSERT INTO name_lists VALUES (?, ?) ON CONFLICT DO NOTHING", (name, body))
        return name

    def read(self, session: Session, name: str) -> tuple[str, ...]:
        """Return the list with this digest."""
        if name not in self._known:
            (body,) = session.execute("SELECT body FROM name_lists WHERE digest = ?", (name,)).fetchone()
            self._known[name] = tuple(json.loads(body))
        return self._known[name]

    def window(self, session: Session, columns: tuple[Any, ...]) -> WindowKey:
        """Turn the four columns of a window into its record."""
        dataset, first_day, last_day, names = columns
        return WindowKey(dataset, first_day, last_day, self.read(session, names))

    def overlapping(self, session: Session, table: str, window: WindowKey) -> list[int]:
        """Return the ids of the rows whose window shares at least one day and one name, oldest first."""
        query = f"SELECT id, names FROM {table} WHERE first_day <= ? AND last_day >= ? ORDER BY id"
        rows = session.execute(query, (window.last_day, window.first_day)).fetchall()
        wanted = frozenset(window.names)
        shares: dict[str, bool] = {}
        for _, names in rows:
            if names not in shares:
                shares[names] = not wanted.isdisjoint(self.read(session, names))
        return [row for row, names in rows if shares[names]]

    def subjects(self, session: Session, table: str, window: WindowKey) -> set[str]:
        """Return what was looked at in windows that share at least one day and one name."""
        return set(column(session, table, "subject", self.overlapping(session, table, window)))

    def columns(self, session: Session, window: WindowKey) -> tuple[str, str, str, str]:
        """Return a window as its four columns."""
        return window.dataset, window.first_day, window.last_day, self.keep(session, window.names)


def column(session: Session, table: str, name: str, rows: list[int]) -> list[Any]:
    """Return what some rows hold in one column, in one question to the database however many they are."""
    wanted = set(rows)
    if not wanted:
        return []
    return [value for row, value in session.execute(f"SELECT id, {name} FROM {table}").fetchall() if row in wanted]
