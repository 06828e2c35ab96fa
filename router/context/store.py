"""Stores of cached bytes: the interface, and a SQLite file that several processes share."""

from __future__ import annotations

import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, TypeAlias

from ...ledger.files import make_file, make_folder
from ..errors import ContextError, StoreUnusable

_KEY = re.compile(r"[a-z]{1,20}:[0-9a-f]{64}")
STORE_BUSY_SECONDS = 30.0
TOUCHES = 64
"""So many reads are noted in memory before they are written down; a process that dies loses the order of these only."""


class Size(NamedTuple):
    """What a store holds of what it may drop."""

    items: int
    bytes: int


StorePlace: TypeAlias = Literal["local", "remote"]


class ByteStore(Protocol):
    """Bytes under keys that say what is in them: a kind, a colon and a SHA-256.

    Whoever writes first is kept. A reader sees a whole value or none. Every method may be called from any thread, and by
    any number of processes at once.
    """

    @property
    def place(self) -> StorePlace:
        """Return whether what is kept stays on machines of one's own: confidential documents are kept there only."""
        ...

    def get(self, key: str) -> bytes | None:
        """Return the bytes under a key and note that they were used; None if there are none."""
        ...

    def put(self, key: str, body: bytes, *, pinned: bool = False) -> bool:
        """Keep bytes under a key, unless some are there; tell whether they were new. Pinned ones are never trimmed."""
        ...

    def drop(self, key: str) -> None:
        """Forget what is under a key."""
        ...

    def size(self) -> Size:
        """Return what is held, without what is pinned."""
        ...

    def trim(self, most_bytes: int) -> int:
        """Forget what was used longest ago until no more than so many bytes are held; return how many items went."""
        ...

    def lease(self, key: str, owner: str, seconds: float) -> bool:
        """Take the right to make what belongs under a key, or prolong it; False if another owner has it for now."""
        ...

    def release(self, key: str, owner: str) -> None:
        """Give the right back, if this owner has it."""
        ...

    def close(self) -> None:
        """Close the connection; a second time does nothing."""
        ...


def check_key(key: str) -> str:
    """Return a key that is one.

    Raises
    ------
    ContextError
        If it is not a kind, a colon and a SHA-256 in hex.
    """
    if not _KEY.fullmatch(key):
        raise ContextError("a key is a kind, a colon and a SHA-256 in hex", field="key", got=key)
    return key


_CREATE_TABLES = """
CREATE TABLE IF NOT EXISTS items (
    key TEXT PRIMARY KEY, size INTEGER NOT NULL, used INTEGER NOT NULL, pinned INTEGER NOT NULL, body BLOB NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS items_by_use ON items (pinned, used, size);
CREATE TABLE IF NOT EXISTS leases (
    key TEXT PRIMARY KEY, owner TEXT NOT NULL, taken REAL NOT NULL, until REAL NOT NULL
) STRICT;
"""
_NEXT = "(SELECT COALESCE(MAX(used), 0) + 1 FROM items WHERE pinned = 0)"


