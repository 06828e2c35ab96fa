"""Signs the log: one checkpoint over all leaves a second after the first new one, and one when the ledger closes.

A process that is killed in between leaves leaves without a checkpoint. The next process that writes signs them with its
own. Verification says so: it finds leaves under one checkpoint whose times are far apart.
"""

from __future__ import annotations

import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..database.protocol import Database, Transaction
from ..database.schema import LOGGED_TABLES
from ..digest import canonical_json
from ..errors import AlphaloomError
from .checkpoint import Checkpoint
from .keys import ACKNOWLEDGED, LOG_KEY, SIGNED, WORKSPACES, KeyFolder, RememberedCheckpoint
from .leaves import STATE_TABLE, LoggedTransaction
from .note import KIND_LOG, NoteError, SignedNote, SigningKey, VerifierKey, decode_base64
from .reader import digest_row, holds_checkpoint, is_same_record, read_rows, spell_path
from .tree import HASH_SIZE, Frontier, encode_nodes, hash_leaf
from .upkeep.retirement import find_second_key, record_retirements, refuse_retired

BATCH_SECONDS = 1.0
"""How long a leaf waits for others before all are signed."""
FIRST_REASON = "the log begins"
_ADD_CHECKPOINT = "INSERT INTO log_checkpoints (size, nodes, note) VALUES (?, ?, ?)"
_LAST_CHECKPOINT = "SELECT size, nodes FROM log_checkpoints ORDER BY id DESC LIMIT 1"
_LIST_KEYS = "SELECT vkey FROM log_keys ORDER BY id"
MAX_LOGS_NAMED = 3
"""Earlier logs of a folder that a log names when it begins."""
_FAILURES = (AlphaloomError, OSError, sqlite3.Error)
"""What may keep a checkpoint from being signed: a key, a folder, a server, or a record that somebody changed."""
_said: set[str] = set()


@dataclass(frozen=True)
class _LogChoice:
    """The key that signs, and what the desk remembers of it.

    Attributes
    ----------
    key : SigningKey
        The key, under the name of the log.
    is_branch : bool
        Whether the log of this name continues a copy, beside the original.
    is_home : bool
        Whether the record holds what the desk remembers of this folder, or the desk remembers nothing of it.
    moved : tuple of str
        Folders in which the record was before.
    set_aside : tuple of str
        Logs of which nothing must be in this folder any more, because a person accepted that.
    """

    key: SigningKey
    is_branch: bool = False
    is_home: bool = True
    moved: tuple[str, ...] = ()
    set_aside: tuple[str, ...] = ()


