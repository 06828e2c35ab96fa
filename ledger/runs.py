"""The runs of a workspace: start and look-up, requests to stop or close, and a check for gaps in their records."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from .database.locks import hold_lock, holder
from .database.protocol import Database, explained
from .database.register import conflict
from .database.schema import REGISTERS, TABLE_KEYS
from .digest import canonical_json
from .errors import LedgerConflict, LedgerError, UnknownRun
from .files.private import make_folder
from .log.leaves import LoggedDatabase, LoggedTransaction
from .records import Run

if TYPE_CHECKING:
    from .registers import EventRegister

LATEST = "latest"
_RUN_ID_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
START_EVENT, STOP_EVENT, CLOSE_EVENT = "start", "stop", "close"
"""Kinds of events. Starts and requests to stop are numbered; a request to close is stored once."""
CLOCK_SLACK = timedelta(days=1)
"""Largest tolerated step back in time: machines that share a database have clocks of their own."""
_NUMBER_COLUMNS = {name: keys[0][0] for name, keys in TABLE_KEYS.items() if keys[0][0] in ("seq", "id")}
_TIMED_TABLES = ("runs", "statuses", "trials", "openings", "verdicts", "artefacts", "library", "standings")


class RunRecord:
    """The runs of one workspace, in the order in which they were started."""

    def __init__(self, database: LoggedDatabase, folder: Path, now: Callable[[], str]) -> None:
        self._database = database
        self._folder = folder
        self._now = now

    def start(self, run: Run) -> None:
        """Record a run and make its folder; starting the same one again does nothing."""
        check_name(run.id)
        fields = asdict(run)
        del fields["id"], fields["status"]
        body = canonical_json(fields)

        def work(session: LoggedTransaction) -> None:
            if session.append("runs", {"id": run.id, "at": self._now(), "body": body}):
                session.append("statuses", {"run": run.id, "at": self._now(), "status": run.status})
                return
            (stored,) = session.execute("SELECT body FROM runs WHERE id = ?", (run.id,)).fetchone()
            if stored != body:
                raise conflict("runs", [run.id], json.loads(stored), json.loads(body))

        self._database.write(work)
        folder = self.folder(run.id)
        with explained(folder):
            make_folder(folder)

    def finish(self, run: str, status: str) -> None:
        """Record the final status of a run; the last status counts, and earlier ones stay in the record."""

        def work(session: LoggedTransaction) -> None:
            last = session.execute(_STATUS, (run,)).fetchone()
            if last is None:
                raise UnknownRun(f"there is no run {run}", field="run", got=run)
            if last[0] != status:
                session.append("statuses", {"run": run, "at": self._now(), "status": status})

        self._database.write(work)

    def statuses(self, run: str) -> list[tuple[str, str]]:
        """Return every status that a run was given, each with its time, oldest first."""
        return [(at, status) for at, status in self._database.rows(_STATUSES, (run,))]

    def require(self, run: str) -> None:
        """Raise `UnknownRun` unless a run with exactly this id was started."""
        if not self._database.rows("SELECT 1 FROM runs WHERE id = ?", (run,)):
            raise unknown_run_error(run, [started.id for started in self.all()], [], self._folder)

    def all(self) -> list[Run]:
        """Return every run, oldest first."""
        rows = self._database.rows(_ALL)
        return [replace(Run(id=name, **json.loads(body)), status=status) for name, body, status in rows]

    def find(self, name: str | Path) -> Run:
        """Return the run that a person means: `latest`, an id, the start of one id, or the run's folder.

        Raises
        ------
        UnknownRun
            If it is none of these; the nearest and the most recent runs are named.
        """
        name, runs = str(name), {run.id: run for run in self.all()}
        if name == LATEST and runs:
            return list(runs.values())[-1]
        if name in runs:
            return runs[name]
        by_folder = self._find_by_folder(name)
        if by_folder in runs:
            return runs[by_folder]
        matches = [run_id for run_id in runs if name and run_id.startswith(name)]
        if len(matches) == 1:
            return runs[matches[0]]
        raise unknown_run_error(name, list(runs), matches, self._folder)

    def _find_by_folder(self, name: str) -> str:
        """Return the id of the run whose folder this is; "" if it is none."""
        try:
            path = Path(name).expanduser().resolve()
        except (ValueError, RuntimeError, OSError):  # a null byte, a home of nobody, a link to itself
            return ""
        return path.name if path.parent == self._folder.resolve() else ""

    def folder(self, run: str) -> Path:
        """Return the folder of a run."""
        check_name(run)
        return self._folder / run

    def files(self, run: str) -> Path:
        """Return the folder of a run of this workspace; `UnknownRun` if another workspace on the database has it."""
        folder = self.folder(run)
        if not folder.is_dir():
            raise UnknownRun(
                f"the files of run {run} are not in this workspace",
                field="run",
                got=run,
                hint="Name the workspace that ran it with --workspace DIR.",
            )
        return folder

    @contextmanager
    def lock(self, run: str) -> Iterator[None]:
        """Lock a run, here and on a shared database; `RunLocked`, with the other process, if it is locked."""
        with hold_lock(self.folder(run) / "lock", run), self._database.held(f"run {run}"):
            yield

    def holder(self, run: str) -> str | None:
        """Return the process that works on a run: its number, and its machine if it may be another; None if none."""
        return holder(self.folder(run) / "lock") or self._database.holder(f"run {run}")

    def is_held(self, run: str) -> bool:
        """Return whether a process works on a run."""
        return self.holder(run) is not None

    def breaks(self, run: Run) -> list[Break]:
        """Return the gaps in the ledger's tables, and times that go back or are before the start of the run."""
        return list(breaks(self._database, run))


