"""The store of items: an SQLite file that answers as of an instant.

Items that were known later are neither returned nor counted, and items in quarantine are not served. Items are stored
by id. A repeated item adds nothing, unless it could be known earlier than recorded; then the earlier record replaces
the later one. Answers depend on the set of items, never on the order in which they arrived. Moments are microseconds
since 1970 in UTC.
"""

from __future__ import annotations

import json
import re
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from ..ledger import canonical_json
from ..ledger.database import begin_immediate, explained
from ..ledger.files import make_file, make_folder
from .errors import NewsStoreError
from .item import NewsItem
from .query import (
    NOISE_SIGN,
    ItemPage,
    QuarantinedItem,
    Query,
    Release,
    from_microseconds,
    split_words,
    to_microseconds,
)
from .screening.credibility import MIN_CREDIBLE_WEIGHT
from .screening.crowd import WINDOW_MICROSECONDS, Utterance, compute_bands, find_bursts
from .screening.injection.detector import Sign

NEWS_FOLDER = "news"
"""Folder of a workspace that holds the store."""
NEWS_FILE = "news.sqlite"
NEWS_BUSY_SECONDS = 30.0
NEWS_SCHEMA_VERSION = 1
NEWS_TABLES = (
    """CREATE TABLE IF NOT EXISTS items (
        id       TEXT PRIMARY KEY,
        known    INTEGER NOT NULL,
        injected INTEGER NOT NULL,
        credible INTEGER NOT NULL,
        voice    TEXT NOT NULL,
        sketch   TEXT NOT NULL,
        body     TEXT NOT NULL) STRICT""",
    "CREATE INDEX IF NOT EXISTS items_by_moment ON items (known, id)",
    (
        "CREATE TABLE IF NOT EXISTS words (word TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (word, id)) STRICT, "
        "WITHOUT ROWID"
    ),
    (
        "CREATE TABLE IF NOT EXISTS symbols (symbol TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (symbol, id)) STRICT, "
        "WITHOUT ROWID"
    ),
    """CREATE TABLE IF NOT EXISTS noise (
        id     TEXT NOT NULL,
        symbol TEXT NOT NULL,
        since  INTEGER NOT NULL,
        first  TEXT NOT NULL,
        voices INTEGER NOT NULL,
        PRIMARY KEY (id, symbol)) STRICT, WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS releases (
        id     TEXT PRIMARY KEY,
        at     INTEGER NOT NULL,
        who    TEXT NOT NULL,
        reason TEXT NOT NULL) STRICT""",
    """CREATE TRIGGER IF NOT EXISTS releases_stay BEFORE UPDATE ON releases
        BEGIN SELECT RAISE(ABORT, 'releases are append-only'); END""",
    """CREATE TRIGGER IF NOT EXISTS releases_are_kept BEFORE DELETE ON releases
        BEGIN SELECT RAISE(ABORT, 'releases are append-only'); END""",
    f"PRAGMA user_version = {NEWS_SCHEMA_VERSION}",
)
HELD_CONDITION = (
    "(injected = 1 OR EXISTS (SELECT 1 FROM noise WHERE noise.id = items.id AND since <= ?)) "
    "AND NOT EXISTS (SELECT 1 FROM releases WHERE releases.id = items.id AND at <= ?)"
)
"""Whether an item is held back; both placeholders are the instant of the query."""


