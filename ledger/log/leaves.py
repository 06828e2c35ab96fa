"""Leaves of the log: what is hashed of each row of the ledger, written in the transaction that writes the row.

Writers of the ledger take turns, so the numbers of the leaves are the order of the log already: a leaf needs no queue
between its row and the tree.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from ..database.protocol import Database, Rows, T, Transaction
from ..database.schema import TABLE_KEYS
from ..digest import canonical_json, compute_digest

SALT_SIZE = 16
"""Random bytes of a leaf: without them, the hash of a leaf with few possible values tells the values."""
MAX_SHOWN_CHARACTERS = 200
"""A longer text stands in a leaf as its digest, as every body does: an entry of a log has at most 65,535 bytes."""
STATE_TABLE = "state"
"""Table that the first leaf of an older workspace names: it covers the rows that were there before the log."""


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


_DECODE = json.JSONDecoder(
    parse_constant=_refuse_constant
).raw_decode  # faster than `json.loads` for short texts without white space around them


@dataclass(frozen=True, slots=True)
class LoggedRow:
    """A row as its leaf holds it: its table and its columns, long ones as digests."""

    table: str
    columns: Mapping[str, Any]

    @classmethod
    def parse(cls, entry: str) -> Self:
        """Read a leaf; `ValueError` if it is none."""
        try:
            leaf, end = _DECODE(entry)
        except RecursionError:
            raise ValueError("the leaf is nested too deeply") from None
        if end != len(entry):
            raise ValueError("something follows the leaf")
        match leaf:
            case {"table": str(table), "row": dict(columns)}:
                return cls(table, columns)
        raise ValueError("this is no leaf")

    def find_digest(self, column: str) -> str:
        """Return the digest of a column that is too long for a leaf; "" if it is not."""
        value = self.columns.get(column)
        return str(value.get("sha256", "")) if isinstance(value, dict) else ""


def encode_leaf(table: str, row: Mapping[str, Any], salt: bytes) -> str:
    """Return the leaf of a row: canonical JSON with the columns, the table and random bytes."""
    return canonical_json({"row": shorten_row(row), "salt": salt.hex(), "table": table})


def shorten_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a row with the digests of a body and of long texts in their place."""
    short = dict(row)
    for name, value in row.items():
        if name == "body" or (type(value) is str and len(value) > MAX_SHOWN_CHARACTERS):
            short[name] = {"sha256": compute_digest(value)}
    return short


class LoggedTransaction:
    """A transaction that appends rows with their leaves."""

    def __init__(self, session: Transaction, draw_salt: Callable[[int], bytes]) -> None:
        self._session = session
        self._draw_salt = draw_salt
        self.leaves = 0

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Rows:
        """Run one statement, without a leaf."""
        return self._session.execute(statement, values)

    def append(self, table: str, row: Mapping[str, Any]) -> bool:
        """Add a row with its leaf, unless its key is taken; return whether it is new."""
        number = TABLE_KEYS[table][0][0]
        marks = ", ".join("?" * len(row))
        statement = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks}) ON CONFLICT DO NOTHING RETURNING {number}"
        inserted = self._session.execute(statement, tuple(row.values())).fetchall()
        for (key,) in inserted:
            self.add_leaf(table, {number: key, **row})
        return bool(inserted)

    def add_leaf(self, table: str, row: Mapping[str, Any]) -> None:
        """Add a leaf alone: of a row that is written elsewhere."""
        entry = encode_leaf(table, row, self._draw_salt(SALT_SIZE))
        self._session.execute("INSERT INTO leaves (entry) VALUES (?)", (entry,))
        self.leaves += 1


class LoggedDatabase:
    """The database of a ledger whose writes are logged; `appended` is called after a write that added leaves."""

    def __init__(
        self, database: Database, draw_salt: Callable[[int], bytes], appended: Callable[[], None] = lambda: None
    ) -> None:
        self._database = database
        self._draw_salt = draw_salt
        self.appended = appended

    def write(self, work: Callable[[LoggedTransaction], T]) -> T:
        """Run a piece of work in one transaction, as `Database.write` does."""
        return self._log(self._database.write, work)

    def rewrite(self, tables: Sequence[str], work: Callable[[LoggedTransaction], T]) -> T:
        """Run a piece of work that may change rows of these tables, as `Database.rewrite` does."""
        return self._log(lambda logged: self._database.rewrite(tables, logged), work)

    def _log(self, write: Callable[[Callable[[Transaction], T]], T], work: Callable[[LoggedTransaction], T]) -> T:
        """Run a piece of work in a transaction of the database, and say that leaves were added."""
        leaves = 0

        def logged(session: Transaction) -> T:
            nonlocal leaves
            transaction = LoggedTransaction(session, self._draw_salt)
            result = work(transaction)
            leaves += transaction.leaves  # a transaction that is run again may find what its first attempt committed
            return result

        result = write(logged)
        if leaves:
            self.appended()
        return result

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Run a piece of work that sees a single state and writes nothing."""
        return self._database.read(work)

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        return self._database.rows(query, values)

    def held(self, name: str) -> AbstractContextManager[None]:
        """Lock a name, as `Database.held` does."""
        return self._database.held(name)

    def holder(self, name: str) -> str | None:
        """Return the process that holds the lock of a name; None if there is none."""
        return self._database.holder(name)

    def explained(self, place: Path) -> AbstractContextManager[None]:
        """Turn an error of the database into one that a person understands."""
        return self._database.explained(place)

    def close(self) -> None:
        """Close it; a second time does nothing."""
        self._database.close()
