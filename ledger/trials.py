"""Trials on selection windows, openings of sealed days, and the boundaries of these windows."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from .database.protocol import Transaction
from .digest import canonical_json
from .errors import LedgerError
from .log.leaves import LoggedDatabase, LoggedTransaction
from .records import Boundaries, Fingerprint, JsonObject, Look, Opening, Trial, WindowKey
from .windows import WINDOW_COLUMNS, NameLists, disagree, name_columns, read_column


class TrialRecord:
    """Counts every test before it is made, over all campaigns of the workspace."""

    def __init__(self, database: LoggedDatabase, now: Callable[[], str]) -> None:
        self._database = database
        self._now = now
        self._names = NameLists()

    def open(self, look: Look) -> Trial:
        """Count a test on a selection window before it is made.

        The number is 1, plus the tests declared as made elsewhere, plus the factors that the library watched on shared
        data, plus the trials of this workspace whose window shares data: the same returns, or a day and a name. The
        same question about the same subject on the same window is one trial, whoever asks.
        """

        def work(session: LoggedTransaction) -> Trial:
            window = self._names.columns(session, look.window)
            same = (look.subject, look.question, *window)
            row = session.execute(f"{_FIND} {_SAME_TRIAL_CONDITION}", same).fetchone()
            if row is None:
                earlier = self._names.overlapping(session, "trials", look.window)
                prior = max(look.prior + self._count_watched(session, look.window), self._read_prior(session, earlier))
                counted = {"number": 1 + prior + len(earlier), "prior": prior, "run": look.run, "at": self._now()}
                asked = {"subject": look.subject, "question": look.question}
                session.append("trials", counted | asked | name_columns(window))
                row = session.execute(f"{_FIND} {_SAME_TRIAL_CONDITION}", same).fetchone()
            return self._build_trial(session, row)

        return self._database.write(work)

    def prior(self, window: WindowKey) -> int:
        """Return the largest number of tests made elsewhere on shared data: declared, or by the library's watch."""

        def work(session: Transaction) -> int:
            shared = self._names.overlapping(session, "trials", window)
            return max(self._count_watched(session, window), self._read_prior(session, shared))

        return self._database.read(work)

    def _count_watched(self, session: Transaction, window: WindowKey) -> int:
        return len(self._names.subjects(session, "watches", window))

    def _read_prior(self, session: Transaction, trials: list[int]) -> int:
        """Return the largest `prior` of these trials; 0 if there are none."""
        return max(read_column(session, "trials", "prior", trials), default=0)

    def close(self, trial: int, outcome: JsonObject) -> Trial:
        """Store the outcome of a trial; a later outcome changes nothing."""
        body = canonical_json(outcome)

        def work(session: LoggedTransaction) -> Trial:
            if self._read_row(session, trial) is None:
                raise LedgerError(f"there is no trial {trial}", field="trial", got=trial)
            session.append("outcomes", {"trial": trial, "at": self._now(), "body": body})
            return self._build_trial(session, self._read_row(session, trial))

        return self._database.write(work)

    def overlapping(self, window: WindowKey, known_at: str = "") -> list[Trial]:
        """Return the trials whose window shares data with this one, by number.

        Shared are the same returns under any symbols and dates, or a day and a name. `known_at` asks what was known at
        a moment: data that was recognised later does not count.
        """

        def work(session: Transaction) -> list[Trial]:
            ids = set(self._names.overlapping(session, "trials", window, known_at))
            return [self._build_trial(session, row) for row in session.execute(_FIND).fetchall() if row[0] in ids]

        return sorted(self._database.read(work), key=lambda trial: (trial.number, trial.id))

    def all(self) -> list[Trial]:
        """Return every trial of the workspace, in the order in which they were opened."""

        def work(session: Transaction) -> list[Trial]:
            return [self._build_trial(session, row) for row in session.execute(f"{_FIND} ORDER BY id").fetchall()]

        return self._database.read(work)

    def record_opening(self, opening: Opening) -> int:
        """Count an opening of sealed days and return its number; once for a run and a window."""

        def work(session: LoggedTransaction) -> int:
            window = self._names.columns(session, opening.window)
            row = session.execute(_FIND_OPENING, (opening.run, *window)).fetchone()
            if row is not None:
                return int(row[0])
            number = 1 + len(self._names.overlapping(session, "openings", opening.window))
            opened = {"number": number, "run": opening.run, "reason": opening.reason, "at": self._now()}
            session.append("openings", opened | name_columns(window))
            return number

        return self._database.write(work)

    def openings_of(self, run: str) -> list[int]:
        """Return the numbers of the openings of sealed days that a run made."""
        return [int(number) for (number,) in self._database.rows("SELECT number FROM openings WHERE run = ?", (run,))]

    def latest_openings(self, most: int) -> list[tuple[str, str, int, str]]:
        """Return time, run, number and reason of the last openings of sealed days, the last one first."""
        query = f"SELECT at, run, number, reason FROM openings ORDER BY id DESC LIMIT {int(most)}"
        return [(at, run, int(number), reason) for at, run, number, reason in self._database.rows(query)]

    def openings(self, window: WindowKey) -> list[Opening]:
        """Return the openings whose window shares data with this one, oldest first."""

        def work(session: Transaction) -> list[Opening]:
            return [
                self._read_opening(session, opening) for opening in self._names.overlapping(session, "openings", window)
            ]

        return self._database.read(work)

    def fix_boundaries(
        self, boundaries: Boundaries, *, store: bool = True, fingerprint: Fingerprint | None = None
    ) -> Boundaries:
        """Return the edges that an earlier campaign fixed on shared data, on this one's days; else fix these.

        Symbols that inherit edges are stored with them: a later campaign that leaves out the shared symbol inherits
        them too, so no day becomes free.
        """
        span = WindowKey(
            boundaries.dataset, boundaries.first_day, boundaries.sealed_end, boundaries.names, fingerprint or {}
        )

        def work(session: LoggedTransaction) -> Boundaries:
            inherited = self._read_inherited(session, span)
            if any(disagree(inherited[0], other) for other in inherited[1:]):
                raise LedgerError(
                    "This data meets two data sets whose windows were fixed differently.",
                    field="panel",
                    hint="Use one of the two data sets, or another workspace.",
                )
            fixed = boundaries
            if inherited:
                fixed = replace(inherited[0][0], dataset=boundaries.dataset, names=boundaries.names)
            if store:
                self._store_boundaries(session, fixed, span)
            return fixed

        return self._database.write(work)

    def _read_inherited(self, session: Transaction, span: WindowKey) -> list[tuple[Boundaries, bool]]:
        """Return the edges that hold on a span's data, oldest first, each with whether they were placed by returns."""
        stored = self._read_boundaries(session)
        carried = [self._names.carry_over(session, fixed, series, span) for fixed, series in stored]
        return [edges for edges in carried if edges]

    def boundaries(self) -> list[Boundaries]:
        """Return the edges of every data set on which windows were fixed, oldest first."""

        def work(session: Transaction) -> list[Boundaries]:
            return [fixed for fixed, _ in self._read_boundaries(session)]

        return self._database.read(work)

    def inherited(self, span: WindowKey) -> list[Boundaries]:
        """Return the edges of every data set that shares returns, or symbols and days, on a span's own days."""
        return [edges for edges, _ in self._database.read(lambda session: self._read_inherited(session, span))]

    def last_sealed_day(self, span: WindowKey) -> str:
        """Return the last day, in a span's own dates, of all windows fixed on its returns or symbols; "" if none."""

        def work(session: Transaction) -> list[str]:
            own, days = set(span.names), []
            for fixed, series in self._read_boundaries(session):
                carried = self._names.carry_over(session, fixed, series, span)
                if carried or not own.isdisjoint(fixed.names):
                    days.append(carried[0].sealed_end if carried else fixed.sealed_end)
            return days

        return max(self._database.read(work), default="")

    def known_as(self, window: WindowKey) -> tuple[str, str] | None:
        """Return a day of a window and the day under which its returns were first stored; None if they are equal."""
        return self._database.read(lambda session: self._names.known_as(session, window))

    def _store_boundaries(self, session: LoggedTransaction, fixed: Boundaries, span: WindowKey) -> None:
        """Store edges with their series of returns, unless they are stored."""
        names = self._names.keep(session, fixed.names)
        series = self._names.fingerprints.keep(session, names, span.fingerprint, self._now())
        if (fixed, series) not in self._read_boundaries(session):
            fields: JsonObject = asdict(fixed) | ({"series": series} if series else {})
            body = {name: value for name, value in fields.items() if name not in ("names", "dataset")}
            window = fixed.dataset, fixed.first_day, fixed.sealed_end, names
            session.append("boundaries", name_columns(window) | {"body": canonical_json(body), "at": self._now()})

    def _read_row(self, session: Transaction, trial: int) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None = session.execute(f"{_FIND} WHERE id = ?", (trial,)).fetchone()
        return row

    def _build_trial(self, session: Transaction, row: tuple[Any, ...] | None) -> Trial:
        assert row is not None
        trial, number, run, subject, question, *window, body, prior, opened, closed = row
        outcome = None if body is None else json.loads(body)
        key = self._names.window(session, tuple(window))
        return Trial(trial, number, run, subject, key, outcome, question, prior, opened, closed or "")

    def _read_opening(self, session: Transaction, opening: int) -> Opening:
        query = f"SELECT run, {WINDOW_COLUMNS}, reason, number FROM openings WHERE id = ?"
        run, *window, reason, number = session.execute(query, (opening,)).fetchone()
        return Opening(run, self._names.window(session, tuple(window)), reason, number)

    def _read_boundaries(self, session: Transaction) -> list[tuple[Boundaries, int]]:
        """Read all edges, oldest first, each with the number of its series of returns; 0 for none."""
        stored = []
        for dataset, names, body in session.execute(
            "SELECT dataset, names, body FROM boundaries ORDER BY id"
        ).fetchall():
            fields = json.loads(body)
            series = fields.pop("series", 0)
            stored.append((Boundaries(dataset=dataset, names=self._names.read(session, names), **fields), series))
        return stored


_TRIAL_COLUMNS = f"id, number, run, subject, question, {WINDOW_COLUMNS}, body, prior, trials.at, outcomes.at"
_FIND = f"SELECT {_TRIAL_COLUMNS} FROM trials LEFT JOIN outcomes ON trial = id"
_WINDOW = "dataset = ? AND first_day = ? AND last_day = ? AND names = ?"
_SAME_TRIAL_CONDITION = f"WHERE subject = ? AND question = ? AND {_WINDOW}"
_FIND_OPENING = f"SELECT number FROM openings WHERE run = ? AND {_WINDOW}"
