"""Queries of the store and its answers: words, pages, and cursors."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ..ledger import JSON, canonical_json, compute_digest
from .errors import NewsStoreError
from .instants import format_instant
from .item import NewsItem
from .screening.injection.detector import Sign
from .screening.injection.fold import strip_accents

NOISE_SIGN = "coordinated noise"
"""Holds back a text that many sources of low standing repeat; the other signs are of injection."""
MAX_PAGE_ITEMS = 200
"""Most items of a page."""
_CJK_RANGES = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_QUERY_WORD = re.compile(rf"[{_CJK_RANGES}]+|[^\W_{_CJK_RANGES}]+")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class ItemPage:
    """A page of an answer: items, the latest first; their total as of then; the cursor of the next page, or empty."""

    items: tuple[NewsItem, ...]
    total: int
    cursor: str

    def record(self) -> dict[str, JSON]:
        """Return the page as JSON."""
        return {"items": [item.record() for item in self.items], "total": self.total, "cursor": self.cursor}


@dataclass(frozen=True)
class QuarantinedItem:
    """An item in quarantine, since when, and its signs; for a person."""

    item: NewsItem
    since: datetime
    signs: tuple[Sign, ...]

    @property
    def is_injected(self) -> bool:
        """Return whether it gives orders to a model."""
        return any(sign.name != NOISE_SIGN for sign in self.signs)

    def record(self) -> dict[str, JSON]:
        """Return the item as JSON, with the evidence of its signs."""
        signs: list[JSON] = [vars(sign).copy() for sign in self.signs]
        return {"item": self.item.record(evidence=True), "since": format_instant(self.since), "signs": signs}


@dataclass(frozen=True)
class Release:
    """A person's release of an item: id, who, why, and from when on."""

    id: str
    who: str
    reason: str
    at: datetime


@dataclass(frozen=True)
class Query:
    """A query in normal form: words that must all occur, symbols of which one must; moments in microseconds."""

    as_of: int
    words: tuple[str, ...]
    symbols: tuple[str, ...]
    since: int | None
    limit: int

    @classmethod
    def build(cls, as_of: datetime, words: str, symbols: Sequence[str], since: datetime | None, limit: int) -> Query:
        """Return the query in normal form.

        Raises
        ------
        NewsStoreError
            An instant has no zone, or the limit is out of range.
        """
        if not 1 <= limit <= MAX_PAGE_ITEMS:
            raise NewsStoreError(
                "a page cannot have this size", field="limit", got=limit, allowed=f"1 to {MAX_PAGE_ITEMS}"
            )
        begin = None if since is None else to_microseconds(since, "since")
        return cls(
            to_microseconds(as_of, "as_of"),
            tuple(sorted(set(split_words(words)))),
            tuple(sorted(set(symbols))),
            begin,
            limit,
        )

    def make_cursor(self, known: int, item: str) -> str:
        """Return the cursor behind an item; it contains only that item and the digest of the query."""
        return base64.urlsafe_b64encode(canonical_json([known, item, self._compute_digest()]).encode()).decode()

    def parse_cursor(self, cursor: str) -> tuple[int, str] | None:
        """Return moment and id of the item behind which a cursor continues; None for no cursor.

        Raises
        ------
        NewsStoreError
            It is no cursor, or that of another query.
        """
        if not cursor:
            return None
        try:
            known, item, question = json.loads(base64.b64decode(cursor.encode(), altchars=b"-_", validate=True))
            place = to_microseconds(from_microseconds(int(known)), "cursor"), bytes.fromhex(item).hex()
        except (ValueError, TypeError, OverflowError):
            raise NewsStoreError(
                "this is no cursor", field="cursor", got=cursor, allowed="the cursor of the page before"
            ) from None
        if question != self._compute_digest():
            hint = "Ask again without a cursor."
            raise NewsStoreError("the cursor belongs to another question", field="cursor", got=cursor, hint=hint)
        return place

    def _compute_digest(self) -> str:
        """Return the digest of the query without its limit."""
        return compute_digest([self.as_of, list(self.words), list(self.symbols), self.since])[:16]


def to_microseconds(instant: datetime, name: str) -> int:
    """Return an instant as microseconds since 1970.

    Raises
    ------
    NewsStoreError
        If it has no zone.
    """
    if instant.tzinfo is None:
        raise NewsStoreError(
            "an instant needs its zone", field=name, got=str(instant), allowed="an instant with its zone"
        )
    return (instant - _EPOCH) // timedelta(microseconds=1)


def from_microseconds(count: int) -> datetime:
    """Return the instant of a count of microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=count)


def split_words(text: str) -> list[str]:
    """Return the words of a text for search: lower case without accents; Chinese, Japanese and Korean in pairs."""
    words: list[str] = []
    for word in _QUERY_WORD.findall(strip_accents(text)):
        if re.match(f"[{_CJK_RANGES}]", word) and len(word) > 1:
            words += [word[place : place + 2] for place in range(len(word) - 1)]
        else:
            words.append(word)
    return words
