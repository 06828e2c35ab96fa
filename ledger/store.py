"""The ledger of one workspace: the record in a file or a database, a folder for each run, and agents' notes."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import date, datetime
from pathlib import Path
from secrets import token_bytes
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from .database.home import Home, has_record
from .database.protocol import Transaction, explained
from .database.reading import ReadDatabase
from .database.register import Register
from .digest import canonical_json
from .errors import AlphaloomError
from .files.objects import Bodies
from .files.private import make_folder
from .library import Library
from .log.keys import KeyFolder
from .log.leaves import LoggedDatabase, LoggedTransaction
from .log.reader import read_session
from .log.signing import CheckpointSigner, begin_log, is_empty
from .log.upkeep.erasure import ErasureRecord
from .postgres.connection import PostgresLink
from .records import Attempt, Evaluation, VerdictRow
from .registers import ArtefactRegister, CallRegister, EventRegister
from .reservations import Holds
from .runs import RunRecord
from .trials import TrialRecord

if TYPE_CHECKING:
    from .calls.heads import Head

T = TypeVar("T")
AT_HAND_BYTES = 4 << 20
"""Characters of JSON text that are cached, those read last; as Python objects they take about five times as much."""


class Ledger:
    """The record of a workspace: append-only, and on the disk when a call returns.

    What is added is idempotent by its key, and the call returns whether it is new; a different record under a key that
    is taken raises `LedgerConflict`. One ledger may be used from several threads, and several processes may open one
    workspace.

    Attributes
    ----------
    workspace : Path
        The folder of the workspace.
    objects : Bodies
        Bytes under their digest.
    runs : RunRecord
        The runs, their status, folders and locks.
    attempts, evaluations, verdicts : Register
        What was proposed, what was scored on the search window, and what the gate decided.
    trials : TrialRecord
        Tests on selection windows, openings of sealed days, and the boundaries of windows.
    calls : CallRegister
        The answered model calls.
    holds : Holds
        What calls under way may still take of the budgets that all processes share.
    events : EventRegister
        Any other JSON under a kind and a key.
    artefacts : ArtefactRegister
        The digests of the files of runs.
    library : Library
        The factors of the workspace, their status changes and their RankIC on new days.
    erasures : ErasureRecord
        What was erased of the record, by whom and why.
    signer : CheckpointSigner
        Signs what was recorded, in the background.
    """

    def __init__(self, home: Home, now: Callable[[], str], keys: KeyFolder, draw_salt: Callable[[int], bytes]) -> None:
        is_new = not has_record(home.workspace)
        opened, objects = home.opened(lambda session, put: begin_log(LoggedTransaction(session, draw_salt), put, now))
        self.signer = CheckpointSigner(opened, keys, now, draw_salt, home.workspace)
        if is_new or (is_empty(opened) and not any((home.workspace / "runs").iterdir())):
            self.signer.begin()
        self._lay_registers(home, LoggedDatabase(opened, draw_salt, self.signer.schedule), objects, now, keys)

    def _lay_registers(
        self, home: Home, database: LoggedDatabase, objects: Bodies, now: Callable[[], str], keys: KeyFolder
    ) -> None:
        self._home, self._now, self._database = home, now, database
        self.workspace, self.objects = home.workspace, objects
        self.runs = RunRecord(database, self.workspace / "runs", now)
        self.trials = TrialRecord(database, now)
        self.attempts = Register(database, "attempts", Attempt, now)
        self.evaluations = Register(database, "evaluations", Evaluation, now)
        self.verdicts = Register(database, "verdicts", VerdictRow, now)
        self.calls = CallRegister(database, now)
        self.events = EventRegister(database, now)
        self.artefacts = ArtefactRegister(database, self.objects, self.runs.files, now)
        self.erasures = ErasureRecord(database, self.objects, now, keys)
        self.library = Library(database, self.workspace / "library.lock", now)
        present = self.workspace / "under-way"
        self.holds = Holds(database, (self.calls, self.events), present, now, sees=not home.address)

    @classmethod
    def open(
        cls,
        workspace: Path,
        *,
        clock: Callable[[], datetime],
        address: str = "",
        keys: KeyFolder | None = None,
        draw_salt: Callable[[int], bytes] = token_bytes,
    ) -> Ledger:
        """Open a workspace, making it if it is not there.

        `address` names the PostgreSQL database that holds the record of a new workspace; the workspace remembers it.
        `keys` is where the key of the log lies: the folder of the person at this machine by default. `draw_salt`
        returns the random bytes of a leaf.

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
            return cls(home, lambda: clock().isoformat(), keys or KeyFolder.of_user(), draw_salt)

    @classmethod
    def read(cls, workspace: Path, work: Callable[[Ledger], T], until: date | None = None) -> T:
        """Return what a function reads from the record of a workspace, in one transaction in which nothing is written.

        The function gets a ledger that refuses to write, signs nothing and records no heads of tool calls. It must not
        keep it. `until` leaves out the rows that were recorded after a day (UTC).

        Raises
        ------
        WorkspaceError
            If there is no record, it was written before the log existed or by a newer Alphaloom, or cannot be read.
        """

        def read(session: Transaction, objects: Bodies) -> T:
            ledger, home = cls.__new__(cls), Home.of(workspace)
            rows = LoggedDatabase(ReadDatabase(session, until, is_file=not home.address), token_bytes)
            ledger._lay_registers(home, rows, objects, str, KeyFolder.of_user())
            return work(ledger)

        return read_session(workspace, read)

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
        try:
            self.holds.close()
            self._anchor_calls()
            self.signer.close()
        finally:
            self._database.close()

    def _anchor_calls(self) -> None:
        """Record the heads of the tool calls of this workspace: a chain that is cut or taken away later is missed."""
        from .calls import CALLS_FOLDER
        from .calls.heads import HEADS_FILE, read_heads

        folder = self.workspace / CALLS_FOLDER
        if not (folder / HEADS_FILE).is_file():
            return
        with suppress(AlphaloomError, OSError):  # `audit verify` says what is wrong with the heads
            heads = [head for head in read_heads(folder).values() if head.written]
            known = {tuple(row) for row in self._database.rows("SELECT segment, sequence FROM call_heads")}
            new = [head for head in heads if (head.segment, head.sequence) not in known]
            if new:
                self._database.write(lambda session: self._add_heads(session, new))

    def _add_heads(self, session: LoggedTransaction, heads: Sequence[Head]) -> None:
        for head in heads:
            row = {"segment": head.segment, "sequence": head.sequence, "hash": head.hash, "at": self._now()}
            session.append("call_heads", row)

    def checkpoints(self, run: str) -> Path | Callable[[], PostgresLink]:
        """Return where a run's graph stores its state: a file, or a function that opens a link to the database."""
        return self._home.checkpoints(self.runs.folder(run))

    def explained(self, run: str) -> AbstractContextManager[None]:
        """Turn database errors of a run's checkpoints into errors that a person understands."""
        return self._database.explained(self.runs.folder(run))


