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
from .signing import FIRST_REASON, MAX_LOGS_NAMED
from .tree import Frontier, encode_nodes, hash_leaf
from .upkeep.erasure import Erasure
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
    is_home : bool
        Whether it is of a log that belongs to the folder of this record. The record must hold one of these; it may lack
        the others, if it does not name them.
    is_branch : bool
        Whether its log began as the continuation of a copy. A record that holds it lacks what the original went on to.
    is_acknowledged : bool
        Whether a person accepted the record as it was then.
    find_copy : callable or None
        Returns the folder of another record that holds the checkpoint now, "" if there is none; None if the checkpoint
        must be part of this record.
    """

    note: SignedNote
    kept: str
    is_home: bool = False
    is_branch: bool = False
    is_acknowledged: bool = False
    find_copy: Callable[[], str] | None = None

    @property
    def checkpoint(self) -> Checkpoint:
        """The text of the checkpoint, read."""
        return Checkpoint.parse(self.note.text)


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
    late : int
        Leaves that waited for their signature for more than a minute, or still do.
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
    late: int
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
            "late": self.late,
            "findings": [finding.record() for finding in self.findings],
            "notes": list(self.notes),
        }


def verify_record(
    run_query: RunQuery,
    read_object: Callable[[str], bytes | None],
    find_outside: Callable[[Sequence[str]], Sequence[OutsideCheckpoint]],
    witnesses: Sequence[VerifierKey] = (),
    policy: CheckpointPolicy | None = None,
    erasures: Sequence[Erasure] = (),
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
    erasures : sequence of Erasure
        The erasures that count: what they changed is no finding.
    """
    verification = _Verification(run_query, read_object, find_outside, witnesses, policy)
    return verification.run(erasures)


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
        self._held: list[OutsideCheckpoint] = []
        self._late = 0

    def run(self, erasures: Sequence[Erasure]) -> LogReading:
        hashes = self._read_leaves()
        self._compare_rows(erasures)
        self._read_keys()
        stored = self._run_query("SELECT id, size, nodes, note FROM log_checkpoints ORDER BY id")
        outside = self._find_outside([key.name for key, _, _ in self._keys])
        sizes = {int(size) for _, size, *_ in stored} | {one.checkpoint.size for one in outside}
        roots = _compute_roots(hashes, sizes)
        last = self._check_checkpoints(stored, roots)
        kept, witnessed = self._check_outside(outside, roots, last)
        notes = chain(read_notes(text for *_, text in stored), (one.note for one in outside))
        leaves = self._tables["retirements"].rows
        self._findings.extend(find_late_signatures(self._run_query, notes, leaves))
        accepted = max((one.checkpoint.size for one in self._held if one.is_acknowledged), default=0)
        self._check_times(witnessed, accepted)
        signed = Checkpoint.parse(last.text) if last else Checkpoint("", 0, b"")
        if len(hashes) > signed.size:
            self._note_waiting(signed.size, len(hashes))
        return LogReading(
            origin=signed.origin,
            size=len(hashes),
            signed=signed.size,
            root=signed.root,
            checkpoints=len(stored),
            keys=tuple(self._keys),
            witnessed=tuple(witnessed),
            kept=tuple(kept),
            late=self._late,
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
            at = _parse_time(logged.columns.get("at"))
            if at is None and "at" in logged.columns:
                self._find("log", f"leaf {index}", f"its time cannot be read: {logged.columns['at']}", index)
            self._times.append(at)
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
        for name, digests in _read_state_list(body).items():
            self._tables[name].earlier = digests

    def _compare_rows(self, erasures: Sequence[Erasure]) -> None:
        for erasure in erasures:
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
        for key, at, why in self._keys[0 if self._keys and self._keys[0][2] != FIRST_REASON else 1 :]:
            self._notes.append(f"since {at} the key {key.id.hex()} of {key.name} signs: {why}")
        self._notes.extend(describe_retirements(self._run_query))

    def _check_checkpoints(self, stored: Sequence[tuple[Any, ...]], roots: dict[int, Frontier]) -> SignedNote | None:
        """Check every checkpoint against the leaves; return the last one that can be read."""
        last, previous, keys = None, 0, [key for key, _, _ in self._keys]
        for count, (number, size, nodes, text) in enumerate(stored, start=1):
            what = f"checkpoint of {size} leaves"
            if number != count:
                self._find("log", what, f"it is checkpoint {count} of the log and is numbered {number}")
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
            self._late += size - first
            self._notes.append(
                f"leaves {first} to {size - 1} were signed together, {max(times) - times[0]} after the first was "
                "written: the process that wrote it ended before it could sign"
            )

    def _note_waiting(self, first: int, size: int) -> None:
        times = [at for at in self._times[first:size] if at]
        waited = max(times) - times[0] if times else timedelta()
        if waited > MAX_SIGNING_DELAY:
            self._late += size - first
            self._notes.append(
                f"WARNING: {size - first} of {size} leaves have no signature, some of them {waited} after they were "
                "written, while later leaves exist: nothing signs this log, so whoever holds the record can change them"
            )
        else:
            self._notes.append(f"{size - first} of {size} leaves wait for a checkpoint: the next run signs them")

    def _check_outside(
        self, outside: Sequence[OutsideCheckpoint], roots: dict[int, Frontier], last: SignedNote | None
    ) -> tuple[list[tuple[str, int]], list[WitnessedPart]]:
        """Compare the log with checkpoints that were kept elsewhere."""
        logs = [key for key, _, _ in self._keys] if self._policy is None else self._policy.logs
        kept, witnessed, accepted = [], [], False
        missing: list[OutsideCheckpoint] = []
        for one in [*outside, *([OutsideCheckpoint(last, "")] if last else [])]:
            try:
                signed = one.note.signers([*logs, *self._witnesses])
                if one.note is last and not any(key in signed for key in logs):
                    self._find("policy", "last checkpoint", "none of the logs that the policy lists has signed it")
            except NoteError as error:
                self._find("log", one.kept or "last checkpoint", error.message)
                continue
            checkpoint = one.checkpoint
            if not self._holds(checkpoint, roots):
                missing.append(one)
                continue
            self._held.append(one)
            accepted |= self._policy is not None and self._policy.accepts(signed, checkpoint.origin)
            kept += [(one.kept, checkpoint.size)] if one.kept and checkpoint.size else []
            witnessed += [WitnessedPart(key.name, checkpoint.size, at) for key, at in signed.items() if at]
        self._judge_missing(missing, roots)
        if self._policy and not accepted:
            self._find("policy", "--policy", "no checkpoint of this record has the signatures that the policy asks for")
        return kept, sorted(set(witnessed), key=lambda part: (-part.size, part.witness))

    def _holds(self, checkpoint: Checkpoint, roots: dict[int, Frontier]) -> bool:
        if checkpoint.size == 0:  # the log of a record that was just made
            return not self._times or checkpoint.origin in self._names
        tree = roots.get(checkpoint.size)
        return tree is not None and checkpoint.origin in self._names and tree.root() == checkpoint.root

    @property
    def _names(self) -> set[str]:
        return {key.name for key, _, _ in self._keys}

    def _judge_missing(self, missing: Sequence[OutsideCheckpoint], roots: dict[int, Frontier]) -> None:
        """Find what the record lacks; note what belongs to a copy that went its own way."""
        is_at_home = any(one.is_home for one in self._held)
        branches = {one.checkpoint.origin for one in self._held if one.is_branch}
        others = []
        for one in missing:
            checkpoint = one.checkpoint
            if one.is_home and checkpoint.origin not in self._names:
                if is_at_home:
                    others.append(checkpoint)
                else:
                    self._find_missing(one, roots)
            elif one.find_copy and branches and checkpoint.origin not in branches:
                self._notes.append(
                    f"this record is a copy; another one went its own way, to {checkpoint.size} leaves: {one.kept}"
                )
            elif one.find_copy and (folder := one.find_copy()):
                self._notes.append(f"a copy of this record in {folder} went its own way, to {checkpoint.size} leaves")
            else:
                self._find_missing(one, roots)
        if others:
            named = sorted({f"{one.origin} of {one.size} leaves" for one in others})
            more = f" and {len(named) - MAX_LOGS_NAMED} more" if named[MAX_LOGS_NAMED:] else ""
            logs = ", ".join(named[:MAX_LOGS_NAMED]) + more
            self._notes.append(
                f"this desk has also signed other records in this folder: {logs}. They were removed, or are on "
                "another machine; if you expected one of them here, this record was put in its place"
            )

    def _find_missing(self, one: OutsideCheckpoint, roots: dict[int, Frontier]) -> None:
        checkpoint = one.checkpoint
        what = f"checkpoint of {checkpoint.size} leaves, {one.kept}"
        tree = roots.get(checkpoint.size)
        if checkpoint.origin not in self._names:
            self._find("rewritten", what, f"it is of the log {checkpoint.origin}, which this record does not name")
        elif tree is None:
            self._find("older copy", what, f"this record has {len(self._times)} leaves: later ones are gone")
        else:
            self._find("rewritten", what, "its root is another: this record is not the one that was seen then")

    def _check_times(self, witnessed: Sequence[WitnessedPart], accepted: int) -> None:
        """Find each step back in time, and leaves on the wrong side of a witness's time.

        A step among the first `accepted` leaves is a note: a person acknowledged it.
        """
        latest, before = None, 0
        for index, at in enumerate(self._times):
            if at is None:
                continue
            if latest and at < latest - MAX_CLOCK_STEP:
                message = f"its time {at.isoformat()} is before {latest.isoformat()} of leaf {before}"
                if index < accepted:
                    self._notes.append(f"leaf {index}: {message}; a person acknowledged that")
                else:
                    self._find("back-dated", f"leaf {index}", message, index)
                latest, before = at, index
            elif latest is None or at > latest:
                latest, before = at, index
        for part in witnessed:
            for index, at in enumerate(self._times[max(part.size, accepted) :], start=max(part.size, accepted)):
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


def _read_state_list(body: bytes) -> dict[str, dict[str, str]]:
    """Return the digests of the rows of each table from before the log; empty if the list is none."""
    try:
        state = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return {
        name: state[name] for name in LOGGED_TABLES if isinstance(state, dict) and isinstance(state.get(name), dict)
    }


def _parse_time(text: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    if at is None:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