class CheckpointSigner:
    """Signs the leaves of one ledger with the key of this desk.

    Without a folder for keys the leaves wait: whoever has a key signs them later.
    """

    def __init__(
        self,
        database: Database,
        keys: KeyFolder,
        now: Callable[[], str],
        draw_salt: Callable[[int], bytes],
        workspace: Path,
    ) -> None:
        self._database, self._keys, self._now, self._draw_salt = database, keys, now, draw_salt
        self._workspace = workspace
        self._here = str(workspace.resolve())
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._has_written = False

    def begin(self) -> None:
        """Name the log of a record that was just made, and remember the name for its folder before the first row.

        A process that is killed before it signs then leaves a record that belongs to its folder.
        """
        with self._warned():
            seed = self._keys.make_seed(LOG_KEY)

            def work(session: Transaction) -> None:
                names = [VerifierKey.parse(vkey).name for (vkey,) in session.execute(_LIST_KEYS).fetchall()]
                stored = session.execute("SELECT note FROM log_checkpoints ORDER BY id DESC LIMIT 1").fetchone()
                key = _make_key(names[-1] if names else self._draw_name(), seed)
                note = SignedNote.parse(stored[0]) if stored else _sign_tree((key,), Frontier())
                reason = _describe_earlier(self._keys.recall(WORKSPACES, self._here))
                origin = Checkpoint.parse(note.text).origin
                for one in self._keys.recall(WORKSPACES, self._here):
                    if one.checkpoint.size == 0:  # it was never signed, and must not stand for this folder any more
                        self._keys.forget(WORKSPACES, self._here, one.about)
                self._keys.remember(WORKSPACES, self._here, note, origin)
                if not names:
                    self._add_key(LoggedTransaction(session, self._draw_salt), key, f"{FIRST_REASON}{reason}")

            self._database.write(work)
            self._has_written = True

    def schedule(self) -> None:
        """Sign in a second, unless that is under way already; called after each write."""
        with self._lock:
            self._has_written = True
            if self._timer is None:
                timer = threading.Timer(BATCH_SECONDS, self._sign_batch)
                timer.daemon = True
                with suppress(RuntimeError):  # no thread can be started: the leaves are signed at the close
                    timer.start()
                    self._timer = timer

    def close(self) -> None:
        """Sign what this process wrote since the last checkpoint; the database must still be open."""
        with self._lock:
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        if self._has_written:  # also where the timer fires just now: its thread may find the database closed
            self._sign_quietly()

    def _sign_batch(self) -> None:
        with self._lock:
            if self._timer is not threading.current_thread():  # closed meanwhile
                return
            self._timer = None
        self._sign_quietly()

    def _sign_quietly(self) -> None:
        """Sign; a full disk or an unreadable key ends no campaign: the leaves wait, and verification says so."""
        with self._warned():
            self.sign()

    def run_query(self, query: str) -> list[tuple[Any, ...]]:
        """Return all rows of a query on the ledger."""
        return self._database.rows(query)

    @contextmanager
    def _warned(self) -> Iterator[None]:
        """Say once in a process why nothing could be signed, and go on."""
        try:
            yield
        except _FAILURES as error:
            reason = error.message if isinstance(error, AlphaloomError) else str(error)
            line = f"warning: the record of {spell_path(self._workspace)} could not be signed: {reason}"
            if line not in _said:
                _said.add(line)
                print(line, file=sys.stderr, flush=True)

    def sign(self, *, anew: bool = False) -> None:
        """Sign all leaves, unless the last checkpoint covers them.

        With `anew`, the desk's keys are written into the log first, which adds a leaf where one is new to it.

        Raises
        ------
        NoteError
            If the key cannot be read or made, or the folder of keys cannot be written.
        """
        self._sign("", anew=anew)

    def acknowledge(self, reason: str) -> str:
        """Accept the record as it is, under a new name of its log; return what the record then says.

        What this desk remembers of the folder, and steps of the clock so far, are no findings from then on.

        Raises
        ------
        NoteError
            As `sign` does.
        """
        why = f"acknowledged: {reason}{_describe_earlier(self._keys.recall(WORKSPACES, self._here))}"
        self._sign(why)
        return why

    def _sign(self, accepted: str, *, anew: bool = False) -> None:
        seed = self._keys.make_seed(LOG_KEY)
        refuse_retired(self._keys, seed)
        signed: list[tuple[_LogChoice, SignedNote]] = []

        def work(session: Transaction) -> None:
            signed.clear()
            frontier, logged = _read_frontier(session), LoggedTransaction(session, self._draw_salt)
            retired = record_retirements(logged, self._keys, self._now)
            if not anew and not accepted and _count_leaves(session) == frontier.size:
                return
            choice = self._take_over(logged, seed, accepted) if accepted else self._choose_log(logged, seed, retired)
            second = find_second_key(logged, self._keys, choice.key.name, self._now)
            if _count_leaves(session) > frontier.size:
                signed.append((choice, _add_checkpoint(session, frontier, [*second, choice.key])))

        self._database.write(work)
        for choice, note in signed:
            self._remember(choice, note)

    def _remember(self, choice: _LogChoice, note: SignedNote) -> None:
        """Keep a checkpoint outside the record."""
        name = choice.key.name
        self._keys.remember(SIGNED, name, note, self._here, is_branch=choice.is_branch)
        if choice.is_home:
            self._keys.remember(WORKSPACES, self._here, note, name)
        for folder in choice.moved:
            self._keys.forget(SIGNED, name, folder)
        if choice.set_aside:
            self._keys.remember(ACKNOWLEDGED, name, note)
            for origin in choice.set_aside:
                self._keys.forget(SIGNED, origin, self._here)
                self._keys.forget(WORKSPACES, self._here, origin)

    def _choose_log(self, session: LoggedTransaction, seed: bytes, retired: str) -> _LogChoice:
        """Return the key that signs; a key that is new to the log is first written into it, with the reason.

        The name of the log stays, unless this desk has signed more of it than is there, or the record is a copy of one
        that is still where this desk signed it: two histories under one name would be the fault that a log is there to
        show. `retired` is why the last key of this desk signs no more, if it was retired just now.
        """
        names, own = self._read_names(session, seed)
        homes = self._keys.recall(WORKSPACES, self._here)
        is_home = not homes or any(_holds(session, names, one) for one in homes)
        if not names:
            return _LogChoice(self._add_key(session, _make_key(self._draw_name(), seed), FIRST_REASON), is_home=is_home)
        name = own[-1] if own else names[-1]
        known = self._keys.recall(SIGNED, name)
        home = [one for one in homes if one.about == name]
        missing = next((one for one in (*known, *home) if not _holds(session, names, one)), None)
        others = () if home or any(one.about == self._here for one in known) else self._list_others(known)
        originals = [one for one in others if holds_checkpoint(Path(one.about), one.note)]
        if originals or missing:
            why = "a copy goes on beside the original"
            if not originals and missing:
                why = f"{missing.checkpoint.size} leaves were signed as {name} and are not all here"
            key = self._add_key(session, _make_key(self._draw_name(), seed), why)
            return _LogChoice(key, is_branch=bool(originals), is_home=is_home)
        key = _make_key(name, seed)
        if not own:
            why = f"it replaces a retired key: {retired}" if retired else "a desk with another key writes on"
            self._add_key(session, key, why)
        is_branch = any(one.is_branch for one in known)
        return _LogChoice(key, is_branch, is_home, tuple(one.about for one in others))

    def _list_others(self, known: Sequence[RememberedCheckpoint]) -> list[RememberedCheckpoint]:
        """Return the checkpoints that were signed in another record than this one."""
        return [one for one in known if not is_same_record(Path(one.about), self._workspace)]

    def _take_over(self, session: LoggedTransaction, seed: bytes, why: str) -> _LogChoice:
        """Return a key under a new name, for which nothing that was signed in this folder before must be there."""
        names, _ = self._read_names(session, seed)
        homes = [one.about for one in self._keys.recall(WORKSPACES, self._here)]
        key = self._add_key(session, _make_key(self._draw_name(), seed), why)
        return _LogChoice(key, is_branch=True, set_aside=tuple(dict.fromkeys([*names, *homes])))

    def _read_names(self, session: Transaction, seed: bytes) -> tuple[list[str], list[str]]:
        """Return the names of the log, and those under which this desk's key signs."""
        keys = [VerifierKey.parse(vkey) for (vkey,) in session.execute(_LIST_KEYS).fetchall()]
        return [key.name for key in keys], [key.name for key in keys if _make_key(key.name, seed).verifier == key]

    def _add_key(self, session: LoggedTransaction, key: SigningKey, why: str) -> SigningKey:
        session.append("log_keys", {"vkey": str(key.verifier), "why": why, "at": self._now()})
        return key

    def _draw_name(self) -> str:
        return f"alphaloom/{self._draw_salt(8).hex()}"


