"""Runs: started once, found by what a person types."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from .database.protocol import Database, Transaction
from .database.register import conflict
from .digest import canonical_json
from .errors import LedgerError, UnknownRun
from .records import Run

LATEST = "latest"
_RUN_ID_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class RunRecord:
    """The runs of one workspace, in the order in which they were started."""

    def __init__(self, database: Database, folder: Path, now: Callable[[], str]) -> None:
        self._database = database
        self._folder = folder
        self._now = now

    def start(self, run: Run) -> None:
        """Record a run; starting the same one again does nothing."""
        check_name(run.id)
        fields = asdict(run)
        del fields["id"], fields["status"]
        body = canonical_json(fields)

        def work(session: Transaction) -> None:
            if session.execute(_ADD_RUN, (run.id, self._now(), body)).rowcount:
                session.execute(_ADD_STATUS, (run.id, self._now(), run.status))
                return
            (stored,) = session.execute("SELECT body FROM runs WHERE id = ?", (run.id,)).fetchone()
            if stored != body:
                raise conflict("runs", [run.id], json.loads(stored), json.loads(body))

        self._database.write(work)

    def finish(self, run: str, status: str) -> None:
        """Record how a run ended; the last word counts, and the earlier ones stay."""

        def work(session: Transaction) -> None:
            last = session.execute(_STATUS, (run,)).fetchone()
            if last is None:
                raise UnknownRun(f"there is no run {run}", field="run", got=run)
            if last[0] != status:
                session.execute(_ADD_STATUS, (run, self._now(), status))

        self._database.write(work)

    def statuses(self, run: str) -> list[tuple[str, str]]:
        """Return every status that a run was given, each with its time, oldest first."""
        return [(at, status) for at, status in self._database.rows(_STATUSES, (run,))]

    def require(self, run: str) -> None:
        """Raise `UnknownRun` unless a run with exactly this id was started."""
        if not self._database.rows("SELECT 1 FROM runs WHERE id = ?", (run,)):
            raise unknown_run_error(run, [each.id for each in self.all()], [], self._folder)

    def all(self) -> list[Run]:
        """Return every run, oldest first."""
        rows = self._database.rows(_ALL)
        return [replace(Run(id=name, **json.loads(body)), status=status) for name, body, status in rows]

    def find(self, name: str) -> Run:
        """Return the run that a person means: `latest`, an id, the start of one id, or the run's folder.

        Raises
        ------
        UnknownRun
            If it is none of these; the nearest and the most recent runs are named.
        """
        runs = {run.id: run for run in self.all()}
        if name == LATEST and runs:
            return list(runs.values())[-1]
        if name in runs:
            return runs[name]
        by_folder = self._find_by_folder(name)
        if by_folder in runs:
            return runs[by_folder]
        matches = [known for known in runs if name and known.startswith(name)]
        if len(matches) == 1:
            return runs[matches[0]]
        raise unknown_run_error(name, list(runs), matches, self._folder)

    def _find_by_folder(self, name: str) -> str:
        """Return the id of the run whose folder this is, or nothing."""
        path = Path(name).expanduser().resolve()
        return path.name if path.parent == self._folder.resolve() else ""


def check_name(run: str) -> None:
    """Refuse an id that could not be a folder, or that means something else."""
    if not _RUN_ID_PATTERN.fullmatch(run) or run == LATEST:
        raise LedgerError(
            "a run's id cannot be this",
            field="run",
            got=run,
            allowed="letters, digits, '.', '_' and '-', beginning with a letter or digit; not 'latest'",
        )


def unknown_run_error(name: str, runs: list[str], matches: list[str], folder: Path) -> UnknownRun:
    """Return the error that names the runs that may be meant."""
    if not runs:
        return UnknownRun(
            f"no run {name!r}: this workspace has no runs yet ({folder})",
            field="run",
            got=name,
            hint="Start one with `alphaloom run`, or name another workspace with --workspace.",
        )
    if matches:
        return UnknownRun(f"{name!r} begins several runs", field="run", got=name, allowed=matches[-5:])
    nearest = difflib.get_close_matches(name, runs, n=1, cutoff=0.6)
    meant = f"Did you mean {nearest[0]}? " if nearest else ""
    recent = ", ".join(reversed(runs[-3:]))
    return UnknownRun(
        f"no run {name!r} in this workspace",
        field="run",
        got=name,
        allowed="'latest', a run's id or the start of one, or its folder",
        hint=f"{meant}Most recent: {recent}.",
    )


_ADD_RUN = "INSERT INTO runs (id, at, body) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_ADD_STATUS = "INSERT INTO statuses (run, at, status) VALUES (?, ?, ?)"
_STATUS = "SELECT status FROM statuses WHERE run = ? ORDER BY seq DESC LIMIT 1"
_STATUSES = "SELECT at, status FROM statuses WHERE run = ? ORDER BY seq"
_ALL = """
SELECT id, body, (SELECT status FROM statuses WHERE run = id ORDER BY statuses.seq DESC LIMIT 1)
FROM runs ORDER BY runs.seq"""
