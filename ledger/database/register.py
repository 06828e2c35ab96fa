"""A table of one kind of record: written once under its key, never changed, read in the order of its key."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from string import ascii_lowercase, ascii_uppercase
from typing import Any, Generic, TypeVar

from ..digest import canonical_json
from ..errors import LedgerConflict
from ..log.leaves import LoggedDatabase, LoggedTransaction
from .schema import REGISTERS

R = TypeVar("R")
ROWS_PER_READ = 256
"""Rows of one query."""


@dataclass(frozen=True)
class RegisterEntry(Generic[R]):
    """A record with its place in the order of arrival and the time at which it was written."""

    place: int
    at: str
    record: R


class Register(Generic[R]):
    """The records of one table."""

    def __init__(self, database: LoggedDatabase, table: str, record: type[R], now: Callable[[], str]) -> None:
        self._database = database
        self._table = table
        self._record = record
        self._now = now
        self._key = REGISTERS[table]

    def add(self, record: R, *, strict: bool = True) -> bool:
        """Add a record; return whether it is new.

        Raises
        ------
        LedgerConflict
            If another record has its key, unless `strict` is off: then the first one stays.
        """
        key, body = self._split_record(record)
        inserted: list[bool] = []

        def work(session: LoggedTransaction) -> None:
            inserted.append(self._put(session, key, body, strict))

        self._database.write(work)
        return any(inserted)  # a repeated transaction finds the row of the first attempt, whose confirmation was lost

    def put(self, session: LoggedTransaction, record: R, *, strict: bool = False) -> bool:
        """Add a record inside the caller's transaction; return whether it is new. An existing record stays."""
        return self._put(session, *self._split_record(record), strict)

    def _split_record(self, record: R) -> tuple[list[str], str]:
        """Return the key of a record, and the rest as JSON."""
        # A body may be megabytes of plain JSON, which `asdict` of the whole record would copy cell by cell.
        values = {field.name: _to_plain(getattr(record, field.name)) for field in fields(record)}  # type: ignore[arg-type]
        key = [values.pop(column) for column in self._key]
        return key, canonical_json(values)

    def get(self, *key: str) -> R | None:
        """Return the record under a key, or None."""
        records = self.find(" AND ".join(f"{column} = ?" for column in self._key), *key)
        return records[0] if records else None

    def find(self, condition: str, *values: str, order: str = "") -> list[R]:
        """Return the records that meet a condition, in the order of their key."""
        columns = ", ".join(self._key)
        query = f"SELECT {columns}, body FROM {self._table} WHERE {condition} ORDER BY {order or columns}"
        return [self._build_record(row) for row in self._database.rows(query, values)]

    def of(self, run: str) -> list[R]:
        """Return the records of a run, in the order of their key."""
        return self.find("run = ?", run)

    def since(self, run: str, place: int = 0) -> Iterator[tuple[int, R]]:
        """Yield a run's records after a place in the order of arrival, each with its own place."""
        return ((entry.place, entry.record) for entry in self.entries(run, place))

    def entries(self, run: str, place: int = 0) -> Iterator[RegisterEntry[R]]:
        """Yield a run's records after a place in the order of arrival, each with its place and time."""
        columns = ", ".join(self._key)
        # The index of the run tells where its rows begin and end, so that other runs' rows are not read.
        ((first, last),) = self._database.rows(f"SELECT min(seq), max(seq) FROM {self._table} WHERE run = ?", (run,))
        if first is None:
            return
        place = max(place, first - 1)
        # `run || ''` keeps the planner off the index of the run, which would sort all of its rows for each query.
        query = (
            f"SELECT seq, at, {columns}, body FROM {self._table} WHERE seq > ? AND seq <= ? AND run || '' = ? "
            f"ORDER BY seq LIMIT {ROWS_PER_READ}"
        )
        while batch := self._database.rows(query, (place, last, run)):
            for seq, at, *row in batch:
                yield RegisterEntry(seq, at, self._build_record(tuple(row)))
            place = batch[-1][0]

    def end(self) -> int:
        """Return the place after the last record in the order of arrival; 1 for an empty table."""
        ((last,),) = self._database.rows(f"SELECT coalesce(max(seq), 0) FROM {self._table}")
        return int(last) + 1

    def search_back(
        self, words: Sequence[str], after: str, before: int, rows: int, most: int
    ) -> tuple[list[RegisterEntry[R]], int]:
        """Return records whose JSON holds all words, among the last ones before a place; the newest first.

        Parameters
        ----------
        words
            Small and capital ASCII letters are alike. Each must occur.
        after
            JSON after which a word counts, such as `"text":"`; empty for the whole body.
        before
            A place in the order of arrival.
        rows
            How many records are read at most; all runs together.
        most
            How many are returned at most.

        Returns
        -------
        tuple
            The records, and the place before which to go on; 1 where nothing is left.
        """
        first = max(before - rows, 1)
        condition, patterns = match_words(words, after)
        query = (
            f"SELECT seq, at, {', '.join(self._key)}, body FROM {self._table} "
            f"WHERE seq >= ? AND seq < ? AND {condition} ORDER BY seq DESC LIMIT {int(most)}"
        )
        found = self._database.rows(query, (first, before, *patterns))
        entries = [RegisterEntry(seq, at, self._build_record(tuple(row))) for seq, at, *row in found]
        place = entries[-1].place if len(entries) == most else first
        return entries, place

    def _put(self, session: LoggedTransaction, key: list[str], body: str, strict: bool) -> bool:
        """Insert a row if its key is free; if it is `strict`, a row that has the key must be equal."""
        row = dict(zip(self._key, key, strict=True)) | {"at": self._now(), "body": body}
        inserted = session.append(self._table, row)
        if not inserted and strict:
            self._compare(session, key, body)
        return inserted

    def _compare(self, session: LoggedTransaction, key: list[str], body: str) -> None:
        """Refuse a record that differs from the one under its key."""
        condition = " AND ".join(f"{column} = ?" for column in self._key)
        (stored,) = session.execute(f"SELECT body FROM {self._table} WHERE {condition}", key).fetchone()
        if stored != body:
            raise conflict(self._table, key, json.loads(stored), json.loads(body))

    def _build_record(self, row: tuple[Any, ...]) -> R:
        *key, body = row
        return self._record(**dict(zip(self._key, key, strict=True)), **json.loads(body))