def _count_leaves(session: Transaction) -> int:
    """Return the number of the last leaf, 0 if there is none."""
    return int(session.execute("SELECT coalesce(max(id), 0) FROM leaves").fetchone()[0])


def _make_key(name: str, seed: bytes) -> SigningKey:
    return SigningKey(name, KIND_LOG, seed)


def _sign_tree(keys: Sequence[SigningKey], tree: Frontier) -> SignedNote:
    text = str(Checkpoint(keys[-1].name, tree.size, tree.root()))
    return SignedNote(text, tuple(key.sign(text) for key in keys))


def _add_checkpoint(session: Transaction, frontier: Frontier, keys: Sequence[SigningKey]) -> SignedNote:
    rows = session.execute("SELECT entry FROM leaves WHERE id > ? ORDER BY id", (frontier.size,)).fetchall()
    for (entry,) in rows:
        frontier.push(hash_leaf(entry.encode()))
    note = _sign_tree(keys, frontier)
    session.execute(_ADD_CHECKPOINT, (frontier.size, encode_nodes(frontier), str(note)))
    return note


def _holds(session: Transaction, names: Sequence[str], one: RememberedCheckpoint) -> bool:
    """Return whether a record holds a checkpoint; of no leaves, whether it names the log."""
    if one.checkpoint.size == 0:
        return one.checkpoint.origin in names
    rows = session.execute("SELECT note FROM log_checkpoints WHERE size = ?", (one.checkpoint.size,)).fetchall()
    return any(SignedNote.parse(stored).text == one.note.text for (stored,) in rows)


def _describe_earlier(earlier: Sequence[RememberedCheckpoint]) -> str:
    """Return what a log that begins in a folder says of those that were there before."""
    logs = [f"{one.checkpoint.origin} of {one.checkpoint.size} leaves" for one in earlier if one.checkpoint.size]
    return f"; logs in this folder before: {', '.join(logs[-MAX_LOGS_NAMED:])}" if logs else ""


def _read_frontier(session: Transaction) -> Frontier:
    """Return the tree of the last checkpoint.

    Raises
    ------
    NoteError
        If its stored nodes were changed: no checkpoint is signed over them.
    """
    row = session.execute(_LAST_CHECKPOINT).fetchone()
    if row is None:
        return Frontier()
    raw = decode_base64(row[1]) or b""
    try:
        return Frontier(row[0], [raw[place : place + HASH_SIZE] for place in range(0, len(raw), HASH_SIZE)])
    except ValueError as error:
        changed = NoteError("the last checkpoint of the log was changed", hint="alphaloom record verify says more.")
        raise changed from error


def begin_log(session: LoggedTransaction, put_object: Callable[[bytes], object], now: Callable[[], str]) -> None:
    """Begin the log of a record that was written before there was one, with a leaf over its rows as they are.

    It runs in the transaction that adds the tables of the log to a record of an earlier version, and never otherwise: a
    log that somebody emptied must not begin anew. The leaf holds the digest of a list of the rows' digests, which is
    stored with the objects.
    """

    def run_query(query: str) -> Sequence[tuple[Any, ...]]:
        rows: Sequence[tuple[Any, ...]] = session.execute(query).fetchall()
        return rows

    if run_query("SELECT 1 FROM leaves LIMIT 1"):
        return
    state = {
        table: {str(number): digest_row(row) for number, row in read_rows(run_query, table)} for table in LOGGED_TABLES
    }
    if any(state.values()):
        row = {"at": now(), "body": canonical_json(state)}
        put_object(row["body"].encode())
        session.add_leaf(STATE_TABLE, row)


def is_empty(database: Database) -> bool:
    """Return whether a record has neither leaves nor rows: a log may begin in it."""
    return not any(database.rows(f"SELECT 1 FROM {table} LIMIT 1") for table in ("leaves", *LOGGED_TABLES))
