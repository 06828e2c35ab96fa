"""What the ledger asks of a database, whichever it is: whole transactions that may be done again, and one writer at a time.

SQL is written once, in the words that SQLite and PostgreSQL share: `?` marks a value, `ON CONFLICT DO NOTHING` lets the
first row stay, and rows come in the order that the statement names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Rows(Protocol):
    """What a statement gave."""

    @property
    def rowcount(self) -> int:
        """How many rows were written."""

    def fetchone(self) -> Any:
        """Return the next row, or None."""

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""


class Transaction(Protocol):
    """An open transaction."""

    def execute(self, statement: str, values: Sequence[Any] = ..., /) -> Rows:
        """Run one statement."""


class Database(Protocol):
    """A store whose writers take turns; what a write returned is on the disk."""

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Do a piece of work in one transaction: all of it, or nothing.

        Nobody else writes meanwhile, and it sees all that was written before. It must come to the same when it is done
        again: a database on another machine may be lost before it has said that the work was kept.
        """

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Do a piece of work that sees a single state and writes nothing."""

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""

    def held(self, name: str) -> AbstractContextManager[None]:
        """Hold a name against processes that the lock files of this workspace do not reach; else `RunLocked`."""

    def holder(self, name: str) -> str | None:
        """Return the process that holds a name so; None where nobody does."""

    def explained(self, place: Path) -> AbstractContextManager[None]:
        """Say what an error of the database means for a person."""

    def close(self) -> None:
        """Close it; a second time does nothing."""