def match_words(words: Sequence[str], after: str = "") -> tuple[str, list[str]]:
    """Return a condition that a row's JSON holds all words behind a piece of JSON, and its values."""
    # Both databases fold ASCII letters alone; a word is looked for as JSON spells it.
    spelled = [json.dumps(word, ensure_ascii=False)[1:-1].translate(_SMALL_LETTERS) for word in words]
    patterns = [f"%{_escape_like(after)}%{_escape_like(word)}%" for word in spelled]
    return " AND ".join(["TRUE", *("lower(body) LIKE ? ESCAPE '!'" for _ in patterns)]), patterns


_SMALL_LETTERS = str.maketrans(ascii_uppercase, ascii_lowercase)


def _escape_like(text: str) -> str:
    return re.sub(r"([!%_])", r"!\1", text)


def conflict(table: str, key: list[str], stored: dict[str, Any], new: dict[str, Any]) -> LedgerConflict:
    """Return the error that lists every field in which two records differ."""
    unlike = sorted(name for name in stored.keys() | new.keys() if stored.get(name) != new.get(name))
    return LedgerConflict(
        f"{table}: another record is kept under {' / '.join(key)}; it differs in {', '.join(unlike)}",
        field=table,
        got={name: new.get(name) for name in unlike},
        allowed={name: stored.get(name) for name in unlike},
        hint="The record is never changed. Equal work must give equal records: "
        "was the seed, the data or the code another?",
    )


def _to_plain(value: Any) -> Any:
    """Return a field of a record with nested records as mappings."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return [_to_plain(item) for item in value] if isinstance(value, tuple | list) else value
