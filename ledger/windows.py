"""Which stored windows share a day and a name with a given one."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from .digest import canonical_json, digest
from .records import WindowKey

COLUMNS = "dataset, first_day, last_day, names"


class NameLists:
    """Lists of names, stored once by digest: a window of 500 names costs one hash a row."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, ...]] = {}

    def keep(self, connection: sqlite3.Connection, names: tuple[str, ...]) -> str:
        """Store a list of names, inside the caller's transaction, and return its digest."""
        body = canonical_json(names)
        name = digest(body)
        connection.execute("INSERT INTO name_lists VALUES (?, ?) ON CONFLICT DO NOTHING", (name, body))
        return name

    def read(self, connection: sqlite3.Connection, name: str) -> tuple[str, ...]:
        """Return the list with this digest."""
        if name not in self._known:
            (body,) = connection.execute("SELECT body FROM name_lists WHERE digest = ?", (name,)).fetchone()
            self._known[name] = tuple(json.loads(body))
        return self._known[name]

    def window(self, connection: sqlite3.Connection, columns: tuple[Any, ...]) -> WindowKey:
        """Turn the four columns of a window into its record."""
        dataset, first_day, last_day, names = columns
        return WindowKey(dataset, first_day, last_day, self.read(connection, names))

    def overlapping(self, connection: sqlite3.Connection, table: str, window: WindowKey) -> list[int]:
        """Return the ids of the rows whose window shares at least one day and one name, oldest first."""
        query = f"SELECT id, names FROM {table} WHERE first_day <= ? AND last_day >= ? ORDER BY id"
        rows = connection.execute(query, (window.last_day, window.first_day)).fetchall()
        wanted = frozenset(window.names)
        shares: dict[str, bool] = {}
        for _, names in rows:
            if names not in shares:
                shares[names] = not wanted.isdisjoint(self.read(connection, names))
        return [row for row, names in rows if shares[names]]

    def subjects(self, connection: sqlite3.Connection, table: str, window: WindowKey) -> set[str]:
        """Return what was looked at in windows that share at least one day and one name."""
        found = self.overlapping(connection, table, window)
        query = f"SELECT subject FROM {table} WHERE id = ?"
        return {str(connection.execute(query, (row,)).fetchone()[0]) for row in found}

    def columns(self, connection: sqlite3.Connection, window: WindowKey) -> tuple[str, str, str, str]:
        """Return a window as its four columns."""
        return window.dataset, window.first_day, window.last_day, self.keep(connection, window.names)
