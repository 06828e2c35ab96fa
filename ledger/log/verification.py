"""Verifies a record against its log: rows, leaves, checkpoints, keys, and what was kept of the log elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any

from ..database.schema import LOGGED_TABLES
from .checkpoint import Checkpoint, CheckpointPolicy
from .comparison import LogFinding, LoggedTable
from .leaves import STATE_TABLE, LoggedRow
from .note import NoteError, SignedNote, VerifierKey
from .reader import RunQuery, read_rows
from .tree import Frontier, encode_nodes, hash_leaf
from .upkeep.erasure import read_erasures
from .upkeep.retirement import describe_retirements, find_late_signatures, read_notes

MAX_CLOCK_STEP = timedelta(days=1)
"""Largest step back in time that is no finding: machines that share a database have clocks of their own."""
MAX_SIGNING_DELAY = timedelta(minutes=1)
"""Leaves under one checkpoint that were written further apart were left unsigned by a process that ended."""


@dataclass(frozen=True)
class OutsideCheckpoint:
    """A checkpoint that was kept outside the record.

    Attributes
    ----------
    note : SignedNote
        The checkpoint.
    kept : str
        Where it was kept.
    copy : str
        The folder of a copy of this record that goes its own way and to which the checkpoint may belong; empty if it
        must be part of this record.
    """

    note: SignedNote
    kept: str
    copy: str = ""


@dataclass(frozen=True)
class WitnessedPart:
    """How much of the history a witness saw, and when."""

    witness: str
    size: int
    at: datetime

    def record(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"witness": self.witness, "size": self.size, "at": self.at.isoformat()}


@dataclass(frozen=True)
class LogReading:
    """The result of a verification.

    Attributes
    ----------
    origin, size, signed, root : str, int, int, bytes
        The name of the log; its leaves; how many of them the last checkpoint covers; the root over those.
    checkpoints : int
        Number of checkpoints.
    keys : tuple of (VerifierKey, str, str)
        The keys that the log names, each with the time and reason.
    witnessed : tuple of WitnessedPart
        What witnesses saw, the largest part first.
    kept : tuple of (str, int)
        Checkpoints that were kept elsewhere and that the record holds: where, and of how many leaves.
    findings, notes : tuple
        What is wrong; what a reader should know.
    """

    origin: str
    size: int
    signed: int
    root: bytes
    checkpoints: int
    keys: tuple[tuple[VerifierKey, str, str], ...]
    witnessed: tuple[WitnessedPart, ...]
    kept: tuple[tuple[str, int], ...]
    findings: tuple[LogFinding, ...]
    notes: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """Return the result as JSON."""
        return {
            "log": self.origin,
            "leaves": self.size,
            "signed": self.signed,
            "root": self.root.hex(),
            "checkpoints": self.checkpoints,
            "keys": [{"key": str(key), "since": at, "why": why} for key, at, why in self.keys],
            "witnessed": [part.record() for part in self.witnessed],
            "kept": [{"where": where, "leaves": size} for where, size in self.kept],
            "findings": [finding.record() for finding in self.findings],
            "notes": list(self.notes),
        }


def verify_record(
    run_query: RunQuery,
    read_object: Callable[[str], bytes | None],
    find_outside: Callable[[Sequence[str]], Sequence[OutsideCheckpoint]],
    witnesses: Sequence[VerifierKey] = (),
    policy: CheckpointPolicy | None = None,
) -> LogReading:
    """Compare all rows of a record with its log, and the log with its checkpoints and with what was kept elsewhere.

    Parameters
    ----------
    run_query : callable
        Runs a query on a single state of the record.
    read_object : callable
        Returns the stored bytes with a digest, None if they are gone.
    find_outside : callable
        Returns the checkpoints that were kept elsewhere of logs with these names.
    witnesses : sequence of VerifierKey
        Keys of witnesses whose signatures count.
    policy : CheckpointPolicy or None
        What a reader asks of the last checkpoint that others saw.
    """
    return _Verification(run_query, read_object, find_outside, witnesses, policy).run()


class _Verification:
    """One pass over one record."""

    def __init__(
        self,
        run_query: RunQuery,
        read_object: Callable[[str], bytes | None],
        find_outside: Callable[[Sequence[str]], Sequence[OutsideCheckpoint]],
        witnesses: Sequence[VerifierKey],
        policy: CheckpointPolicy | None,
    ) -> None:
        self._run_query, self._read_object, self._find_outside = run_query, read_object, find_outside
        self._policy = policy
        self._witnesses = [*witnesses, *(policy.witnesses.values() if policy else ())]
        self._findings: list[LogFinding] = []
        self._notes: list[str] = []
        self._tables = {name: LoggedTable(name) for name in LOGGED_TABLES}
        self._times: list[datetime | None] = []
        self._keys: list[tuple[VerifierKey, str, str]] = []

    def run(self) -> LogReading:
        hashes = self._read_leaves()
        self._compare_rows()
        self._read_keys()
        stored = self._run_query("SELECT id, size, nodes, note FROM log_checkpoints ORDER BY id")
        outside = self._find_outside([key.name for key, _, _ in self._keys])
        sizes = {int(size) for _, size, *_ in stored} | {_read_size(kept.note) for kept in outside}
        roots = _compute_roots(hashes, sizes)
        last = self._check_checkpoints(stored, roots)
        kept, witnessed = self._check_outside(outside, roots, last)
        notes = chain(read_notes(text for *_, text in stored), (one.note for one in outside))
        leaves = self._tables["retirements"].rows
        self._findings.extend(find_late_signatures(self._run_query, notes, leaves))
        self._check_times(witnessed)
        signed = Checkpoint.parse(last.text) if last else Checkpoint("", 0, b"")
        if len(hashes) > signed.size:
            waiting = len(hashes) - signed.size
            self._notes.append(f"{waiting} of {len(hashes)} leaves wait for a checkpoint: the next run signs them")
        return LogReading(
            origin=signed.origin,
            size=len(hashes),
            signed=signed.size,
            root=signed.root,
            checkpoints=len(stored),
            keys=tuple(self._keys),
            witnessed=tuple(witnessed),
            kept=tuple(kept),
            findings=tuple(self._findings),
            notes=tuple(self._notes),
        )

    def _find(self, kind: str, what: str, message: str, leaf: int | None = None) -> None:
        self._findings.append(LogFinding(kind, what, message, leaf))

    def _read_leaves(self) -> list[bytes]:
        """Return the hashes of the leaves, and sort their rows by table."""
        hashes: list[bytes] = []
        expected = 1
        for index, (number, entry) in enumerate(self._run_query("SELECT id, entry FROM leaves ORDER BY id")):
            if number != expected:
                self._find("log", f"leaf {expected - 1}", f"it is gone: leaf {number - 1} comes next")
            expected = number + 1
            hashes.append(hash_leaf(entry.encode()))
            try:
                logged = LoggedRow.parse(entry)
            except ValueError:
                self._find("log", f"leaf {index}", "it cannot be read", index)
                self._times.append(None)
                continue
            self._times.append(_parse_time(logged.columns.get("at")))
            self._place(index, logged)
        return hashes

    def _place(self, index: int, logged: LoggedRow) -> None:
        if logged.table == STATE_TABLE and index == 0:
            self._read_state(logged)
        elif (table := self._tables.get(logged.table)) is None:
            self._find("log", f"leaf {index}", f"it names a table that no leaf has: {logged.table}", index)
        else:
            number = logged.columns.get(table.number)
            if not isinstance(number, int | str) or number in table.rows:
                self._find("log", f"leaf {index}", f"{table.name} {number} has a leaf already", index)
                return
            table.rows[number] = index, logged

    def _read_state(self, logged: LoggedRow) -> None:
        digest = logged.find_digest("body")
        body = self._read_object(digest) if digest else None
        self._notes.append(
            f"the log began at {logged.columns.get('at')}; of what was recorded before, it knows the state of that time"
        )
        if body is None:
            self._find("dropped", f"object {digest}", "the list of the rows from before the log is gone or changed", 0)
            return
        for table, digests in json.loads(body).items():
            self._tables[table].earlier = digests

    def _compare_rows(self) -> None:
        for erasure in read_erasures(self._run_query):
            self._notes.append(erasure.describe())
            for row in erasure.rows:
                digests = {row.before: row.after, row.row_before: row.row_after}
                erased = self._tables[row.table].erased if row.table in self._tables else {}
                erased.update({f"{row.number} {before}": after for before, after in digests.items()})
        for name, table in self._tables.items():
            self._findings.extend(table.compare(read_rows(self._run_query, name)))

    def _read_keys(self) -> None:
        for vkey, why, at in self._run_query("SELECT vkey, why, at FROM log_keys ORDER BY id"):
            try:
                self._keys.append((VerifierKey.parse(vkey), at, why))
            except NoteError:
                self._find("log", "log_keys", f"this is no key: {vkey[:80]}")
        for key, at, why in self._keys[1:]:
            self._notes.append(f"since {at} the key {key.id.hex()} of {key.name} signs: {why}")
        self._notes.extend(describe_retirements(self._run_query))

    def _check_checkpoints(self, stored: Sequence[tuple[Any, ...]], roots: dict[int, Frontier]) -> SignedNote | None:
        """Check every checkpoint against the leaves; return the last one that can be read."""
        last, previous, keys = None, 0, [key for key, _, _ in self._keys]
        for count, (number, size, nodes, text) in enumerate(stored, start=1):
            what = f"checkpoint of {size} leaves"
            if number != count:
                self._find("log", what, f"it is numbered {number} and is the {count}. one")
            try:
                note = SignedNote.parse(text)
                checkpoint = Checkpoint.parse(note.text)
                signers = note.signers(keys)
            except NoteError as error:
                self._find("log", what, error.message)
                continue
            frontier = roots.get(size)
            if not signers or any(key.name != checkpoint.origin for key in signers):
                self._find("log", what, "no key that the log names has signed it")
            if checkpoint.size != size or size <= previous:
                self._find("log", what, f"it stands after one of {previous} leaves and says {checkpoint.size}")
            elif frontier is None:
                self._find("log", what, "there are fewer leaves: some were taken from the end")
            elif frontier.root() != checkpoint.root:
                self._find("log", what, "its root is another: leaves before it were changed, added or dropped")
            elif encode_nodes(frontier) != nodes:
                self._find("log", what, "its stored subtrees were changed")
            self._note_delay(previous, size)
            last, previous = note, max(previous, size)
        return last

    def _note_delay(self, first: int, size: int) -> None:
        times = [at for at in self._times[first:size] if at]
        if times and max(times) - times[0] > MAX_SIGNING_DELAY:
            self._notes.append(
                f"leaves {first} to {size - 1} were signed together, {max(times) - times[0]} after the first was "
                "written: the process that wrote it ended before it could sign"
            )

    def _check_outside(
        self, outside: Sequence[OutsideCheckpoint], roots: dict[int, Frontier], last: SignedNote | None
    ) -> tuple[list[tuple[str, int]], list[WitnessedPart]]:
        """Compare the log with checkpoints that were kept elsewhere."""
        logs = [key for key, _, _ in self._keys] if self._policy is None else self._policy.logs
        names = {key.name for key, _, _ in self._keys}
        kept, witnessed, accepted = [], [], False
        for one in [*outside, *([OutsideCheckpoint(last, "")] if last else [])]:
            checkpoint = Checkpoint.parse(one.note.text)
            try:
                signed = one.note.signers([*logs, *self._witnesses])
                if one.note is last and not any(key in signed for key in logs):
                    self._find("policy", "last checkpoint", "none of the logs that the policy lists has signed it")
            except NoteError as error:
                self._find("log", one.kept or "last checkpoint", error.message)
                continue
            frontier, where = roots.get(checkpoint.size), one.kept
            if one.copy and (frontier is None or frontier.root() != checkpoint.root):
                self._notes.append(f"a copy of this record in {one.copy} went its own way, to {checkpoint.size} leaves")
                continue
            what = f"checkpoint of {checkpoint.size} leaves, {where}"
            if checkpoint.origin not in names:
                self._find("rewritten", what, f"it is of the log {checkpoint.origin}, which this record does not name")
            elif frontier is None:
                count = len(self._times)
                self._find("older copy", what, f"this record has {count} leaves: later ones are gone")
            elif frontier.root() != checkpoint.root:
                self._find("rewritten", what, "its root is another: this record is not the one that was seen then")
            else:
                accepted |= self._policy is not None and self._policy.accepts(signed)
                kept += [(where, checkpoint.size)] if where else []
                witnessed += [WitnessedPart(key.name, checkpoint.size, at) for key, at in signed.items() if at]
        if self._policy and not accepted:
            self._find("policy", "--policy", "no checkpoint of this record has the signatures that the policy asks for")
        return kept, sorted(set(witnessed), key=lambda part: (-part.size, part.witness))

    def _check_times(self, witnessed: Sequence[WitnessedPart]) -> None:
        """Find leaves whose time is before that of an earlier leaf, or on the wrong side of a witness's time."""
        latest, before = None, 0
        for index, at in enumerate(self._times):
            if at is None:
                continue
            if latest and at < latest - MAX_CLOCK_STEP:
                message = f"its time {at.isoformat()} is before {latest.isoformat()} of leaf {before}"
                self._find("back-dated", f"leaf {index}", message, index)
            if latest is None or at > latest:
                latest, before = at, index
        for part in witnessed:
            for index, at in enumerate(self._times[part.size :], start=part.size):
                if at and at < part.at - MAX_CLOCK_STEP:
                    seen = f"{part.at.isoformat()}, when {part.witness} saw {part.size} leaves"
                    message = f"its time {at.isoformat()} is before {seen}"
                    self._find("back-dated", f"leaf {index}", message, index)
                    break


def _compute_roots(hashes: Sequence[bytes], sizes: set[int]) -> dict[int, Frontier]:
    """Return the tree of the first leaves, for each of these sizes that the log has."""
    frontier, trees = Frontier(), {}
    for leaf in hashes:
        frontier.push(leaf)
        if frontier.size in sizes:
            trees[frontier.size] = Frontier(frontier.size, frontier.nodes)
    return trees


def _read_size(note: SignedNote) -> int:
    return Checkpoint.parse(note.text).size


def _parse_time(text: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    if at is None:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
