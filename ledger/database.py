"""One SQLite connection: durable, shared by threads, and quiet about nothing."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from . import schema
from .errors import UnknownRun, WorkspaceError

PATIENCE_SECONDS = 30.0


@contextmanager
def immediate(connection: sqlite3.Connection) -> Iterator[None]:
    """Hold a database for writing: all of it is done, or nothing, whatever interrupts it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:  # also Ctrl-C: it goes on its way after the rollback
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


class Database:
    """The ledger's store; every write is one immediate transaction and is on the disk when it returns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.RLock()
        with self._lock, explained(path):
            self._connection = sqlite3.connect(
                path, timeout=PATIENCE_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise

    def _prepare(self) -> None:
        """Set what SQLite does not remember, and make the tables if they are not there."""
        self._journal()
        for pragma in ("synchronous = FULL", "foreign_keys = ON", "recursive_triggers = ON"):
            self._connection.execute(f"PRAGMA {pragma}")
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if version > schema.VERSION:
            raise WorkspaceError(
                f"the ledger {self._path} was written by a newer Alphaloom",
                got=f"format {version}",
                allowed=f"format {schema.VERSION}",
                hint="Upgrade Alphaloom, or choose another folder with --workspace.",
            )
        if version < schema.VERSION:
            with self.write() as connection:
                for statement in schema.statements():
                    connection.execute(statement)

    def _journal(self) -> None:
        """Switch to write-ahead logging; SQLite does not wait for another process that does the same right now."""
        for left in reversed(range(300)):
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or not left:
                    raise
                time.sleep(0.01)

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Open one immediate transaction; it is whole or it is not."""
        with self._lock, explained(self._path), immediate(self._connection):
            yield self._connection

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Open one transaction that sees a single state and writes nothing."""
        with self._lock, explained(self._path):
            self._connection.execute("BEGIN")
            try:
                yield self._connection
            finally:
                self._connection.execute("ROLLBACK")

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        with self._lock, explained(self._path):
            return self._connection.execute(query, values).fetchall()

    def close(self) -> None:
        """Close the connection; a second time does nothing."""
        with self._lock:
            self._connection.close()


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Say what SQLite's or the system's error means for a person."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        if "FOREIGN KEY" not in str(error):
            raise
        raise UnknownRun(
            "a record names a run that was never started", hint="Call start_run before recording."
        ) from error
    except (sqlite3.DatabaseError, OSError) as error:
        raise refusal(path, error) from error


def refusal(path: Path, error: Exception) -> WorkspaceError:
    """Return the error that a person understands."""
    said = str(error).lower()
    for marks, message, hint in _REFUSALS:
        if any(mark in said for mark in marks):
            told = WorkspaceError(message.format(path=path), field="workspace", hint=hint)
            told.placeless = message.format(path="the workspace")
            return told
    if isinstance(error, sqlite3.ProgrammingError):
        return WorkspaceError(f"the ledger {path} is closed or misused: {error}", field="workspace")
    return WorkspaceError(f"cannot use {path}: {error}", field="workspace", hint=_ELSEWHERE)


_ELSEWHERE = "Choose another folder with --workspace."
_REFUSALS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        ("disk is full", "no space left", "quota exceeded", "file too large"),
        "no space is left for {path}; what was recorded before is safe",
        "Free some space and resume, or choose another folder with --workspace.",
    ),
    (
        ("readonly", "read-only", "permission denied", "not permitted", "unable to open"),
        "cannot write to {path}",
        "Make the folder writable, or choose another one with --workspace.",
    ),
    (("not a directory", "file exists"), "{path} is not in a folder: a file is in the way", _ELSEWHERE),
    (
        ("not a database", "malformed"),
        "{path} is damaged, or is no ledger",
        "Restore it from a copy, or choose another folder with --workspace.",
    ),
    (
        ("locked", "busy"),
        "another process holds {path} for too long",
        "Wait for it or stop it, then try again.",
    ),
)
