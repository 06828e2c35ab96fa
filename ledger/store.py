"""The ledger of one workspace: the record in a file or a database, and a folder for each run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .database.home import Home, has_record
from .database.locks import hold_lock, holder
from .database.protocol import explained
from .database.register import Register, RegisterEntry
from .digest import compute_digest
from .errors import UnknownRun, changed_file
from .files.private import make_folder
from .library import Library
from .postgres.link import PostgresLink
from .records import (
    Artefact,
    Attempt,
    Boundaries,
    Evaluation,
    Event,
    Fingerprint,
    LibraryRow,
    Look,
    ModelCall,
    Opening,
    Run,
    Trial,
    VerdictRow,
    WindowKey,
)
from .reservations import Holds
from .runs import Break, RunRecord, breaks, check_name
from .trials import TrialRecord

RECORDED_FILES = ("curves.json", "results.json", "sealed.json")
"""Files of a run whose digests are recorded; earlier versions did not record curves.json."""


class Ledger:
    """The record of a workspace: append-only, and on the disk when a call returns.

    Each `record_...` is idempotent by the record's key and returns whether the record is new; a different record
    under a key that is taken raises `LedgerConflict`. One ledger may be used from several threads, and several
    processes may open one workspace.
    """

    def __init__(self, home: Home, now: Callable[[], str]) -> None:
        self._home = home
        self._workspace = workspace = home.workspace
        database, self._objects = home.opened()
        self._database = database
        self._runs = RunRecord(database, workspace / "runs", now)
        self._trials = TrialRecord(database, now)
        self._attempts = Register(database, "attempts", Attempt, now)
        self._evaluations = Register(database, "evaluations", Evaluation, now)
        self._calls = Register(database, "calls", ModelCall, now)
        self._verdicts = Register(database, "verdicts", VerdictRow, now)
        self._artefacts = Register(database, "artefacts", Artefact, now)
        self._events = Register(database, "events", Event, now)
        self._library = Library(database, now)
        self._holds = Holds(database, (self._calls, self._events), workspace / "under-way", now, sees=not home.address)

    @classmethod
    def open(cls, workspace: Path, *, clock: Callable[[], datetime], address: str = "") -> Ledger:
        """Open a workspace, making it if it is not there.

        `address` names the PostgreSQL database that holds the record of a new workspace; the workspace remembers it.

        Raises
        ------
        WorkspaceError
            If the folder is read-only, full, a file, damaged, or written by a newer Alphaloom; `AddressError` or
            `ServerError` if its database cannot be used.
        """
        home = Home.of(workspace, address)
        with explained(workspace):
            if not has_record(workspace):
                home.refuse_lost()
            make_folder(workspace / "runs")
            return cls(home, lambda: clock().isoformat())

    def __enter__(self) -> Self:
        """Return the ledger."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the ledger."""
        self.close()

    def close(self) -> None:
        """Close the ledger; a second time does nothing."""
        self._holds.close()
        self._database.close()

    @property
    def workspace(self) -> Path:
        """The folder of the workspace."""
        return self._workspace

    # Objects

    def put(self, body: bytes) -> str:
        """Store bytes and return their digest."""
        return self._objects.put(body)

    def get(self, name: str) -> bytes:
        """Return the bytes with this digest; `DamagedObject` if they are gone or changed."""
        return self._objects.get(name)

    # Runs

    def start_run(self, run: Run) -> None:
        """Record a run and make its folder; starting the same one again does nothing."""
        self._runs.start(run)
        folder = self.run_folder(run.id)
        with explained(folder):
            make_folder(folder)

    def run(self, name: str | Path) -> Run:
        """Return the run called `latest`, by an id, by the start of one id, or by its folder; else `UnknownRun`."""
        return self._runs.find(str(name))

    def require(self, run: str) -> None:
        """Raise `UnknownRun` unless a run with exactly this id was started."""
        self._runs.require(run)

    def finish_run(self, run: str, status: str) -> None:
        """Record the final status of a run."""
        self._runs.finish(run, status)

    def statuses(self, run: str) -> list[tuple[str, str]]:
        """Return every status that a run was given, each with its time, oldest first."""
        return self._runs.statuses(run)

    def runs(self) -> list[Run]:
        """Return every run, oldest first."""
        return self._runs.all()

    def run_folder(self, run: str) -> Path:
        """Return the folder of a run."""
        check_name(run)
        return self._workspace / "runs" / run

    def files(self, run: str) -> Path:
        """Return the folder of a run of this workspace; `UnknownRun` if another workspace on the database has it."""
        folder = self.run_folder(run)
        if not folder.is_dir():
            raise UnknownRun(
                f"the files of run {run} are not in this workspace", field="run", got=run,
                hint="Name the workspace that ran it with --workspace DIR.",
            )  # fmt: skip
        return folder

    def lock(self, run: str) -> AbstractContextManager[None]:
        """Lock a run for this process; `RunLocked`, with the other's number, if it is locked."""
        return self._hold_locks(self.run_folder(run) / "lock", run, f"run {run}")

    def is_held(self, run: str) -> bool:
        """Return whether a process works on a run."""
        return self.holder(run) is not None

    def holder(self, run: str) -> str | None:
        """Return the process that works on a run: its number, and its machine if it may be another; None if none."""
        return holder(self.run_folder(run) / "lock") or self._database.holder(f"run {run}")

    def lock_library(self) -> AbstractContextManager[None]:
        """Lock status changes of the library for this process; `RunLocked`, with the other's number, if it is locked.

        It is needed between reading statuses and writing changes that follow from them. Without it, a factor that a
        person retires meanwhile would be set back to its earlier status.
        """
        return self._hold_locks(self._workspace / "library.lock", "library", "the library")

    @contextmanager
    def _hold_locks(self, path: Path, run: str, name: str) -> Iterator[None]:
        """Lock a file of this workspace, then a name that other workspaces on the same database see."""
        with hold_lock(path, run), self._database.held(name):
            yield

    def checkpoints(self, run: str) -> Path | Callable[[], PostgresLink]:
        """Return where a run's graph stores its state: a file, or a function that opens a link to the database."""
        return self._home.checkpoints(self.run_folder(run))

    def explained(self, run: str) -> AbstractContextManager[None]:
        """Turn database errors of a run's checkpoints into errors that a person understands."""
        return self._database.explained(self.run_folder(run))

    # What was tried

    def record_attempt(self, attempt: Attempt) -> bool:
        """Record a proposal."""
        return self._attempts.add(attempt)

    def attempt(self, run: str, key: str) -> Attempt | None:
        """Return the attempt of a run with this key, or None."""
        return self._attempts.get(run, key)

    def attempts(self, run: str) -> list[Attempt]:
        """Return the attempts of a run, by key."""
        return self._attempts.find("run = ?", run)

    def attempts_since(self, run: str, place: int = 0) -> Iterator[tuple[int, Attempt]]:
        """Yield the attempts of a run after a place in the order of arrival, each with its own place."""
        return self._attempts.since(place, run)

    def record_evaluation(self, evaluation: Evaluation) -> bool:
        """Record a factor's score on the search window."""
        return self._evaluations.add(evaluation)

    def evaluation(self, run: str, factor_id: str) -> Evaluation | None:
        """Return a factor's score in a run, or None."""
        return self._evaluations.get(run, factor_id)

    def evaluations(self, run: str) -> list[Evaluation]:
        """Return the evaluations of a run, by factor."""
        return self._evaluations.find("run = ?", run)

    def evaluations_since(self, run: str, place: int = 0) -> Iterator[tuple[int, Evaluation]]:
        """Yield the evaluations of a run in the order of arrival, as `attempts_since` does."""
        return self._evaluations.since(place, run)

    def record_verdict(self, verdict: VerdictRow) -> bool:
        """Record a verdict of the gate."""
        return self._verdicts.add(verdict)

    def verdicts(self, run: str) -> list[VerdictRow]:
        """Return the verdicts of a run, by factor."""
        return self._verdicts.find("run = ?", run)

    def add_to_library(self, row: LibraryRow) -> bool:
        """Add a factor to the library unless its id is taken; return whether it is new."""
        return self._library.add(row)

    def library(self) -> list[LibraryRow]:
        """Return the factors of the library by id, retired ones included."""
        return self._library.rows()

    @property
    def kept(self) -> Library:
        """The library with status changes and observations."""
        return self._library

    # Trials

    def open_trial(self, look: Look) -> Trial:
        """Count a test on a selection window before it is made.

        The number is 1, plus the tests declared as made elsewhere, plus the factors that the library watched on shared
        data, plus the trials of this workspace whose window shares data: the same returns, or a day and a symbol. The
        same question about the same subject on the same window is one trial, whoever asks.
        """
        return self._trials.open_trial(look)

    def close_trial(self, trial: int, outcome: Mapping[str, Any]) -> Trial:
        """Record the outcome of a trial; a later outcome changes nothing, and the first is returned."""
        return self._trials.close_trial(trial, outcome)

    def overlapping_trials(self, window: WindowKey, known_at: str = "") -> list[Trial]:
        """Return the trials whose window shares data with this one, by number.

        Data is shared if the returns are the same, under any symbols and dates, or if a day and a symbol are. With
        `known_at`, data that was recognised after that time does not count.
        """
        return self._trials.overlapping_trials(window, known_at)

    def trials(self) -> list[Trial]:
        """Return every trial of the workspace, in the order in which they were opened."""
        return self._trials.trials()

    def record_opening(self, opening: Opening) -> int:
        """Count an opening of sealed days and return its number; once for a run and a window."""
        return self._trials.record_opening(opening)

    def openings(self, window: WindowKey) -> list[Opening]:
        """Return the openings whose window shares data with this one, oldest first."""
        return self._trials.openings(window)

    def prior(self, window: WindowKey) -> int:
        """Return the largest number of tests made elsewhere on shared data: declared, or by the library's watch."""
        return self._trials.prior(window)

    def fix_boundaries(
        self, boundaries: Boundaries, *, store: bool = True, fingerprint: Fingerprint | None = None
    ) -> Boundaries:
        """Return the boundaries that hold on this data: the first ones fixed on shared data, or these.

        The `fingerprint` is stored with them. Without `store` nothing is fixed: the boundaries that would hold are
        returned.
        """
        return self._trials.fix_boundaries(boundaries, store=store, fingerprint=fingerprint)

    def last_sealed_day(self, span: WindowKey) -> str:
        """Return the last day, in a span's own dates, of all windows fixed on its returns or symbols; "" if none."""
        return self._trials.last_sealed_day(span)

    def known_as(self, window: WindowKey) -> tuple[str, str] | None:
        """Return a day of a window and the day under which its returns were first stored; None if they are equal."""
        return self._trials.known_as(window)

    def boundaries(self) -> list[Boundaries]:
        """Return the boundaries of every data set on which windows were fixed, oldest first."""
        return self._trials.boundaries()

    # Model calls

    @property
    def holds(self) -> Holds:
        """Reservations of calls in flight on the budgets that all processes share."""
        return self._holds

    def record_call(self, call: ModelCall) -> bool:
        """Record an answered model call."""
        return self._calls.add(call)

    def call(self, key: str, run: str | None = None) -> ModelCall | None:
        """Return the first recorded call with this key, of one run or of any; None if it was never answered."""
        if run is not None:
            return self._calls.get(run, key)
        calls = self._calls.find("key = ?", key, order="seq")
        return calls[0] if calls else None

    def calls(self, run: str) -> list[ModelCall]:
        """Return the model calls of a run, by key."""
        return self._calls.find("run = ?", run)

    # Files and everything else

    def record_artefact(self, run: str, name: str, digest: str) -> bool:
        """Record the digest of a named file of a run."""
        return self._artefacts.add(Artefact(run, name, digest))

    def artefacts(self, run: str) -> dict[str, str]:
        """Return the digests of a run's files, by name."""
        return {artefact.name: artefact.digest for artefact in self._artefacts.find("run = ?", run)}

    def recorded(self, run: str, name: str) -> bytes | None:
        """Return the bytes of a file of a run as recorded; None if it was not recorded."""
        digest = self.artefacts(run).get(name)
        return self.get(digest) if digest else None

    def check_files(self, run: str) -> list[str]:
        """Compare a run's files with their recorded digests; return the names of those that have none.

        Raises
        ------
        ChangedFile
            If a file is gone or differs from the recorded one.
        """
        folder, recorded = self.files(run), self.artefacts(run)
        for name, digest in sorted(recorded.items()):
            path = folder / name
            if not path.is_file() or compute_digest(path.read_bytes()) != digest:
                raise changed_file(run, path, self._objects.where(digest))
        return [
            path.name
            for path in sorted(folder.glob("*.json"))
            if path.name in RECORDED_FILES and path.name not in recorded
        ]

    def breaks(self, run: Run) -> list[Break]:
        """Return the gaps in the ledger's tables, and times that go back or are before the start of the run."""
        return list(breaks(self._database, run))

    def openings_of(self, run: str) -> list[int]:
        """Return the numbers of the openings of sealed days that a run made."""
        return [int(number) for (number,) in self._database.rows("SELECT number FROM openings WHERE run = ?", (run,))]

    def record_event(self, run: str, kind: str, key: str, body: Any) -> bool:
        """Record any JSON under a kind and a key: a hypothesis, a critique, a risk decision, a warning."""
        return self._events.add(Event(run, kind, key, body))

    def event(self, run: str, kind: str, key: str) -> Event | None:
        """Return the event of a run under a kind and a key, or None."""
        return self._events.get(run, kind, key)

    def events(self, run: str, kind: str | None = None) -> list[Event]:
        """Return the events of a run, of one kind or of all, by kind and key."""
        if kind is None:
            return self._events.find("run = ?", run)
        return self._events.find("run = ? AND kind = ?", run, kind)

    def calls_since(self, run: str, place: int = 0) -> Iterator[tuple[int, ModelCall]]:
        """Yield the model calls of a run in the order of arrival, as `attempts_since` does."""
        return self._calls.since(place, run)

    def verdict_entries(self, run: str, place: int = 0) -> Iterator[RegisterEntry[VerdictRow]]:
        """Yield the verdicts of a run after a place in the order of arrival, with the time of each."""
        return self._verdicts.entries(place, run)

    def event_entries(self, run: str, place: int = 0) -> Iterator[RegisterEntry[Event]]:
        """Yield the events of a run after a place in the order of arrival, with the time of each."""
        return self._events.entries(place, run)
