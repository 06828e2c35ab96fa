"""Looks at days that must not be looked at for free: trials, openings of sealed days, and where the days lie."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from .database import Database, Session
from .digest import canonical_json
from .errors import LedgerError
from .records import Boundaries, JsonObject, Look, Opening, Trial, WindowKey
from .windows import COLUMNS, NameLists, column


class Looks:
    """Counts every look before it is made, over all campaigns of the workspace."""

    def __init__(self, database: Database, now: Callable[[], str]) -> None:
        self._database = database
        self._now = now
        self._names = NameLists()

    def open_trial(self, look: Look) -> Trial:
        """Count a look at a selection window; the same question about the same subject on it is counted once."""

        def work(session: Session) -> Trial:
            window = self._names.columns(session, look.window)
            same = (look.subject, look.question, *window)
            found = session.execute(f"{_FIND} {_SAME}", same).fetchone()
            if found is None:
                earlier = self._names.overlapping(session, "trials", look.window)
                prior = max(look.prior + self._watched(session, look.window), self._prior(session, earlier))
                session.execute(_ADD_TRIAL, (1 + prior + len(earlier), prior, look.run, *same, self._now()))
                found = session.execute(f"{_FIND} {_SAME}", same).fetchone()
            return self._trial(session, found)

        return self._database.write(work)

    def prior(self, window: WindowKey) -> int:
        """Return the most looks made elsewhere, declared or by the library's watch, on shared days and names."""

        def work(session: Session) -> int:
            found = self._names.overlapping(session, "trials", window)
            return max(self._watched(session, window), self._prior(session, found))

        return self._database.read(work)

    def _watched(self, session: Session, window: WindowKey) -> int:
        """Count the factors that the library watched on shared days and names."""
        return len(self._names.subjects(session, "watches", window))

    def _prior(self, session: Session, trials: list[int]) -> int:
        """Return the most looks made elsewhere that one of these trials declared."""
        return max(column(session, "trials", "prior", trials), default=0)

    def close_trial(self, trial: int, outcome: JsonObject) -> Trial:
        """Keep what a look showed; a later outcome changes nothing."""
        body = canonical_json(outcome)

        def work(session: Session) -> Trial:
            if self._by_id(session, trial) is None:
                raise LedgerError(f"there is no trial {trial}", field="trial", got=trial)
            session.execute("INSERT INTO outcomes VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (trial, self._now(), body))
            return self._trial(session, self._by_id(session, trial))

        return self._database.write(work)

    def overlapping_trials(self, window: WindowKey) -> list[Trial]:
        """Return the trials whose window shares a day and a name with this one, by number."""

        def work(session: Session) -> list[Trial]:
            found = set(self._names.overlapping(session, "trials", window))
            return [self._trial(session, row) for row in session.execute(_FIND).fetchall() if row[0] in found]

        return sorted(self._database.read(work), key=lambda trial: (trial.number, trial.id))

    def trials(self) -> list[Trial]:
        """Return every trial of the workspace, in the order in which they were opened."""

        def work(session: Session) -> list[Trial]:
            return [self._trial(session, row) for row in session.execute(f"{_FIND} ORDER BY id").fetchall()]

        return self._database.read(work)

    def record_opening(self, opening: Opening) -> int:
        """Count an opening of sealed days and return its number; once for a run and a window."""

        def work(session: Session) -> int:
            window = self._names.columns(session, opening.window)
            found = session.execute(_FIND_OPENING, (opening.run, *window)).fetchone()
            if found is not None:
                return int(found[0])
            number = 1 + len(self._names.overlapping(session, "openings", opening.window))
            session.execute(_ADD_OPENING, (number, opening.run, *window, opening.reason, self._now()))
            return number

        return self._database.write(work)

    def openings(self, window: WindowKey) -> list[Opening]:
        """Return the openings whose window shares a day and a name with this one, oldest first."""

        def work(session: Session) -> list[Opening]:
            return [self._opening(session, each) for each in self._names.overlapping(session, "openings", window)]

        return self._database.read(work)

    def fix_boundaries(self, wanted: Boundaries, *, store: bool = True) -> Boundaries:
        """Return the edges that an earlier campaign fixed on shared days and names; if none did, fix these.

        Names that inherit edges are stored with them, so that leaving out the name that was shared frees no day.
        """
        span = WindowKey(wanted.dataset, wanted.first_day, wanted.sealed_end, wanted.names)

        def work(session: Session) -> Boundaries:
            found = [self._boundaries(session, row) for row in self._names.overlapping(session, "boundaries", span)]
            if len({_edges(each) for each in found}) > 1:
                raise LedgerError(
                    "These names and days meet two data sets whose windows were fixed differently.",
                    field="panel",
                    hint="Use one of the two data sets, or another workspace.",
                )
            fixed = replace(found[0], dataset=wanted.dataset, names=wanted.names) if found else wanted
            if store and fixed not in found:
                self._store(session, fixed)
            return fixed

        return self._database.write(work)

    def boundaries(self) -> list[Boundaries]:
        """Return the edges of every data set on which windows were fixed, oldest first."""

        def work(session: Session) -> list[Boundaries]:
            rows = session.execute("SELECT id FROM boundaries ORDER BY id").fetchall()
            return [self._boundaries(session, row) for (row,) in rows]

        return self._database.read(work)

    def _store(self, session: Session, fixed: Boundaries) -> None:
        fields = asdict(fixed)
        del fields["names"], fields["dataset"]
        span = WindowKey(fixed.dataset, fixed.first_day, fixed.sealed_end, fixed.names)
        window = self._names.columns(session, span)
        session.execute(_ADD_BOUNDARIES, (*window, canonical_json(fields), self._now()))

    def _by_id(self, session: Session, trial: int) -> tuple[Any, ...] | None:
        """Return the row of a trial."""
        row: tuple[Any, ...] | None = session.execute(f"{_FIND} WHERE id = ?", (trial,)).fetchone()
        return row

    def _trial(self, session: Session, row: tuple[Any, ...] | None) -> Trial:
        """Turn a row into a trial."""
        assert row is not None
        trial, number, run, subject, question, *window, body, prior, opened, closed = row
        outcome = None if body is None else json.loads(body)
        key = self._names.window(session, tuple(window))
        return Trial(trial, number, run, subject, key, outcome, question, prior, opened, closed or "")

    def _opening(self, session: Session, opening: int) -> Opening:
        """Read an opening."""
        query = f"SELECT run, {COLUMNS}, reason, number FROM openings WHERE id = ?"
        run, *window, reason, number = session.execute(query, (opening,)).fetchone()
        return Opening(run, self._names.window(session, tuple(window)), reason, number)

    def _boundaries(self, session: Session, row: int) -> Boundaries:
        """Read boundaries."""
        query = "SELECT dataset, names, body FROM boundaries WHERE id = ?"
        dataset, names, body = session.execute(query, (row,)).fetchone()
        return Boundaries(dataset=dataset, names=self._names.read(session, names), **json.loads(body))


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