class SqliteStore:
    """A store in one SQLite file with a write-ahead log, readable by its owner alone.

    Parameters
    ----------
    path : Path
        The file; it is made where it is not there. Not on a network drive: SQLite's locks do not hold there.
    clock : callable
        Seconds; the same clock in all processes, since leases are held against it.

    Raises
    ------
    StoreUnusable
        If the file cannot be written, or is none of these.
    """

    place: StorePlace = "local"

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._path, self._clock = path, clock
        self._lock = threading.RLock()
        self._touched: dict[str, None] = {}
        with self._lock, self._explained():
            make_folder(path.parent)
            make_file(path)  # documents may be confidential
            self._connection = sqlite3.connect(
                path, timeout=STORE_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise

    def _prepare(self) -> None:
        """Set what SQLite does not remember, and make the tables; another process may do the same right now."""
        self._connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        for left in reversed(range(300)):
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or not left:
                    raise
                time.sleep(0.01)
        # A cache may lose its last writes when the power fails, as long as it is whole; what is dropped is overwritten.
        for pragma in ("synchronous = NORMAL", "secure_delete = ON"):
            self._connection.execute(f"PRAGMA {pragma}")
        with self._writing():
            for statement in _CREATE_TABLES.split(";"):
                self._connection.execute(statement)

    def get(self, key: str) -> bytes | None:
        """Return the bytes under a key; that they were used is written down with others later."""
        with self._lock, self._explained():
            row = self._connection.execute("SELECT body FROM items WHERE key = ?", (check_key(key),)).fetchone()
            if row is None:
                return None
            self._touched.pop(key, None)
            self._touched[key] = None
            if len(self._touched) >= TOUCHES:
                with self._writing():
                    pass
            return bytes(row[0])

    def put(self, key: str, body: bytes, *, pinned: bool = False) -> bool:
        """Keep bytes under a key, unless some are there."""
        values = (check_key(key), len(body), int(pinned), body)
        with self._lock, self._explained(), self._writing():
            done = self._connection.execute(
                f"INSERT INTO items (key, size, used, pinned, body) VALUES (?, ?, {_NEXT}, ?, ?) ON CONFLICT DO NOTHING",
                values,
            )
            return done.rowcount == 1

    def drop(self, key: str) -> None:
        """Forget what is under a key, and overwrite it."""
        with self._lock, self._explained(), self._writing():
            self._connection.execute("DELETE FROM items WHERE key = ?", (check_key(key),))

    def size(self) -> Size:
        """Return what is held, without what is pinned."""
        with self._lock, self._explained():
            rows = self._connection.execute("SELECT COUNT(*), COALESCE(SUM(size), 0) FROM items WHERE pinned = 0")
            return Size(*rows.fetchone())

    def trim(self, most_bytes: int) -> int:
        """Forget what was used longest ago until no more than so many bytes are held."""
        gone: list[str] = []
        with self._lock, self._explained():
            with self._writing():
                over = self.size().bytes - most_bytes
                for key, size in self._connection.execute(
                    "SELECT key, size FROM items WHERE pinned = 0 ORDER BY used, key"
                ):
                    if over <= 0:
                        break
                    over -= size
                    gone.append(key)
                self._connection.executemany("DELETE FROM items WHERE key = ?", [(key,) for key in gone])
            if gone:
                self._connection.execute("PRAGMA incremental_vacuum").fetchall()
        return len(gone)

    def lease(self, key: str, owner: str, seconds: float) -> bool:
        """Take or prolong a lease; one that ran out, or that a clock which was set back put far ahead, counts for nothing."""
        now = self._clock()
        with self._lock, self._explained(), self._writing():
            done = self._connection.execute(
                "INSERT INTO leases VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET "
                "owner = excluded.owner, taken = excluded.taken, until = excluded.until "
                "WHERE owner = excluded.owner OR until <= excluded.taken OR taken > excluded.taken",
                (check_key(key), owner, now, now + seconds),
            )
            return done.rowcount == 1

    def release(self, key: str, owner: str) -> None:
        """Give a lease back, if this owner has it."""
        with self._lock, self._explained(), self._writing():
            self._connection.execute("DELETE FROM leases WHERE key = ? AND owner = ?", (check_key(key), owner))

    def close(self) -> None:
        """Write down what was used, and close the file; a second time does nothing."""
        with self._lock:
            with suppress(StoreUnusable), self._explained(), self._writing():
                pass
            self._connection.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Hold the file for writing: all is done or nothing; what was used since goes first, in its order."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            used = [(key,) for key in self._touched]
            if used:
                self._connection.executemany(f"UPDATE items SET used = {_NEXT} WHERE key = ? AND pinned = 0", used)
            yield
            self._connection.execute("COMMIT")
        except BaseException:  # also Ctrl-C: it goes on its way after the rollback
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise
        self._touched.clear()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say what SQLite's or the system's error means for a person."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            said = str(error).lower()
            broken = "malformed" in said or "not a database" in said
            raise StoreUnusable(
                f"cannot use the context cache {self._path}: {error}",
                field="context",
                hint="Delete the file: all that is in it can be made again."
                if broken
                else "Make room or mend the rights of the folder, or choose another one.",
            ) from error
