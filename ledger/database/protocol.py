"""The database protocol of the ledger: whole transactions that may be repeated, and one writer at a time.

SQL is written once, in the dialect that SQLite and PostgreSQL share: `?` marks a value, `ON CONFLICT DO NOTHING` keeps
the first row, and every query that needs an order has an ORDER BY.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ..errors import UnknownRun, WorkspaceError

_ELSEWHERE = "Choose another folder with --workspace."
_FILE_REFUSALS: tuple[tuple[tuple[str, ...], str, str], ...] = (
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


T = TypeVar("T")


class Rows(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int:
        """The number of rows written."""

    def fetchone(self) -> Any:
        """Return the next row, or None."""

    def fetchall(self) -> list[Any]:
        """Return the remaining rows."""


class Transaction(Protocol):
    """An open transaction."""

    def execute(self, statement: str, values: Sequence[Any] = ..., /) -> Rows:
        """Run one statement."""


class Database(Protocol):
    """A database whose writers take turns; when `write` returns, its changes are on the disk."""

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run a piece of work in one transaction: all of it, or nothing.

        Nobody else writes meanwhile, and it sees all earlier writes. It must be idempotent: it is run again when the
        connection to a server is lost before the commit was confirmed.
        """

    def rewrite(self, tables: Sequence[str], work: Callable[[Transaction], T]) -> T:
        """Run a piece of work as `write` does, that may change and delete rows of these tables.

        Other connections never see the tables unguarded. The former content is cleared from the database's files as far
        as the database can do that: not from copies of them, and not from the server's own logs.
        """

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Run a piece of work that sees a single state and writes nothing."""

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""

    def held(self, name: str) -> AbstractContextManager[None]:
        """Lock a name against processes that the lock files of this workspace do not reach; else `RunLocked`."""

    def holder(self, name: str) -> str | None:
        """Return the process that holds the lock of a name; None if there is none."""

    def explained(self, place: Path) -> AbstractContextManager[None]:
        """Turn an error of the database into one that a person understands."""

    def close(self) -> None:
        """Close it; a second time does nothing."""


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn an error of SQLite or the system into one that a person understands."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        if "FOREIGN KEY" not in str(error):
            raise
        raise unstarted_run_error() from error
    except (sqlite3.DatabaseError, OSError) as error:
        raise workspace_error(path, error) from error


def unstarted_run_error() -> UnknownRun:
    """Return the error for a record of a run that was never started."""
    return UnknownRun("a record names a run that was never started", hint="Call start_run before recording.")


def workspace_error(path: Path, error: Exception) -> WorkspaceError:
    """Return the error that explains an error of SQLite or the system to a person."""
    text = str(error).lower()
    for marks, message, hint in _FILE_REFUSALS:
        if any(mark in text for mark in marks):
            refusal = WorkspaceError(message.format(path=path), field="workspace", hint=hint)
            refusal.placeless = message.format(path="the workspace")
            return refusal
    if isinstance(error, sqlite3.ProgrammingError):
        return WorkspaceError(f"the ledger {path} is closed or misused: {error}", field="workspace")
    return WorkspaceError(f"cannot use {path}: {error}", field="workspace", hint=_ELSEWHERE)
