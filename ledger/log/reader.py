"""Reads a record without changing it: a SQLite file that is opened for reading, or a database server."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias, TypeVar
from urllib.parse import quote

from ..database.home import ADDRESS_FILE, LEDGER_FILE, Home, has_record
from ..database.protocol import Transaction, explained
from ..database.schema import SCHEMA_VERSION, TABLE_KEYS, list_columns
from ..digest import canonical_json, compute_digest
from ..errors import AlphaloomError, WorkspaceError
from ..files.objects import Bodies, Objects
from .checkpoint import Checkpoint
from .note import SignedNote

T = TypeVar("T")
RunQuery: TypeAlias = Callable[[str], Sequence[tuple[Any, ...]]]
"""Runs a query and returns all rows."""
FIRST_LOGGED_VERSION = 6


def read_record(workspace: Path, work: Callable[[RunQuery, Bodies], T]) -> T:
    """Run a piece of work that sees a single state of a workspace's record, and its objects; see `read_session`."""
    return read_session(
        workspace, lambda session, objects: work(lambda query: session.execute(query).fetchall(), objects)
    )


def read_session(workspace: Path, work: Callable[[Transaction, Bodies], T]) -> T:
    """Run a piece of work in one read-only transaction of a workspace's record, with its objects.

    No row is written. SQLite may make its side files beside the record, where it may write.

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
            _refuse_unread_log(file)
            return _read_file(file, "immutable=1", work)  # a folder in which SQLite may not make its side files


def _refuse_unread_log(file: Path) -> None:
    """Refuse a file that can only be read as it is while its newest rows are in the write-ahead log beside it."""
    log = file.with_name(f"{file.name}-wal")
    if log.is_file() and log.stat().st_size:
        raise WorkspaceError(
            f"the newest rows of {file} are in {log.name}, which cannot be read here",
            field="DIR",
            hint="Copy the workspace to a folder that you can write to, and verify the copy.",
        )


def _read_file(file: Path, mode: str, work: Callable[[Transaction, Bodies], T]) -> T:
    with closing(
        sqlite3.connect(f"file:{quote(os.fsencode(file.resolve()))}?{mode}", uri=True, isolation_level=None)
    ) as link:
        link.execute("BEGIN")
        (version,) = link.execute("PRAGMA user_version").fetchone()
        _check_version(file, version)
        return work(link, Objects(file.parent / "objects"))


def _read_server(home: Home, work: Callable[[Transaction, Bodies], T]) -> T:
    def refuse(session: Transaction, put: object) -> None:
        _check_version(home.workspace / ADDRESS_FILE, 0)

    database, objects = home.opened(refuse)

    with closing(database):
        return database.read(lambda session: work(session, objects))


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


def is_logged(workspace: Path) -> bool:
    """Return whether a workspace has a record with a log that can be read."""
    try:
        return read_record(workspace, lambda run_query, _: True)
    except AlphaloomError:
        return False


def holds_checkpoint(workspace: Path, note: SignedNote) -> bool:
    """Return whether the record of a workspace holds a checkpoint; False if there is none that can be read."""
    query = f"SELECT note FROM log_checkpoints WHERE size = {Checkpoint.parse(note.text).size}"

    def work(run_query: RunQuery, _: object) -> bool:
        return any(SignedNote.parse(stored).text == note.text for (stored,) in run_query(query))

    try:
        return read_record(workspace, work)
    except (AlphaloomError, OSError, sqlite3.Error):
        return False


def is_same_record(workspace: Path, other: Path) -> bool:
    """Return whether two folders are one, by a link or a mount, or hold their record in one database."""
    try:
        if workspace.resolve() == other.resolve() or (workspace / LEDGER_FILE).samefile(other / LEDGER_FILE):
            return True
    except OSError:
        pass
    try:
        return bool(Home.of(workspace).address) and Home.of(workspace).address == Home.of(other).address
    except AlphaloomError:
        return False


def spell_path(path: Path | str) -> str:
    """Return a path as text that can be printed, also if it is no UTF-8."""
    return str(path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def read_rows(run_query: RunQuery, table: str) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield the primary key and the columns of each row of a table, in the order of that key."""
    columns, number = list_columns(table), TABLE_KEYS[table][0][0]
    for values in run_query(f"SELECT {', '.join(columns)} FROM {table} ORDER BY {number}"):
        row = dict(zip(columns, values, strict=True))
        yield row[number], row


def digest_row(row: dict[str, Any]) -> str:
    """Return the digest of all columns of a row."""
    return compute_digest(canonical_json(row))
