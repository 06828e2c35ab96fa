"""Looks at days that must not be looked at for free: trials, openings of sealed days, and where the days lie."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from .database import Database
from .digest import canonical_json
from .errors import LedgerError
from .records import Boundaries, JsonObject, Look, Opening, Trial, WindowKey
from .windows import COLUMNS, NameLists


class Looks:
    """Counts every look before it is made, over all campaigns of the workspace."""

    def __init__(self, database: Database, now: Callable[[], str]) -> None:
        self._database = database
        self._now = now
        self._names = NameLists()

    def open_trial(self, look: Look) -> Trial:
        """Count a look at a selection window; the same subject on the same window is counted once."""
        with self._database.write() as connection:
            window = self._names.columns(connection, look.window)
            found = connection.execute(f"{_FIND} {_SAME}", (look.subject, *window)).fetchone()
            if found is None:
                number = 1 + look.prior + len(self._names.overlapping(connection, "trials", look.window))
                connection.execute(_ADD_TRIAL, (number, look.prior, look.run, look.subject, *window, self._now()))
                found = connection.execute(f"{_FIND} {_SAME}", (look.subject, *window)).fetchone()
            return self._trial(connection, found)

    def close_trial(self, trial: int, outcome: JsonObject) -> Trial:
        """Keep what a look showed; a later outcome changes nothing."""
        body = canonical_json(outcome)
        with self._database.write() as connection:
            found = self._by_id(connection, trial)
            if found is None:
                raise LedgerError(f"there is no trial {trial}", field="trial", got=trial)
            connection.execute(
                "INSERT INTO outcomes VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (trial, self._now(), body)
            )
            return self._trial(connection, self._by_id(connection, trial))

    def overlapping_trials(self, window: WindowKey) -> list[Trial]:
        """Return the trials whose window shares a day and a name with this one, by number."""
        with self._database.read() as connection:
            found = self._names.overlapping(connection, "trials", window)
            trials = [self._trial(connection, self._by_id(connection, each)) for each in found]
        return sorted(trials, key=lambda trial: (trial.number, trial.id))

    def record_opening(self, opening: Opening) -> int:
        """Count an opening of sealed days and return its number; once for a run and a window."""
        with self._database.write() as connection:
            window = self._names.columns(connection, opening.window)
            found = connection.execute(_FIND_OPENING, (opening.run, *window)).fetchone()
            if found is not None:
                return int(found[0])
            number = 1 + len(self._names.overlapping(connection, "openings", opening.window))
            connection.execute(_ADD_OPENING, (number, opening.run, *window, opening.reason, self._now()))
            return number

    def openings(self, window: WindowKey) -> list[Opening]:
        """Return the openings whose window shares a day and a name with this one, oldest first."""
        with self._database.read() as connection:
            found = self._names.overlapping(connection, "openings", window)
            return [self._opening(connection, each) for each in found]

    def fix_boundaries(self, boundaries: Boundaries) -> Boundaries:
        """Return the boundaries that an earlier campaign fixed on shared days and names; if none did, fix these."""
        span = WindowKey(boundaries.dataset, boundaries.first_day, boundaries.sealed_end, boundaries.names)
        with self._database.write() as connection:
            found = self._names.overlapping(connection, "boundaries", span)
            if found:
                return self._boundaries(connection, found[0])
            fields = asdict(boundaries)
            del fields["names"], fields["dataset"]
            window = self._names.columns(connection, span)
            connection.execute(_ADD_BOUNDARIES, (*window, canonical_json(fields), self._now()))
            return boundaries

    def _by_id(self, connection: sqlite3.Connection, trial: int) -> tuple[Any, ...] | None:
        """Return the row of a trial."""
        row: tuple[Any, ...] | None = connection.execute(f"{_FIND} WHERE id = ?", (trial,)).fetchone()
        return row

    def _trial(self, connection: sqlite3.Connection, row: tuple[Any, ...] | None) -> Trial:
        """Turn a row into a trial."""
        assert row is not None
        trial, number, run, subject, *window, body = row
        outcome = None if body is None else json.loads(body)
        return Trial(trial, number, run, subject, self._names.window(connection, tuple(window)), outcome)

    def _opening(self, connection: sqlite3.Connection, opening: int) -> Opening:
        """Read an opening."""
        query = f"SELECT run, {COLUMNS}, reason, number FROM openings WHERE id = ?"
        run, *window, reason, number = connection.execute(query, (opening,)).fetchone()
        return Opening(run, self._names.window(connection, tuple(window)), reason, number)

    def _boundaries(self, connection: sqlite3.Connection, row: int) -> Boundaries:
        """Read boundaries."""
        query = "SELECT dataset, names, body FROM boundaries WHERE id = ?"
        dataset, names, body = connection.execute(query, (row,)).fetchone()
        return Boundaries(dataset=dataset, names=self._names.read(connection, names), **json.loads(body))


_FIND = f"SELECT id, number, run, subject, {COLUMNS}, body FROM trials LEFT JOIN outcomes ON trial = id"
_SAME = "WHERE subject = ? AND dataset = ? AND first_day = ? AND last_day = ? AND names = ?"
_ADD_TRIAL = f"INSERT INTO trials (number, prior, run, subject, {COLUMNS}, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_FIND_OPENING = f"SELECT number FROM openings {_SAME.replace('subject', 'run')}"
_ADD_OPENING = f"INSERT INTO openings (number, run, {COLUMNS}, reason, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_ADD_BOUNDARIES = f"INSERT INTO boundaries ({COLUMNS}, body, at) VALUES (?, ?, ?, ?, ?, ?)"