class NewsStore:
    """Items in a file, answered as of an instant; safe to share between threads."""

    def __init__(self, folder: Path) -> None:
        """Open the store of a folder, and create both where they do not exist.

        Raises
        ------
        WorkspaceError
            If the folder cannot be used.
        NewsStoreError
            If a newer Alphaloom wrote the file.
        """
        self._path = Path(folder) / NEWS_FILE
        self._lock = threading.RLock()
        with explained(self._path):
            make_folder(self._path.parent)
            make_file(self._path)
            self._connection = sqlite3.connect(
                self._path, timeout=NEWS_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
        try:
            self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self) -> None:
        """Set what SQLite does not remember, and make the tables."""
        with explained(self._path):
            for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
                self._connection.execute(f"PRAGMA {pragma}")
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if version > NEWS_SCHEMA_VERSION:
            raise NewsStoreError(
                "a newer Alphaloom wrote this shelf", got=f"format {version}", allowed=f"format {NEWS_SCHEMA_VERSION}"
            )
        if version < NEWS_SCHEMA_VERSION:
            with self._begin_writing():
                for statement in NEWS_TABLES:
                    self._connection.execute(statement)

    def __enter__(self) -> Self:
        """Return the store."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        with self._lock:
            self._connection.close()

    def put(self, items: Iterable[NewsItem]) -> int:
        """Add items, all of them or none, and update the bursts that they may change.

        Returns
        -------
        int
            How many were new.
        """
        touched: dict[str, list[int]] = defaultdict(list)
        with self._begin_writing():
            added = sum(self._put(item, touched) for item in items)
            for symbol, moments in touched.items():
                self._judge(symbol, min(moments), max(moments))
        return added

    def search(
        self,
        as_of: datetime,
        words: str = "",
        symbols: Sequence[str] = (),
        since: datetime | None = None,
        limit: int = 20,
        cursor: str = "",
    ) -> ItemPage:
        """Return items that could be known, the latest first.

        Parameters
        ----------
        as_of : datetime
            Nothing that was known later is returned or counted.
        words : str
            Words that must all occur in title, text or source; empty for all items.
        symbols : Sequence[str]
            Symbols of which the item must have one; empty for all.
        since : datetime, optional
            Nothing that was known earlier.
        limit : int
            Most items of a page, from 1 to 200.
        cursor : str
            Cursor of the page before; empty for the first.

        Raises
        ------
        NewsStoreError
            An instant has no zone, the limit is out of range, or the cursor belongs to another query.
        """
        query = Query.build(as_of, words, symbols, since, limit)
        last = query.parse_cursor(cursor)
        where, values = _build_conditions(query)
        after = (
            "" if last is None else " AND (known < ? OR (known = ? AND id > ?))",
            () if last is None else (last[0], *last),
        )
        with self._begin_reading():
            ((total,),) = self._fetch_rows(f"SELECT count(*) FROM items WHERE {where}", values)
            select = f"SELECT known, id, body FROM items WHERE {where}{after[0]} ORDER BY known DESC, id LIMIT ?"
            rows = self._fetch_rows(select, (*values, *after[1], query.limit + 1))
        page = rows[: query.limit]
        more = query.make_cursor(page[-1][0], page[-1][1]) if len(rows) > query.limit else ""
        return ItemPage(tuple(_serve_item(body) for _, _, body in page), total, more)

    def get(self, id: str, as_of: datetime) -> NewsItem | None:
        """Return an item; None where it does not exist, was not known yet or is held back.

        The three cases are indistinguishable on purpose.
        """
        moment = to_microseconds(as_of, "as_of")
        select = f"SELECT body FROM items WHERE id = ? AND known <= ? AND NOT ({HELD_CONDITION})"
        with self._begin_reading():
            rows = self._fetch_rows(select, (id, moment, moment, moment))
        return _serve_item(rows[0][0]) if rows else None

    def find_by_prefix(self, start: str) -> tuple[NewsItem, ...]:
        """Return the first 20 items whose ids begin so, held back or not: for a person, never for an agent."""
        if not re.fullmatch(r"[0-9a-f]{1,64}", start):
            return ()
        with self._begin_reading():
            rows = self._fetch_rows(
                "SELECT body FROM items WHERE id BETWEEN ? AND ? ORDER BY id LIMIT 20", (start, f"{start}g")
            )
        return tuple(NewsItem.read(json.loads(body)) for (body,) in rows)

    def list_quarantine(self, as_of: datetime) -> tuple[QuarantinedItem, ...]:
        """Return the items held back as of an instant, with their signs: for a person, never for an agent."""
        moment = to_microseconds(as_of, "as_of")
        select = f"SELECT id, known, injected, body FROM items WHERE known <= ? AND {HELD_CONDITION} ORDER BY id"
        burst = (
            "SELECT id, min(since), first, voices "
            "FROM (SELECT * FROM noise WHERE since <= ? ORDER BY since, first, symbol) GROUP BY id"
        )
        with self._begin_reading():
            rows = self._fetch_rows(select, (moment, moment, moment))
            bursts = {id: rest for id, *rest in self._fetch_rows(burst, (moment,))}
        items = [_read_held(known, bool(injected), body, bursts.get(id)) for id, known, injected, body in rows]
        return tuple(sorted(items, key=lambda item: (item.since, item.item.id)))

    def release(self, id: str, who: str, reason: str, at: datetime) -> Release:
        """Release an item by a person's decision, which is recorded; it is served as of `at` and later.

        Raises
        ------
        NewsStoreError
            The item is not in quarantine as of then, or `who` or `reason` is empty.
        """
        moment = to_microseconds(at, "at")
        for name, text in (("who", who), ("reason", reason)):
            if not text.strip():
                raise NewsStoreError("a release names who decided it, and why", field=name, allowed="some words")
        select = f"SELECT count(*) FROM items WHERE id = ? AND known <= ? AND {HELD_CONDITION}"
        with self._begin_writing():
            ((count,),) = self._fetch_rows(select, (id, moment, moment, moment))
            if not count:
                hint = "List `quarantine` as of that instant."
                raise NewsStoreError("no such item is in quarantine as of then", field="id", got=id, hint=hint)
            if self._fetch_rows("SELECT 1 FROM releases WHERE id = ?", (id,)):
                raise NewsStoreError("it was released already, from a later instant on", field="id", got=id)
            self._connection.execute("INSERT INTO releases VALUES (?, ?, ?, ?)", (id, moment, who, reason))
        return Release(id, who, reason, from_microseconds(moment))

    def list_releases(self, as_of: datetime) -> tuple[Release, ...]:
        """Return the releases that were decided by an instant, in order."""
        with self._begin_reading():
            rows = self._fetch_rows(
                "SELECT id, who, reason, at FROM releases WHERE at <= ? ORDER BY at, id",
                (to_microseconds(as_of, "as_of"),),
            )
        return tuple(Release(id, who, reason, from_microseconds(at)) for id, who, reason, at in rows)

    def _put(self, item: NewsItem, touched: dict[str, list[int]]) -> bool:
        """Write one item, unless the same or an earlier record exists, and return whether it is new.

        The moments whose bursts it may change are added to `touched`, by symbol.
        """
        id, known, body = item.id, to_microseconds(item.known, "known"), canonical_json(item.record(evidence=True))
        stored = self._fetch_rows("SELECT known, body FROM items WHERE id = ?", (id,))
        if stored and stored[0] <= (known, body):
            return False
        for symbol in item.symbols:
            touched[symbol] += [known, *(moment for moment, _ in stored)]
        text = f"{item.title}\n{item.body}"
        sketch = json.dumps(compute_bands(text)) if item.symbols else "[]"
        row = (
            id,
            known,
            int(item.injected),
            int(item.credibility >= MIN_CREDIBLE_WEIGHT),
            item.source.casefold(),
            sketch,
            body,
        )
        self._connection.execute("INSERT OR REPLACE INTO items VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        if not stored:
            words = {(word, id) for word in split_words(f"{text}\n{item.source}")}
            self._connection.executemany("INSERT INTO words VALUES (?, ?)", sorted(words))
            self._connection.executemany("INSERT INTO symbols VALUES (?, ?)", [(symbol, id) for symbol in item.symbols])
        return not stored

    def _judge(self, symbol: str, first: int, last: int) -> None:
        """Recompute the bursts on a symbol that items between two moments may change.

        A verdict depends on items from two windows before it to one after it. So the verdicts that may change lie from
        one window before the first moment to two after the last, and the items that they depend on from three before to
        three after.
        """
        window = WINDOW_MICROSECONDS
        select = (
            "SELECT items.id, known, voice, credible, sketch FROM symbols JOIN items USING (id) "
            "WHERE symbol = ? AND known BETWEEN ? AND ?"
        )
        rows = self._fetch_rows(select, (symbol, first - 3 * window, last + 3 * window))
        utterances = [
            Utterance(id, known, voice, bool(credible), tuple(json.loads(sketch)))
            for id, known, voice, credible, sketch in rows
        ]
        changed = [utterance.item for utterance in utterances if first - window <= utterance.known <= last + 2 * window]
        bursts = find_bursts(utterances)
        self._connection.executemany("DELETE FROM noise WHERE id = ? AND symbol = ?", [(id, symbol) for id in changed])
        new_rows = [
            (id, symbol, bursts[id].since, bursts[id].first, bursts[id].voices) for id in changed if id in bursts
        ]
        self._connection.executemany("INSERT INTO noise VALUES (?, ?, ?, ?, ?)", new_rows)

    def _fetch_rows(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        return self._connection.execute(query, values).fetchall()

    @contextmanager
    def _begin_writing(self) -> Iterator[None]:
        """Write in one transaction: all of it, or nothing."""
        with self._lock, explained(self._path), begin_immediate(self._connection):
            yield

    @contextmanager
    def _begin_reading(self) -> Iterator[None]:
        """Read a single state of the store."""
        with self._lock, explained(self._path):
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                self._connection.execute("ROLLBACK")


def _build_conditions(query: Query) -> tuple[str, tuple[Any, ...]]:
    """Return the SQL condition of a query, and the values of its placeholders."""
    where = [f"known <= ? AND NOT ({HELD_CONDITION})"]
    values: list[Any] = [query.as_of] * 3
    if query.since is not None:
        where.append("known >= ?")
        values.append(query.since)
    if query.symbols:
        where.append(f"id IN (SELECT id FROM symbols WHERE symbol IN ({', '.join('?' * len(query.symbols))}))")
        values += query.symbols
    for word in query.words:
        where.append("id IN (SELECT id FROM words WHERE word = ?)")
        values.append(word)
    return " AND ".join(where), tuple(values)


def _serve_item(body: str) -> NewsItem:
    """Return an item without the evidence of its signs, which may quote text that cleaning removed."""
    item = NewsItem.read(json.loads(body))
    return replace(item, flags=tuple(Sign(sign.name, sign.weight) for sign in item.flags))


def _read_held(known: int, injected: bool, body: str, burst: Sequence[Any] | None) -> QuarantinedItem:
    """Return an item in quarantine, held back since the earliest of its reasons."""
    item = NewsItem.read(json.loads(body))
    signs = item.flags if injected else ()
    since = known if injected else burst[0] if burst else known
    if burst is not None:
        evidence = f"{burst[2]} sources of low standing; the first text is {burst[1]}"
        signs = (*signs, Sign(NOISE_SIGN, 1.0, evidence))
    return QuarantinedItem(item, from_microseconds(since), signs)
