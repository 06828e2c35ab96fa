"""Signs the log: one checkpoint over all leaves a second after the first new one, and one when the ledger closes.

A process that is killed in between leaves leaves without a checkpoint. The next process that writes signs them with its
own. Verification says so: it finds leaves under one checkpoint whose times are far apart.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..database.protocol import Database, Transaction
from ..database.schema import LOGGED_TABLES
from ..digest import canonical_json
from ..errors import AlphaloomError
from ..files.objects import Bodies
from .checkpoint import Checkpoint
from .keys import LOG_KEY, SIGNED, WORKSPACES, KeyFolder
from .leaves import SALT_SIZE, STATE_TABLE, LoggedTransaction, encode_leaf
from .note import KIND_LOG, NoteError, SignedNote, SigningKey, VerifierKey, decode_base64
from .reader import digest_row, read_rows
from .tree import HASH_SIZE, Frontier, encode_nodes, hash_leaf
from .upkeep.retirement import find_second_key, record_retirements, refuse_retired

BATCH_SECONDS = 1.0
"""How long a leaf waits for others before all are signed."""
_ADD_CHECKPOINT = "INSERT INTO log_checkpoints (size, nodes, note) VALUES (?, ?, ?)"
_LAST_CHECKPOINT = "SELECT size, nodes FROM log_checkpoints ORDER BY id DESC LIMIT 1"


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
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._has_written = False

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
        with suppress(AlphaloomError, OSError):
            self.sign()

    def run_query(self, query: str) -> list[tuple[Any, ...]]:
        """Return all rows of a query on the ledger."""
        return self._database.rows(query)

    def sign(self, *, anew: bool = False) -> Checkpoint | None:
        """Sign all leaves; return the checkpoint, None if the last one covers them.

        With `anew`, the desk's keys are written into the log first, which adds a leaf where one is new to it.

        Raises
        ------
        NoteError
            If the key cannot be read or made; `OSError` if the folder of keys cannot be written.
        """
        seed = self._keys.make_seed(LOG_KEY)
        refuse_retired(self._keys, seed)
        signed: list[tuple[Checkpoint, SignedNote]] = []

        def work(session: Transaction) -> None:
            signed.clear()
            frontier, logged = _read_frontier(session), LoggedTransaction(session, self._draw_salt)
            retired = record_retirements(logged, self._keys, self._now)
            if not anew and _count_leaves(session) == frontier.size:
                return
            key = self._choose_key(logged, seed, retired)
            second = find_second_key(logged, self._keys, key.name, self._now)
            if _count_leaves(session) > frontier.size:
                signed.append(self._add_checkpoint(session, frontier, [*second, key]))

        self._database.write(work)
        for checkpoint, note in signed:
            here = str(self._workspace.resolve())
            self._keys.remember(SIGNED, checkpoint.origin, note, here)
            self._keys.remember(WORKSPACES, here, note)
            return checkpoint
        return None

    def _add_checkpoint(
        self, session: Transaction, frontier: Frontier, keys: Sequence[SigningKey]
    ) -> tuple[Checkpoint, SignedNote]:
        rows = session.execute("SELECT entry FROM leaves WHERE id > ? ORDER BY id", (frontier.size,)).fetchall()
        for (entry,) in rows:
            frontier.push(hash_leaf(entry.encode()))
        checkpoint = Checkpoint(keys[-1].name, frontier.size, frontier.root())
        note = SignedNote(str(checkpoint), tuple(key.sign(str(checkpoint)) for key in keys))
        session.execute(_ADD_CHECKPOINT, (frontier.size, encode_nodes(frontier), str(note)))
        return checkpoint, note

    def _choose_key(self, session: LoggedTransaction, seed: bytes, retired: str = "") -> SigningKey:
        """Return the key that signs; a key that is new to the log is first written into it, with the reason.

        `retired` is why the last key of this desk signs no more, if it was retired just now.

        The name of the log stays, unless this desk has signed more of it than is there: a second history under one name
        would be the fault that a log is there to show.
        """
        rows = session.execute("SELECT vkey FROM log_keys ORDER BY id").fetchall()
        names = [VerifierKey.parse(vkey).name for (vkey,) in rows]
        own = [name for name, (vkey,) in zip(names, rows, strict=True) if str(_make_key(name, seed).verifier) == vkey]
        why = "the log begins"
        name = (own or names or [""])[-1]
        missing = self._find_missing(session, name) if name else None
        if own and missing is None:
            return _make_key(name, seed)
        if missing is not None:
            why = f"{missing.size} leaves were signed as {name} and are not all here"
        elif rows:
            why = f"it replaces a retired key: {retired}" if retired else "a desk with another key writes on"
        name = name if rows and missing is None else f"alphaloom/{self._draw_salt(8).hex()}"
        key = _make_key(name, seed)
        session.append("log_keys", {"vkey": str(key.verifier), "why": why, "at": self._now()})
        return key

    def _find_missing(self, session: LoggedTransaction, origin: str) -> Checkpoint | None:
        """Return the checkpoint that this desk signed last and that the record does not hold; None if it holds it."""
        for note in self._keys.recall(SIGNED, origin):
            last = Checkpoint.parse(note.text)
            rows = session.execute("SELECT note FROM log_checkpoints WHERE size = ?", (last.size,)).fetchall()
            if not any(SignedNote.parse(stored).text == note.text for (stored,) in rows):
                return last
        return None


def _count_leaves(session: Transaction) -> int:
    """Return the number of the last leaf, 0 if there is none."""
    return int(session.execute("SELECT coalesce(max(id), 0) FROM leaves").fetchone()[0])


def _make_key(name: str, seed: bytes) -> SigningKey:
    return SigningKey(name, KIND_LOG, seed)


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


def begin_log(database: Database, objects: Bodies, now: Callable[[], str], draw_salt: Callable[[int], bytes]) -> None:
    """Begin the log of a record that was written before there was one, with a leaf over its rows as they are.

    The leaf holds the digest of a list of the rows' digests, which is stored with the objects.
    """
    if database.rows("SELECT 1 FROM leaves LIMIT 1"):
        return
    state = {
        table: {str(number): digest_row(row) for number, row in read_rows(database.rows, table)}
        for table in LOGGED_TABLES
    }
    if not any(state.values()):
        return
    row = {"at": now(), "body": canonical_json(state)}
    entry = encode_leaf(STATE_TABLE, row, draw_salt(SALT_SIZE))
    objects.put(row["body"].encode())

    def work(session: Transaction) -> None:
        if session.execute("SELECT 1 FROM leaves LIMIT 1").fetchone() is None:  # another process may have been faster
            session.execute("INSERT INTO leaves (entry) VALUES (?)", (entry,))

    database.write(work)
