"""Reads a record without changing it: a SQLite file that is opened for reading, or a database server."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias, TypeVar
from urllib.parse import quote

from ..database.home import LEDGER_FILE, Home, has_record
from ..database.protocol import Transaction, explained
from ..database.schema import SCHEMA_VERSION, TABLE_KEYS, list_columns
from ..digest import canonical_json, compute_digest
from ..errors import WorkspaceError
from ..files.objects import Bodies, Objects

T = TypeVar("T")
RunQuery: TypeAlias = Callable[[str], Sequence[tuple[Any, ...]]]
"""Runs a query and returns all rows."""
FIRST_LOGGED_VERSION = 6


def read_record(workspace: Path, work: Callable[[RunQuery, Bodies], T]) -> T:
    """Run a piece of work that sees a single state of a workspace's record, and its objects; nothing is written.

    Raises
    ------
    WorkspaceError
        If there is no record, it was written before the log existed or by a newer Alphaloom, or it cannot be read.
    """
    if not has_record(workspace):
        raise WorkspaceError(
            f"there is no record in {workspace}",
            field="DIR",
            got=str(workspace),
            hint="Name a workspace, such as .alphaloom, or a folder that `alphaloom record export` wrote.",
        )
    home = Home.of(workspace)
    if home.address:
        return _read_server(home, work)
    file = workspace / LEDGER_FILE
    with explained(file):
        try:
            return _read_file(file, "mode=ro", work)
        except sqlite3.OperationalError as error:
            if "unable to open" not in str(error):
                raise
            return _read_file(file, "immutable=1", work)  # a folder in which SQLite may not make its side files


def _read_file(file: Path, mode: str, work: Callable[[RunQuery, Bodies], T]) -> T:
    with closing(sqlite3.connect(f"file:{quote(str(file.resolve()))}?{mode}", uri=True, isolation_level=None)) as link:
        link.execute("BEGIN")
        (version,) = link.execute("PRAGMA user_version").fetchone()
        _check_version(file, version)
        return work(lambda query: link.execute(query).fetchall(), Objects(file.parent / "objects"))


def _read_server(home: Home, work: Callable[[RunQuery, Bodies], T]) -> T:
    database, objects = home.opened()

    def read(session: Transaction) -> T:
        return work(lambda query: session.execute(query).fetchall(), objects)

    with closing(database):
        return database.read(read)


def _check_version(file: Path, version: int) -> None:
    if version > SCHEMA_VERSION:
        raise WorkspaceError(
            f"the ledger {file} was written by a newer Alphaloom",
            got=f"format {version}",
            allowed=f"format {SCHEMA_VERSION}",
            hint="Upgrade Alphaloom.",
        )
    if version < FIRST_LOGGED_VERSION:
        raise WorkspaceError(
            f"the record in {file.parent} has no log yet: it was written by an earlier Alphaloom",
            field="DIR",
            hint="The next command that writes to this workspace begins the log with a leaf over its present state.",
        )


def read_rows(run_query: RunQuery, table: str) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield the primary key and the columns of each row of a table, in the order of that key."""
    columns, number = list_columns(table), TABLE_KEYS[table][0][0]
    for values in run_query(f"SELECT {', '.join(columns)} FROM {table} ORDER BY {number}"):
        row = dict(zip(columns, values, strict=True))
        yield row[number], row


def digest_row(row: dict[str, Any]) -> str:
    """Return the digest of all columns of a row."""
    return compute_digest(canonical_json(row))