def check_name(run: str) -> None:
    """Refuse an id that cannot be the name of a folder, and `latest`."""
    if not _RUN_ID_PATTERN.fullmatch(run) or run == LATEST:
        raise LedgerError(
            "a run's id cannot be this",
            field="run",
            got=run,
            allowed="letters, digits, '.', '_' and '-', beginning with a letter or digit; not 'latest'",
        )


def unknown_run_error(name: str, runs: list[str], matches: list[str], folder: Path) -> UnknownRun:
    """Return the error for an unknown run, with the runs that may be meant."""
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


_STATUS = "SELECT status FROM statuses WHERE run = ? ORDER BY seq DESC LIMIT 1"
_STATUSES = "SELECT at, status FROM statuses WHERE run = ? ORDER BY seq"
_ALL = """
SELECT id, body, (SELECT status FROM statuses WHERE run = id ORDER BY statuses.seq DESC LIMIT 1)
FROM runs ORDER BY runs.seq"""


@dataclass(frozen=True)
class Break:
    """One place where a table of the ledger has a gap or goes back in time."""

    table: str
    recorded: str
    said: str


def breaks(database: Database, run: Run) -> Iterator[Break]:
    """Yield the gaps in every table, and the times that go back or are before the start of their run."""
    for table, column in _NUMBER_COLUMNS.items():
        yield from _find_gaps(database, table, column)
    for table in _TIMED_TABLES:
        yield from _find_backward_times(database, table)
    began = _parse_time(run.started_at)
    for table in ("trials", "openings", "statuses", *(name for name, key in REGISTERS.items() if key[0] == "run")):
        for (at,) in database.rows(f"SELECT min(at) FROM {table} WHERE run = ?", (run.id,)):
            if at and began and _is_before(at, began):
                yield Break(table, at, f"the run began at {run.started_at}")
    for (at,) in database.rows("SELECT at FROM runs WHERE id = ?", (run.id,)):
        if began and _is_before(at, began):
            yield Break("runs", at, f"the run began at {run.started_at}")


def _find_gaps(database: Database, table: str, column: str) -> Iterator[Break]:
    ((count, last),) = database.rows(f"SELECT count(*), coalesce(max({column}), 0) FROM {table}")
    if count != last:
        yield Break(table, f"{count} rows, numbered up to {last}", f"{last - count} are gone")


def _find_backward_times(database: Database, table: str) -> Iterator[Break]:
    latest = None
    for number, at in database.rows(
        f"SELECT {_NUMBER_COLUMNS[table]}, at FROM {table} ORDER BY {_NUMBER_COLUMNS[table]}"
    ):
        if latest and _is_before(at, latest):
            yield Break(table, f"row {number} at {at}", f"an earlier row was written at {latest.isoformat()}")
            return
        latest = max(filter(None, (latest, _parse_time(at))), default=None)


def _is_before(at: str, other: datetime) -> bool:
    """Return whether a time is before another by more than `CLOCK_SLACK`, or cannot be parsed."""
    time = _parse_time(at)
    return time is None or time < other - CLOCK_SLACK


def _parse_time(at: str) -> datetime | None:
    """Parse an ISO time, UTC where it has no zone; None if it cannot be parsed."""
    try:
        time = datetime.fromisoformat(at)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def note_start(events: EventRegister, run: str, by: str) -> None:
    """Record that a person started a run, or went on with it."""
    events.record(run, START_EVENT, f"{len(events.of(run, START_EVENT)) + 1:06d}", {"by": by})


def count_stops(events: EventRegister, run: str) -> int:
    """Count the requests to stop of a run; a process obeys those that come after its start."""
    return len(events.of(run, STOP_EVENT))


def ask_to_stop(events: EventRegister, run: str, by: str) -> None:
    """Ask the process that works on a run to stop after the current step."""
    with suppress(LedgerConflict):  # a second request at the same time: one is enough
        events.record(run, STOP_EVENT, f"{count_stops(events, run) + 1:06d}", {"by": by})


def ask_to_close(events: EventRegister, run: str, by: str) -> None:
    """Ask that a run's search end after the current step and the run be closed; this cannot be taken back."""
    with suppress(LedgerConflict):
        events.record(run, CLOSE_EVENT, "asked", {"by": by})


def is_closing(events: EventRegister, run: str) -> bool:
    """Return whether a run was asked to close."""
    return events.get(run, CLOSE_EVENT, "asked") is not None
