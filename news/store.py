"""The shelf: items in an SQLite file, answered as of an instant.

Nothing that was known later is returned, counted or hinted at, and nothing in quarantine is served. Items are kept by id: one
that comes again adds nothing, unless it could be known earlier than was thought; then the earlier record takes its place. What
the shelf answers depends on which items it holds, never on the order in which they came.
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
from .errors import ShelfError
from .item import NewsItem
from .query import ItemPage, QuarantinedItem, Query, Release, instant_of, microseconds, pieces
from .screening.credibility import MIN_CREDIBLE_WEIGHT
from .screening.crowd import Utterance, find_bursts, window_microseconds
from .screening.injection.detector import Sign
from .screening.sketch import bands
from .store_schema import HELD_CONDITION, NEWS_SCHEMA_VERSION, NEWS_TABLES

NEWS_FOLDER = "news"
"""The folder of a workspace in which the shelf lies."""
NEWS_FILE = "news.sqlite"
NEWS_BUSY_SECONDS = 30.0


class NewsStore:
    """Keeps items and answers as of an instant; safe to share between threads."""

    def __init__(self, folder: Path) -> None:
        """Open the shelf of a folder, making both if they are not there.

        Raises
        ------
        WorkspaceError
            If the folder cannot be used.
        ShelfError
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
            raise ShelfError(
                "a newer Alphaloom wrote this shelf", got=f"format {version}", allowed=f"format {NEWS_SCHEMA_VERSION}"
            )
        if version < NEWS_SCHEMA_VERSION:
            with self._writing():
                for statement in NEWS_TABLES:
                    self._connection.execute(statement)

    def __enter__(self) -> Self:
        """Return the shelf itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        with self._lock:
            self._connection.close()

    def put(self, items: Iterable[NewsItem]) -> int:
        """Put items on the shelf, all of them or none, and judge anew what they may change.

        Returns
        -------
        int
            How many were new.
        """
        touched: dict[str, list[int]] = defaultdict(list)
        with self._writing():
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
            Words that must all occur in title, text or source; none for all items.
        symbols : Sequence[str]
            Names of which the item must be about one; none for all.
        since : datetime, optional
            Nothing that was known earlier.
        limit : int
            How many items a page holds at most, from 1 to 200.
        cursor : str
            What the page before ended with; empty for the first.

        Raises
        ------
        ShelfError
            If an instant has no zone, the limit is out of range or the cursor is of another question.
        """
        query = Query.of(as_of, words, symbols, since, limit)
        behind = query.behind(cursor)
        where, values = _conditions(query)
        after = (
            "" if behind is None else " AND (known < ? OR (known = ? AND id > ?))",
            () if behind is None else (behind[0], *behind),
        )
        with self._reading():
            ((total,),) = self._rows(f"SELECT count(*) FROM items WHERE {where}", values)
            select = f"SELECT known, id, body FROM items WHERE {where}{after[0]} ORDER BY known DESC, id LIMIT ?"
            rows = self._rows(select, (*values, *after[1], query.limit + 1))
        shown = rows[: query.limit]
        more = query.cursor(shown[-1][0], shown[-1][1]) if len(rows) > query.limit else ""
        return ItemPage(tuple(_serve_item(body) for _, _, body in shown), total, more)

    def get(self, id: str, as_of: datetime) -> NewsItem | None:
        """Return an item; None where there is none, it was not known yet, or it is held back, which cannot be told apart."""
        moment = microseconds(as_of, "as_of")
        select = f"SELECT body FROM items WHERE id = ? AND known <= ? AND NOT ({HELD_CONDITION})"
        with self._reading():
            rows = self._rows(select, (id, moment, moment, moment))
        return _serve_item(rows[0][0]) if rows else None

    def named(self, start: str) -> tuple[NewsItem, ...]:
        """Return the items whose ids begin so, held back or not, the first 20: for a person, never for an agent."""
        if not re.fullmatch(r"[0-9a-f]{1,64}", start):
            return ()
        with self._reading():
            rows = self._rows(
                "SELECT body FROM items WHERE id BETWEEN ? AND ? ORDER BY id LIMIT 20", (start, f"{start}g")
            )
        return tuple(NewsItem.read(json.loads(body)) for (body,) in rows)

    def quarantine(self, as_of: datetime) -> tuple[QuarantinedItem, ...]:
        """Return what was held back as of an instant, with the signs that fired: for a person, never for an agent."""
        moment = microseconds(as_of, "as_of")
        select = f"SELECT id, known, injected, body FROM items WHERE known <= ? AND {HELD_CONDITION} ORDER BY id"
        burst = "SELECT id, min(since), first, voices FROM (SELECT * FROM noise WHERE since <= ? ORDER BY since, first, symbol) GROUP BY id"
        with self._reading():
            rows = self._rows(select, (moment, moment, moment))
            bursts = {id: rest for id, *rest in self._rows(burst, (moment,))}
        found = [_read_held(known, bool(injected), body, bursts.get(id)) for id, known, injected, body in rows]
        return tuple(sorted(found, key=lambda held: (held.since, held.item.id)))

    def release(self, id: str, who: str, reason: str, at: datetime) -> Release:
        """Put an item back by a person's decision, which is recorded; it is served as of `at` and later.

        Raises
        ------
        ShelfError
            If it is not in quarantine as of then, nobody decided, or no reason is given.
        """
        moment = microseconds(at, "at")
        for name, said in (("who", who), ("reason", reason)):
            if not said.strip():
                raise ShelfError("a release names who decided it, and why", field=name, allowed="some words")
        select = f"SELECT count(*) FROM items WHERE id = ? AND known <= ? AND {HELD_CONDITION}"
        with self._writing():
            ((found,),) = self._rows(select, (id, moment, moment, moment))
            if not found:
                hint = "List `quarantine` as of that instant."
                raise ShelfError("no such item is in quarantine as of then", field="id", got=id, hint=hint)
            if self._rows("SELECT 1 FROM releases WHERE id = ?", (id,)):
                raise ShelfError("it was released already, from a later instant on", field="id", got=id)
            self._connection.execute("INSERT INTO releases VALUES (?, ?, ?, ?)", (id, moment, who, reason))
        return Release(id, who, reason, instant_of(moment))

    def releases(self, as_of: datetime) -> tuple[Release, ...]:
        """Return the releases that were decided by an instant, in order."""
        with self._reading():
            rows = self._rows(
                "SELECT id, who, reason, at FROM releases WHERE at <= ? ORDER BY at, id",
                (microseconds(as_of, "as_of"),),
            )
        return tuple(Release(id, who, reason, instant_of(at)) for id, who, reason, at in rows)

    def _put(self, item: NewsItem, touched: dict[str, list[int]]) -> bool:
        """Write one item, unless its record is there or an earlier one is; note what it may change."""
        id, known, body = item.id, microseconds(item.known, "known"), canonical_json(item.record(evidence=True))
        held = self._rows("SELECT known, body FROM items WHERE id = ?", (id,))
        if held and held[0] <= (known, body):
            return False
        for symbol in item.symbols:
            touched[symbol] += [known, *(each for each, _ in held)]
        text = f"{item.title}\n{item.body}"
        sketch = json.dumps(bands(text)) if item.symbols else "[]"
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
        if not held:
            words = {(word, id) for word in pieces(f"{text}\n{item.source}")}
            self._connection.executemany("INSERT INTO words VALUES (?, ?)", sorted(words))
            self._connection.executemany("INSERT INTO symbols VALUES (?, ?)", [(symbol, id) for symbol in item.symbols])
        return not held

    def _judge(self, symbol: str, first: int, last: int) -> None:
        """Find the bursts on a symbol anew wherever items between two moments may matter.

        A verdict rests on items from two windows before it to one after it; so what changes lies from one window before the
        first to two after the last, and what it rests on three before and three after.
        """
        window = window_microseconds()
        select = (
            "SELECT items.id, known, voice, credible, sketch FROM symbols JOIN items USING (id) "
            "WHERE symbol = ? AND known BETWEEN ? AND ?"
        )
        rows = self._rows(select, (symbol, first - 3 * window, last + 3 * window))
        said = [
            Utterance(id, known, voice, bool(credible), tuple(json.loads(sketch)))
            for id, known, voice, credible, sketch in rows
        ]
        changed = [each.item for each in said if first - window <= each.known <= last + 2 * window]
        found = find_bursts(said)
        self._connection.executemany("DELETE FROM noise WHERE id = ? AND symbol = ?", [(id, symbol) for id in changed])
        made = [(id, symbol, found[id].since, found[id].first, found[id].voices) for id in changed if id in found]
        self._connection.executemany("INSERT INTO noise VALUES (?, ?, ?, ?, ?)", made)

    def _rows(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        return self._connection.execute(query, values).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Hold the shelf for writing: all of it is done, or nothing."""
        with self._lock, explained(self._path), begin_immediate(self._connection):
            yield

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """See a single state of the shelf."""
        with self._lock, explained(self._path):
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                self._connection.execute("ROLLBACK")


def _conditions(query: Query) -> tuple[str, tuple[Any, ...]]:
    """Return what an item must be to be an answer, and the values of its marks."""
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
    """Return an item without the words in which signs showed: those may be what it was cleaned of."""
    item = NewsItem.read(json.loads(body))
    return replace(item, flags=tuple(Sign(sign.name, sign.weight) for sign in item.flags))


def _read_held(known: int, injected: bool, body: str, burst: Sequence[Any] | None) -> QuarantinedItem:
    """Return an item in quarantine with the earliest of its reasons' moments."""
    item = NewsItem.read(json.loads(body))
    signs = item.flags if injected else ()
    since = known if injected else burst[0] if burst else known
    if burst is not None:
        said = f"{burst[2]} sources of low standing; the first text is {burst[1]}"
        signs = (*signs, Sign("coordinated noise", 1.0, said))
    return QuarantinedItem(item, instant_of(since), signs)
