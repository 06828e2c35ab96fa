"""Looks at days that must not be looked at for free: trials, openings of sealed days, and where the days lie."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import asdict, replace
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
        """Count a look at a selection window; the same question about the same subject on it is counted once."""
        with self._database.write() as connection:
            window = self._names.columns(connection, look.window)
            same = (look.subject, look.question, *window)
            found = connection.execute(f"{_FIND} {_SAME}", same).fetchone()
            if found is None:
                earlier = self._names.overlapping(connection, "trials", look.window)
                watched = len(self._names.subjects(connection, "watches", look.window))
                prior = max([look.prior + watched, *(self._prior(connection, trial) for trial in earlier)])
                connection.execute(_ADD_TRIAL, (1 + prior + len(earlier), prior, look.run, *same, self._now()))
                found = connection.execute(f"{_FIND} {_SAME}", same).fetchone()
            return self._trial(connection, found)

    def prior(self, window: WindowKey) -> int:
        """Return the most looks made elsewhere, declared or by the library's watch, on shared days and names."""
        with self._database.read() as connection:
            found = self._names.overlapping(connection, "trials", window)
            watched = len(self._names.subjects(connection, "watches", window))
            return max([watched, *(self._prior(connection, trial) for trial in found)])

    def _prior(self, connection: sqlite3.Connection, trial: int) -> int:
        return int(connection.execute("SELECT prior FROM trials WHERE id = ?", (trial,)).fetchone()[0])

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

    def trials(self) -> list[Trial]:
        """Return every trial of the workspace, in the order in which they were opened."""
        with self._database.read() as connection:
            return [self._trial(connection, row) for row in connection.execute(f"{_FIND} ORDER BY id").fetchall()]

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

    def fix_boundaries(self, wanted: Boundaries, *, store: bool = True) -> Boundaries:
        """Return the edges that an earlier campaign fixed on shared days and names; if none did, fix these.

        Names that inherit edges are stored with them, so that leaving out the name that was shared frees no day.
        """
        span = WindowKey(wanted.dataset, wanted.first_day, wanted.sealed_end, wanted.names)
        with self._database.write() as connection:
            found = [
                self._boundaries(connection, row) for row in self._names.overlapping(connection, "boundaries", span)
            ]
            if len({_edges(each) for each in found}) > 1:
                raise LedgerError(
                    "These names and days meet two data sets whose windows were fixed differently.",
                    field="panel",
                    hint="Use one of the two data sets, or another workspace.",
                )
            fixed = replace(found[0], dataset=wanted.dataset, names=wanted.names) if found else wanted
            if store and fixed not in found:
                self._store(connection, fixed)
            return fixed

    def boundaries(self) -> list[Boundaries]:
        """Return the edges of every data set on which windows were fixed, oldest first."""
        with self._database.read() as connection:
            rows = connection.execute("SELECT id FROM boundaries ORDER BY id").fetchall()
            return [self._boundaries(connection, row) for (row,) in rows]

    def _store(self, connection: sqlite3.Connection, fixed: Boundaries) -> None:
        fields = asdict(fixed)
        del fields["names"], fields["dataset"]
        span = WindowKey(fixed.dataset, fixed.first_day, fixed.sealed_end, fixed.names)
        window = self._names.columns(connection, span)
        connection.execute(_ADD_BOUNDARIES, (*window, canonical_json(fields), self._now()))

    def _by_id(self, connection: sqlite3.Connection, trial: int) -> tuple[Any, ...] | None:
        """Return the row of a trial."""
        row: tuple[Any, ...] | None = connection.execute(f"{_FIND} WHERE id = ?", (trial,)).fetchone()
        return row

    def _trial(self, connection: sqlite3.Connection, row: tuple[Any, ...] | None) -> Trial:
        """Turn a row into a trial."""
        assert row is not None
        trial, number, run, subject, question, *window, body, prior, opened, closed = row
        outcome = None if body is None else json.loads(body)
        key = self._names.window(connection, tuple(window))
        return Trial(trial, number, run, subject, key, outcome, question, prior, opened, closed or "")

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


_SHOWN = f"id, number, run, subject, question, {COLUMNS}, body, prior, trials.at, outcomes.at"
_FIND = f"SELECT {_SHOWN} FROM trials LEFT JOIN outcomes ON trial = id"
_WINDOW = "dataset = ? AND first_day = ? AND last_day = ? AND names = ?"
_SAME = f"WHERE subject = ? AND question = ? AND {_WINDOW}"
_ADD_TRIAL = f"INSERT INTO trials (number, prior, run, subject, question, {COLUMNS}, at) VALUES ({', '.join('?' * 10)})"
_FIND_OPENING = f"SELECT number FROM openings WHERE run = ? AND {_WINDOW}"
_ADD_OPENING = f"INSERT INTO openings (number, run, {COLUMNS}, reason, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_ADD_BOUNDARIES = f"INSERT INTO boundaries ({COLUMNS}, body, at) VALUES (?, ?, ?, ?, ?, ?)"


def _edges(boundaries: Boundaries) -> tuple[str, ...]:
    """Return where the windows lie, whoever fixed them."""
    fields = asdict(boundaries)
    return tuple(str(fields[name]) for name in sorted(fields) if name not in ("dataset", "names"))
