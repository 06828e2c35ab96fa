"""What is asked of a shelf and what it answers: words, pages, and the cursor that continues one."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ..ledger import JSON, canonical_json, compute_digest
from .errors import ShelfError
from .instants import format_instant
from .item import NewsItem
from .screening.injection.detector import Sign
from .screening.injection.fold import strip_accents

MAX_PAGE_ITEMS = 200
"""How many items a page may hold."""
_CJK_RANGES = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_QUERY_WORD = re.compile(rf"[{_CJK_RANGES}]+|[^\W_{_CJK_RANGES}]+")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class ItemPage:
    """A part of an answer: items, the latest first; how many there are in all as of then; what continues it, or nothing."""

    items: tuple[NewsItem, ...]
    total: int
    cursor: str

    def record(self) -> dict[str, JSON]:
        """Return the page as JSON."""
        return {"items": [item.record() for item in self.items], "total": self.total, "cursor": self.cursor}


@dataclass(frozen=True)
class QuarantinedItem:
    """An item in quarantine: since when, and the signs that fired; for a person."""

    item: NewsItem
    since: datetime
    signs: tuple[Sign, ...]

    def record(self) -> dict[str, JSON]:
        """Return it as JSON, with the words in which signs showed."""
        signs: list[JSON] = [vars(sign).copy() for sign in self.signs]
        return {"item": self.item.record(evidence=True), "since": format_instant(self.since), "signs": signs}


@dataclass(frozen=True)
class Release:
    """Says that a person put an item back: which, who, why, and from when on."""

    id: str
    who: str
    reason: str
    at: datetime


@dataclass(frozen=True)
class Query:
    """A question in the one form that is asked: words that must all occur, symbols of which one must."""

    as_of: int
    words: tuple[str, ...]
    symbols: tuple[str, ...]
    since: int | None
    limit: int

    @classmethod
    def of(cls, as_of: datetime, words: str, symbols: Sequence[str], since: datetime | None, limit: int) -> Query:
        """Return the question.

        Raises
        ------
        ShelfError
            If an instant has no zone, or the limit is out of range.
        """
        if not 1 <= limit <= MAX_PAGE_ITEMS:
            raise ShelfError("a page cannot have this size", field="limit", got=limit, allowed=f"1 to {MAX_PAGE_ITEMS}")
        begin = None if since is None else microseconds(since, "since")
        return cls(
            microseconds(as_of, "as_of"), tuple(sorted(set(pieces(words)))), tuple(sorted(set(symbols))), begin, limit
        )

    def cursor(self, known: int, item: str) -> str:
        """Return what continues the answer behind an item; it names nothing but that item and the question."""
        return base64.urlsafe_b64encode(canonical_json([known, item, self._digest()]).encode()).decode()

    def behind(self, cursor: str) -> tuple[int, str] | None:
        """Return the item behind which a cursor continues; None for no cursor.

        Raises
        ------
        ShelfError
            If it is no cursor, or that of another question.
        """
        if not cursor:
            return None
        try:
            known, item, asked = json.loads(base64.b64decode(cursor.encode(), altchars=b"-_", validate=True))
            found = microseconds(instant_of(int(known)), "cursor"), bytes.fromhex(item).hex()
        except (ValueError, TypeError, OverflowError):
            raise ShelfError(
                "this is no cursor", field="cursor", got=cursor, allowed="the cursor of the page before"
            ) from None
        if asked != self._digest():
            hint = "Ask again without a cursor."
            raise ShelfError("the cursor belongs to another question", field="cursor", got=cursor, hint=hint)
        return found

    def _digest(self) -> str:
        """Return the digest of the question without its limit."""
        return compute_digest([self.as_of, list(self.words), list(self.symbols), self.since])[:16]


def microseconds(instant: datetime, name: str) -> int:
    """Return an instant as microseconds since 1970.

    Raises
    ------
    ShelfError
        If it has no zone.
    """
    if instant.tzinfo is None:
        raise ShelfError("an instant needs its zone", field=name, got=str(instant), allowed="an instant with its zone")
    return (instant - _EPOCH) // timedelta(microseconds=1)


def instant_of(count: int) -> datetime:
    """Return the instant of a count of microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=count)


def pieces(text: str) -> list[str]:
    """Return the words of a text as they are compared: in lower case without accents; Chinese, Japanese and Korean in pairs."""
    found: list[str] = []
    for word in _QUERY_WORD.findall(strip_accents(text)):
        if re.match(f"[{_CJK_RANGES}]", word) and len(word) > 1:
            found += [word[place : place + 2] for place in range(len(word) - 1)]
        else:
            found.append(word)
    return found
