"""The library of a workspace: which factors it keeps, what became of each, and what was seen of them on new days."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .database.protocol import Database, Transaction
from .database.register import Register
from .digest import canonical_json
from .records import JsonObject, LibraryRow, Sighting, StatusChange, WindowKey
from .windows import WINDOW_COLUMNS, NameLists


@dataclass(frozen=True)
class Pass:
    """What one look over new days brought of one factor: its days in order, and the window and panel they are of."""

    factor_id: str
    window: WindowKey
    sightings: Sequence[Sighting]
    about: JsonObject


class Library:
    """Keeps the factors, their standings and their sightings; all append-only, each write whole or not at all."""

    def __init__(self, database: Database, now: Callable[[], str]) -> None:
        self._database = database
        self._now = now
        self._names = NameLists()
        self._rows = Register(database, "library", LibraryRow, now)
        self._standings = Register(database, "standings", StatusChange, now)
        self._sightings = Register(database, "sightings", Sighting, now)

    def rows(self) -> list[LibraryRow]:
        """Return every factor that the library keeps, retired ones too, by id."""
        return self._rows.find("TRUE")

    def add(self, row: LibraryRow) -> bool:
        """Add a factor; one that is there stays as it is."""
        return self._rows.add(row, strict=False)

    def standings(self, factor_id: str | None = None) -> list[StatusChange]:
        """Return what became of one factor or of all, oldest first."""
        if factor_id is None:
            return self._standings.find("TRUE", order="seq")
        return self._standings.find("factor_id = ?", factor_id, order="seq")

    def sightings(self, factor_id: str) -> list[Sighting]:
        """Return what was seen of a factor on new days, by day."""
        return self._sightings.find("factor_id = ?", factor_id)

    def record(
        self, *, rows: Sequence[LibraryRow] = (), standings: Sequence[StatusChange] = (), passes: Sequence[Pass] = ()
    ) -> int:
        """Write factors, standings and looks in one transaction; return how many factors are new.

        What is there under the same key stays: a day that was seen is not seen again.
        """
        new: set[str] = set()

        def work(session: Transaction) -> None:
            for each in passes:
                self._look(session, each)
            new.update(row.factor_id for row in rows if self._rows.put(session, row))
            for standing in standings:
                self._standings.put(session, standing)

        self._database.write(work)
        return len(new)

    def _look(self, session: Transaction, each: Pass) -> None:
        """Write the days of one factor that are new, and count the look."""
        if sum(self._sightings.put(session, sighting) for sighting in each.sightings):
            window = self._names.columns(session, each.window)
            self._names.fingerprints.keep(session, window[-1], each.window.fingerprint, self._now())
            session.execute(_ADD_WATCH, (each.factor_id, *window, self._now(), canonical_json(each.about)))

    def watched(self, window: WindowKey) -> int:
        """Count the factors that were looked at on new days which share a day and a name with a window."""
        return self._database.read(lambda session: len(self._names.subjects(session, "watches", window)))

    def seen_before(self, at: str, names: tuple[str, ...]) -> str:
        """Return the last day that any factor was watched on before a moment, on names that are shared; or nothing."""
        always = WindowKey("", "0000-00-00", "9999-99-99", names)

        def work(session: Transaction) -> list[Any]:
            shared = self._names.overlapping(session, "watches", always)
            return [session.execute(_SEEN_BEFORE, (row, at)).fetchone() for row in shared]

        return max((day[0] for day in self._database.read(work) if day), default="")


_SEEN_BEFORE = "SELECT last_day FROM watches WHERE id = ? AND at < ?"
_ADD_WATCH = f"INSERT INTO watches (subject, {WINDOW_COLUMNS}, at, body) VALUES (?, ?, ?, ?, ?, ?, ?)"
