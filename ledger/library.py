"""The library of a workspace: its factors, their status changes, and their RankIC on new days."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .database.locks import hold_lock
from .database.protocol import Transaction
from .database.register import Register
from .digest import canonical_json
from .log.leaves import LoggedDatabase, LoggedTransaction
from .records import JsonObject, LibraryRow, Sighting, StatusChange, WindowKey
from .windows import NameLists, name_columns


@dataclass(frozen=True)
class Pass:
    """The observations of one factor on new days, in order, with the window and the panel that they come from."""

    factor_id: str
    window: WindowKey
    sightings: Sequence[Sighting]
    about: JsonObject


class Library:
    """Stores factors, status changes and observations: append-only, each write in one transaction."""

    def __init__(self, database: LoggedDatabase, lock: Path, now: Callable[[], str]) -> None:
        self._database = database
        self._lock = lock
        self._now = now
        self._names = NameLists()
        self._rows = Register(database, "library", LibraryRow, now)
        self._standings = Register(database, "standings", StatusChange, now)
        self._sightings = Register(database, "sightings", Sighting, now)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock status changes for this process; `RunLocked`, with the other's number, if they are locked.

        It is needed between reading statuses and writing changes that follow from them. Without it, a factor that a
        person retires meanwhile would be set back to its earlier status.
        """
        with hold_lock(self._lock, "library"), self._database.held("the library"):
            yield

    def rows(self) -> list[LibraryRow]:
        """Return every factor of the library by id, retired ones included."""
        return self._rows.find("TRUE")

    def add(self, row: LibraryRow) -> bool:
        """Add a factor unless its id is taken; return whether it is new."""
        return self._rows.add(row, strict=False)

    def list_times(self) -> dict[str, str]:
        """Return when each factor was added, ISO."""
        return {str(name): str(at) for name, at in self._database.rows("SELECT factor_id, at FROM library", ())}

    def standings(self, factor_id: str | None = None) -> list[StatusChange]:
        """Return the status changes of one factor or of all, oldest first."""
        if factor_id is None:
            return self._standings.find("TRUE", order="seq")
        return self._standings.find("factor_id = ?", factor_id, order="seq")

    def sightings(self, factor_id: str) -> list[Sighting]:
        """Return the observations of a factor on new days, by day."""
        return self._sightings.find("factor_id = ?", factor_id)

    def record(
        self, *, rows: Sequence[LibraryRow] = (), standings: Sequence[StatusChange] = (), passes: Sequence[Pass] = ()
    ) -> int:
        """Write factors, status changes and observations in one transaction; return the number of new factors.

        A row whose key is taken is skipped, so a day of a factor is observed once.
        """
        new: set[str] = set()

        def work(session: LoggedTransaction) -> None:
            for observed in passes:
                self._record_pass(session, observed)
            new.update(row.factor_id for row in rows if self._rows.put(session, row))
            for standing in standings:
                self._standings.put(session, standing)

        self._database.write(work)
        return len(new)

    def _record_pass(self, session: LoggedTransaction, observed: Pass) -> None:
        """Write the new days of one factor; if there are any, count a watch."""
        if sum(self._sightings.put(session, sighting) for sighting in observed.sightings):
            window = self._names.columns(session, observed.window)
            self._names.fingerprints.keep(session, window[-1], observed.window.fingerprint, self._now())
            seen = {"subject": observed.factor_id} | name_columns(window)
            session.append("watches", seen | {"at": self._now(), "body": canonical_json(observed.about)})

    def list_panels(self) -> list[tuple[str, str, str, str]]:
        """Return time, data set, digest of the panel and last new day of each observation, in the order of arrival."""
        rows = self._database.rows("SELECT at, dataset, body, last_day FROM watches ORDER BY id")
        return [(at, dataset, str(json.loads(body).get("panel", "")), last) for at, dataset, body, last in rows]

    def watched(self, window: WindowKey) -> int:
        """Count the factors that were observed on new days whose data a window shares."""
        return self._database.read(lambda session: len(self._names.subjects(session, "watches", window)))

    def seen_before(self, at: str, names: tuple[str, ...]) -> str:
        """Return the last day on which a factor was observed before the time `at`, on shared data; "" if none."""
        always = WindowKey("", "0000-00-00", "9999-99-99", names)

        def work(session: Transaction) -> list[Any]:
            shared = self._names.overlapping(session, "watches", always)
            return [session.execute(_SEEN_BEFORE, (row, at)).fetchone() for row in shared]

        return max((day[0] for day in self._database.read(work) if day), default="")


_SEEN_BEFORE = "SELECT last_day FROM watches WHERE id = ? AND at < ?"
