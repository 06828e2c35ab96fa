"""The ledger in a SQLite file: one durable connection, shared by threads.

`INSERT OR REPLACE` of another program deletes a row without firing the trigger on deletions, unless its connection sets
`recursive_triggers`. So a trigger ignores a further row under a taken key, as `ON CONFLICT DO NOTHING` does.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from itertools import product
from pathlib import Path
from typing import Any

from ..errors import WorkspaceError
from .protocol import T, Transaction, explained, workspace_error
from .schema import INDICES, SCHEMA_PART_GONE, SCHEMA_VERSION, TABLE_KEYS, ColumnTypes, tables

SQLITE_BUSY_SECONDS = 30.0
GUARDED_DEEDS = ("UPDATE", "DELETE")
"""What the guards of a table refuse."""


@contextmanager
def begin_immediate(connection: sqlite3.Connection) -> Iterator[None]:
    """Hold a write transaction: everything is committed, or nothing, whatever interrupts it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:  # Ctrl-C too; it is raised again after the rollback
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def enable_wal(connection: sqlite3.Connection) -> None:
    """Switch to write-ahead logging; retry, because SQLite does not wait for another process that switches too."""
    for retries in reversed(range(300)):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or not retries:
                raise
            time.sleep(0.01)


class SqliteDatabase:
    """The ledger's file; every write is one immediate transaction and is on the disk when it returns.

    `before_making` is called before tables are created in an empty file; it may raise to refuse that. `upgraded` is
    called in the transaction that adds to a file of an earlier version what it lacks.
    """

    def __init__(
        self,
        path: Path,
        before_making: Callable[[], None] = lambda: None,
        upgraded: Callable[[Transaction], None] = lambda _: None,
    ) -> None:
        self._path, self._before_making, self._upgraded = path, before_making, upgraded
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
        """Set the pragmas that SQLite does not store, and create the tables that are missing."""
        enable_wal(self._connection)
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
            self.write(self._create_tables)

    def _create_tables(self, session: Transaction) -> None:
        (version,) = session.execute("PRAGMA user_version").fetchone()  # another process may have been faster
        for statement in statements():
            session.execute(statement)
        if 0 < version < SCHEMA_VERSION:
            self._upgraded(session)

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run a piece of work in one immediate transaction."""
        with self._lock, explained(self._path), begin_immediate(self._connection):
            return work(self._connection)

    def rewrite(self, tables: Sequence[str], work: Callable[[Transaction], T]) -> T:
        """Run a piece of work that may change rows of these tables; their former content is overwritten with zeros."""

        def unguarded(session: Transaction) -> T:
            for table, deed in product(tables, GUARDED_DEEDS):
                session.execute(f"DROP TRIGGER IF EXISTS {table}_no_{deed.lower()}")
            result = work(session)
            for table, deed in product(tables, GUARDED_DEEDS):
                session.execute(_build_guard(table, deed))
            return result

        with self._lock, self.explained(self._path):
            self._connection.execute("PRAGMA secure_delete = ON")
            result = self.write(unguarded)
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            return result

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Run a piece of work that sees a single state."""
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
        """Lock nothing more: a process that can open this file also sees the lock files beside it."""
        return nullcontext()

    def holder(self, name: str) -> None:
        """Return None, for the same reason."""

    @contextmanager
    def explained(self, place: Path) -> Iterator[None]:
        """Turn an error of SQLite into one that a person understands."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise workspace_error(place, error) from error

    def close(self) -> None:
        """Close the connection; a second time does nothing."""
        with self._lock:
            self._connection.close()


def list_schema_changes(run_query: Callable[[str], Sequence[tuple[Any, ...]]]) -> Iterator[tuple[str, str]]:
    """Yield the tables, indices and triggers that are not as this version makes them, each with what differs.

    A trigger of somebody else can change what is written while it is written, so that row and leaf agree.
    """
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as empty:
        for statement in statements():
            empty.execute(statement)
        expected = {(kind, name): sql for kind, name, sql in empty.execute(_LIST_SCHEMA)}
    for kind, name, sql in run_query(_LIST_SCHEMA):
        made = expected.pop((kind, name), None)
        if made is None:
            yield f"{kind} {name}", "the ledger has no such thing: somebody added it"
        elif made.split() != str(sql).split():
            yield f"{kind} {name}", "it was changed"
    for kind, name in expected:
        yield f"{kind} {name}", SCHEMA_PART_GONE


_LIST_SCHEMA = (
    "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type, name"
)
_SQLITE_TYPES = ColumnTypes(serial="INTEGER PRIMARY KEY", integer="INTEGER", text="TEXT")


def statements() -> list[str]:
    """Return the SQL that creates an empty store; each statement may be run again."""
    creations = [
        f"CREATE TABLE IF NOT EXISTS {name} ({columns}) STRICT" for name, columns in tables(_SQLITE_TYPES).items()
    ]
    creations += [f"CREATE INDEX IF NOT EXISTS {name} ON {columns}" for name, columns in INDICES.items()]
    guards = [_build_guard(table, deed) for table, deed in product(TABLE_KEYS, GUARDED_DEEDS)]
    return [
        *creations,
        *guards,
        *(_build_first_row_trigger(table) for table in TABLE_KEYS),
        f"PRAGMA user_version = {SCHEMA_VERSION}",
    ]


def _build_guard(table: str, deed: str) -> str:
    """Return the trigger that refuses an update or a deletion of a table's rows."""
    return (
        f"CREATE TRIGGER IF NOT EXISTS {table}_no_{deed.lower()} BEFORE {deed} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
    )


def _build_first_row_trigger(table: str) -> str:
    """Return the trigger that keeps the first row under a key."""
    conditions = [" AND ".join(f"{column} = NEW.{column}" for column in key) for key in TABLE_KEYS[table]]
    is_taken = " OR ".join(f"EXISTS (SELECT 1 FROM {table} WHERE {condition})" for condition in conditions)
    return (
        f"CREATE TRIGGER IF NOT EXISTS {table}_stays BEFORE INSERT ON {table} WHEN {is_taken} "
        "BEGIN SELECT RAISE(IGNORE); END"
    )
