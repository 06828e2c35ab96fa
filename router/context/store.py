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

from ...ledger.database import begin_immediate, enable_wal
from ...ledger.files import make_file, make_folder
from ..errors import ContextError, StoreUnusable

_KEY = re.compile(r"[a-z]{1,20}:[0-9a-f]{64}")
STORE_BUSY_SECONDS = 30.0
TOUCHES = 64
"""Reads noted in memory before they are written; a process that crashes loses only the order of these."""


class Size(NamedTuple):
    """Items and bytes of a store, without pinned ones."""

    items: int
    bytes: int


StorePlace: TypeAlias = Literal["local", "remote"]


class ByteStore(Protocol):
    """Bytes under keys of the form kind, colon, SHA-256.

    The first write of a key wins. A read returns a whole value or none. Every method may be called from any thread and
    from any number of processes.
    """

    @property
    def place(self) -> StorePlace:
        """Return "local" for storage on machines of one's own; confidential documents are stored there only."""
        ...

    def get(self, key: str) -> bytes | None:
        """Return the bytes of a key and note the use; None if it has none."""
        ...

    def put(self, key: str, body: bytes, *, pinned: bool = False) -> bool:
        """Store bytes under a key unless it has some; return whether they were new. Pinned items are never trimmed."""
        ...

    def drop(self, key: str) -> None:
        """Delete the bytes of a key."""
        ...

    def size(self) -> Size:
        """Return the size without pinned items."""
        ...

    def trim(self, most_bytes: int) -> int:
        """Delete the least recently used items until at most `most_bytes` remain; return how many were deleted."""
        ...

    def lease(self, key: str, owner: str, seconds: float) -> bool:
        """Take or prolong the lease on a key's computation; False if another owner has it."""
        ...

    def release(self, key: str, owner: str) -> None:
        """Release the lease, if this owner has it."""
        ...

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        ...


def check_key(key: str) -> str:
    """Return a valid key.

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
        The file; created if missing. It must not be on a network drive, where SQLite's locks are unreliable.
    clock : callable
        Returns seconds; all processes must use the same clock, since leases depend on it.

    Raises
    ------
    StoreUnusable
        If the file cannot be written, or is no such store.
    """

    place: StorePlace = "local"

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._path, self._clock = path, clock
        self._lock = threading.RLock()
        self._touched: dict[str, None] = {}
        with self._lock, self._explain_errors():
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
        """Set the pragmas that SQLite does not store, and create the tables; other processes may do so concurrently."""
        self._connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        enable_wal(self._connection)
        # The cache may lose its last writes in a power failure, but must stay intact. Deleted content is overwritten.
        for pragma in ("synchronous = NORMAL", "secure_delete = ON"):
            self._connection.execute(f"PRAGMA {pragma}")
        with self._hold_for_writing():
            for statement in _CREATE_TABLES.split(";"):
                self._connection.execute(statement)

    def get(self, key: str) -> bytes | None:
        """Return the bytes of a key, or None; the use is written later, together with others."""
        with self._lock, self._explain_errors():
            row = self._connection.execute("SELECT body FROM items WHERE key = ?", (check_key(key),)).fetchone()
            if row is None:
                return None
            self._touched.pop(key, None)
            self._touched[key] = None
            if len(self._touched) >= TOUCHES:
                with self._hold_for_writing():
                    pass
            return bytes(row[0])

    def put(self, key: str, body: bytes, *, pinned: bool = False) -> bool:
        """Store bytes under a key unless it has some; return whether they were stored."""
        values = (check_key(key), len(body), int(pinned), body)
        with self._lock, self._explain_errors(), self._hold_for_writing():
            cursor = self._connection.execute(
                f"INSERT INTO items (key, size, used, pinned, body) VALUES (?, ?, {_NEXT}, ?, ?) ON CONFLICT DO "
                "NOTHING",
                values,
            )
            return cursor.rowcount == 1

    def drop(self, key: str) -> None:
        """Delete the bytes of a key, and overwrite them in the file."""
        with self._lock, self._explain_errors(), self._hold_for_writing():
            self._connection.execute("DELETE FROM items WHERE key = ?", (check_key(key),))

    def size(self) -> Size:
        """Return the size without pinned items."""
        with self._lock, self._explain_errors():
            rows = self._connection.execute("SELECT COUNT(*), COALESCE(SUM(size), 0) FROM items WHERE pinned = 0")
            return Size(*rows.fetchone())

    def trim(self, most_bytes: int) -> int:
        """Delete the least recently used items until at most `most_bytes` remain; return how many were deleted."""
        with self._lock, self._explain_errors():
            with self._hold_for_writing():
                oldest = self._list_oldest(self.size().bytes - most_bytes)
                self._connection.executemany("DELETE FROM items WHERE key = ?", [(key,) for key in oldest])
            if oldest:
                self._connection.execute("PRAGMA incremental_vacuum").fetchall()
        return len(oldest)

    def _list_oldest(self, bytes_: int) -> list[str]:
        """Return the keys, least recently used first, that together hold at least so many bytes."""
        keys: list[str] = []
        for key, size in self._connection.execute("SELECT key, size FROM items WHERE pinned = 0 ORDER BY used, key"):
            if bytes_ <= 0:
                break
            bytes_ -= size
            keys.append(key)
        return keys

    def lease(self, key: str, owner: str, seconds: float) -> bool:
        """Take or prolong a lease. An expired lease is free, and so is one from the future: the clock was set back."""
        now = self._clock()
        with self._lock, self._explain_errors(), self._hold_for_writing():
            cursor = self._connection.execute(
                "INSERT INTO leases VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET "
                "owner = excluded.owner, taken = excluded.taken, until = excluded.until "
                "WHERE owner = excluded.owner OR until <= excluded.taken OR taken > excluded.taken",
                (check_key(key), owner, now, now + seconds),
            )
            return cursor.rowcount == 1

    def release(self, key: str, owner: str) -> None:
        """Release a lease, if this owner has it."""
        with self._lock, self._explain_errors(), self._hold_for_writing():
            self._connection.execute("DELETE FROM leases WHERE key = ? AND owner = ?", (check_key(key), owner))

    def close(self) -> None:
        """Write the noted uses, and close the file; a second call does nothing."""
        with self._lock:
            with suppress(StoreUnusable), self._explain_errors(), self._hold_for_writing():
                pass
            self._connection.close()

    @contextmanager
    def _hold_for_writing(self) -> Iterator[None]:
        """Hold a write transaction, which first writes the noted uses in their order."""
        with begin_immediate(self._connection):
            used = [(key,) for key in self._touched]
            if used:
                self._connection.executemany(f"UPDATE items SET used = {_NEXT} WHERE key = ? AND pinned = 0", used)
            yield
        self._touched.clear()

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Translate errors of SQLite and the system into `StoreUnusable`."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            message = str(error).lower()
            broken = "malformed" in message or "not a database" in message
            raise StoreUnusable(
                f"cannot use the context cache {self._path}: {error}",
                field="context",
                hint="Delete the file: all that is in it can be made again."
                if broken
                else "Make room or mend the rights of the folder, or choose another one.",
            ) from error
