"""A database that is read within one transaction: it refuses to write, and can end at a day."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import date
from pathlib import Path
from typing import Any, Never, TypeVar

from ..errors import WorkspaceError
from .protocol import Rows, Transaction
from .schema import TABLE_KEYS, list_columns

T = TypeVar("T")


class ReadDatabase:
    """A `Database` and its only transaction: reads go to an open session.

    Parameters
    ----------
    session
        The open transaction.
    until
        The last day (UTC) of which rows are read; None for all.
    is_file
        Whether the session is one of SQLite, which needs the name of the schema where PostgreSQL does not.
    """

    def __init__(self, session: Transaction, until: date | None, *, is_file: bool) -> None:
        self._session = session
        self._prefix = _limit_tables(until, "main." if is_file else "") if until else ""

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Rows:
        """Run a query."""
        return self._session.execute(f"{self._prefix}{statement}", values)

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        return self.execute(query, values).fetchall()

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Run a piece of work that sees a single state and writes nothing."""
        return work(self)

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Refuse: the record is open for reading."""
        _refuse()

    def rewrite(self, tables: Sequence[str], work: Callable[[Transaction], T]) -> T:
        """Refuse: the record is open for reading."""
        _refuse()

    def held(self, name: str) -> AbstractContextManager[None]:
        """Refuse: who reads holds no lock."""
        _refuse()

    def holder(self, name: str) -> None:
        """Return None: locks are not read."""

    def explained(self, place: Path) -> AbstractContextManager[None]:
        """Leave errors to whoever opened the session."""
        return nullcontext()

    def close(self) -> None:
        """Leave the session to whoever opened it."""


def _limit_tables(until: date, schema: str) -> str:
    """Return the beginning of a query in which each table has only the rows recorded up to a day."""
    day = until.isoformat()
    tables = [name for name in TABLE_KEYS if "at" in list_columns(name)]
    limited = (f"{name} AS (SELECT * FROM {schema}{name} WHERE substr(at, 1, 10) <= '{day}')" for name in tables)
    return f"WITH {', '.join(limited)} "


def _refuse() -> Never:
    raise WorkspaceError("the record is open for reading: nothing can be written", field="workspace")
