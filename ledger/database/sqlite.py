"""One SQLite connection: durable, shared by threads, and quiet about nothing.

`INSERT OR REPLACE` deletes without asking the trigger of deletions, unless the connection says otherwise; so a further row
under a key that is taken is passed over, as by `ON CONFLICT DO NOTHING`.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from ..errors import WorkspaceError
from .protocol import T, Transaction, explained, workspace_error
from .schema import INDICES, SCHEMA_VERSION, TABLE_KEYS, ColumnTypes, tables

SQLITE_BUSY_SECONDS = 30.0


@contextmanager
def begin_immediate(connection: sqlite3.Connection) -> Iterator[None]:
    """Hold a database for writing: all of it is done, or nothing, whatever interrupts it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:  # also Ctrl-C: it goes on its way after the rollback
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


class SqliteDatabase:
    """The ledger's file; every write is one immediate transaction and is on the disk when it returns.

    `before_making` is called before tables are made in an empty file, and may refuse it.
    """

    def __init__(self, path: Path, before_making: Callable[[], None] = lambda: None) -> None:
        self._path, self._before_making = path, before_making
        self._lock = threading.RLock()
        with self._lock, explained(path):
            self._connection = sqlite3.connect(
                path, timeout=SQLITE_BUSY_SECONDS, isolation_level=None, check_same_thread=False
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
        if version > SCHEMA_VERSION:
            raise WorkspaceError(
                f"the ledger {self._path} was written by a newer Alphaloom",
                got=f"format {version}",
                allowed=f"format {SCHEMA_VERSION}",
                hint="Upgrade Alphaloom, or choose another folder with --workspace.",
            )
        if version == 0:
            self._before_making()
        if version < SCHEMA_VERSION:
            self.write(self._make)

    @staticmethod
    def _make(session: Transaction) -> None:
        for statement in statements():
            session.execute(statement)

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

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Do a piece of work in one immediate transaction."""
        with self._lock, explained(self._path), begin_immediate(self._connection):
            return work(self._connection)

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Do a piece of work that sees a single state."""
        with self._lock, explained(self._path):
            self._connection.execute("BEGIN")
            try:
                return work(self._connection)
            finally:
                self._connection.execute("ROLLBACK")

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        with self._lock, explained(self._path):
            return self._connection.execute(query, values).fetchall()

    def held(self, name: str) -> AbstractContextManager[None]:
        """Hold nothing more: whoever reaches this file reaches the lock files beside it."""
        return nullcontext()

    def holder(self, name: str) -> None:
        """Return nobody, for the same reason."""

    @contextmanager
    def explained(self, place: Path) -> Iterator[None]:
        """Say what SQLite's error means for a person."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise workspace_error(place, error) from error

    def close(self) -> None:
        """Close the connection; a second time does nothing."""
        with self._lock:
            self._connection.close()


_SQLITE_TYPES = ColumnTypes(serial="INTEGER PRIMARY KEY", integer="INTEGER", text="TEXT")


def statements() -> list[str]:
    """Return what makes an empty store; each statement may be run again."""
    made = [f"CREATE TABLE IF NOT EXISTS {name} ({columns}) STRICT" for name, columns in tables(_SQLITE_TYPES).items()]
    made += [f"CREATE INDEX IF NOT EXISTS {name} ON {columns}" for name, columns in INDICES.items()]
    guards = [_guard(table, deed) for table in TABLE_KEYS for deed in ("UPDATE", "DELETE")]
    return [
        *made,
        *guards,
        *(_first_row_trigger(table) for table in TABLE_KEYS),
        f"PRAGMA user_version = {SCHEMA_VERSION}",
    ]


def _guard(table: str, deed: str) -> str:
    """Return the trigger that refuses to change what a table holds."""
    return (
        f"CREATE TRIGGER IF NOT EXISTS {table}_no_{deed.lower()} BEFORE {deed} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
    )


def _first_row_trigger(table: str) -> str:
    """Return the trigger that lets the first row under a key stay."""
    taken = [" AND ".join(f"{column} = NEW.{column}" for column in key) for key in TABLE_KEYS[table]]
    held = " OR ".join(f"EXISTS (SELECT 1 FROM {table} WHERE {each})" for each in taken)
    return f"CREATE TRIGGER IF NOT EXISTS {table}_stays BEFORE INSERT ON {table} WHEN {held} BEGIN SELECT RAISE(IGNORE); END"