class Journal:
    """Stores JSON bodies under a kind and a key; the first body under a key stays.

    The bodies read last are cached, the others are read from the ledger. `read` returns what the ledger would return
    after a crash, down to the order of keys, because prompts are built from it.
    """

    def __init__(self, ledger: Ledger, run: str) -> None:
        self._ledger = ledger
        self._run = run
        self._at_hand: OrderedDict[tuple[str, str], tuple[dict[str, Any], int]] = OrderedDict()
        self._bytes = 0

    def record(self, kind: str, key: str, body: dict[str, Any]) -> None:
        """Store a body, unless one is stored under the kind and key."""
        if self.read(kind, key) is None:
            self._ledger.events.record(self._run, f"agents.{kind}", key, body)
            self._cache((kind, key), canonical_json(body))

    def read(self, kind: str, key: str) -> dict[str, Any] | None:
        """Return the body under a kind and key; None if there is none."""
        place = (kind, key)
        if place in self._at_hand:
            self._at_hand.move_to_end(place)
            return self._at_hand[place][0]
        event = self._ledger.events.get(self._run, f"agents.{kind}", key)
        return None if event is None else self._cache(place, canonical_json(event.body))

    def _cache(self, place: tuple[str, str], text: str) -> dict[str, Any]:
        """Cache a body and drop those read longest ago; return the body."""
        body: dict[str, Any] = json.loads(text)
        self._at_hand[place] = (body, len(text))
        self._bytes += len(text)
        while self._bytes > AT_HAND_BYTES and len(self._at_hand) > 1:
            _, (_, size) = self._at_hand.popitem(last=False)
            self._bytes -= size
        return body
