"""What a list of names holds by content: hashes of daily returns, so that the same data is known under any symbols and dates.

A name list may hold several series: the same names on other dates, or with other returns, begin a new one. A series grows
by what is new in it, so a panel that gains a day costs one line.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, TypeAlias

from .database.protocol import Transaction
from .digest import canonical_json
from .records import Fingerprint

Days: TypeAlias = Mapping[int, frozenset[str]]
"""For each hash the days on which it stands."""
MIN_SHARED_HASHES = 5
"""Hashes that two windows must share to hold the same returns; unrelated panels of 40,000 hashes each share none."""
HASH_BYTES = 6
"""Bytes of a hash."""


@dataclass(frozen=True)
class Match:
    """How many hashes stand on each pair of (own day, other day)."""

    pairs: Mapping[tuple[str, str], int]

    def __bool__(self) -> bool:
        """Tell whether both hold the same returns."""
        return sum(self.pairs.values()) >= MIN_SHARED_HASHES

    def within(self, own: tuple[str, str], other: tuple[str, str]) -> bool:
        """Tell whether the same returns lie in a span of own days and in a span of the other's."""
        found = 0
        for (mine, theirs), count in self.pairs.items():
            if own[0] <= mine <= own[1] and other[0] <= theirs <= other[1]:
                found += count
        return found >= MIN_SHARED_HASHES

    @property
    def same_days(self) -> bool:
        """Tell whether most of what is shared stands on the same days."""
        return 2 * sum(count for (mine, theirs), count in self.pairs.items() if mine == theirs) > sum(
            self.pairs.values()
        )

    def own_day(self, other: str, *, first: bool) -> str:
        """Return the own day on which the other's returns of a day stand.

        Of a day without hashes, that of the next one with some where the `first` day of a window is asked for, of the one
        before for the last; what lies beyond all of them is moved by as many calendar days as the nearest.
        """
        votes: dict[str, Counter[str]] = defaultdict(Counter)
        for (mine, theirs), count in self.pairs.items():
            votes[theirs][mine] += count
        known = sorted(votes)
        place = bisect_left(known, other)
        if place == len(known) or (known[place] != other and not first and place > 0):
            place -= 1
        near = known[place]
        moved = date.fromisoformat(min(votes[near], key=lambda day: (-votes[near][day], day))) - date.fromisoformat(
            near
        )
        return (date.fromisoformat(other) + moved).isoformat()


class Fingerprints:
    """Reads and writes the fingerprints of name lists."""

    def __init__(self) -> None:
        self._bodies: dict[int, Fingerprint] = {}
        self._joined: dict[tuple[int, ...], Days] = {}
        self._matches: dict[tuple[int, int], tuple[Days, Days, Match]] = {}
        self._given: dict[int, tuple[Fingerprint, Days]] = {}

    def keep(self, session: Transaction, names: str, given: Fingerprint, at: str) -> int:
        """Store what is new of a fingerprint, inside the caller's transaction; return the number of its series, 0 for none."""
        if not given:
            return 0
        series, known = self._find_series(session, names, given)
        new = {day: [each for each in marks if day not in known.get(each, ())] for day, marks in given.items()}
        body = {day: _pack_hashes(marks) for day, marks in new.items() if marks}
        if body:
            session.execute(_ADD_FINGERPRINT, (names, series, at, canonical_json(body)))
        return series

    def _find_series(self, session: Transaction, names: str, given: Fingerprint) -> tuple[int, Days]:
        """Return the series that a fingerprint goes on with, the next number where there is none, and what it holds."""
        numbers = sorted({row[1] for row in self._rows(session, names)})
        for series in numbers:
            known = self.stored(session, names, series)
            if (match := self.match(self.given(given), known)) and match.same_days:
                return series, known
        return (numbers[-1] + 1 if numbers else 1), {}

    def stored(self, session: Transaction, names: str, series: int = 0, until: str = "") -> Days:
        """Return what is known of a name list: of one series or of all, and as it was known at a moment if one is named."""
        rows = self._rows(session, names)
        wanted = tuple(row for row, own, at in rows if series in (0, own) and not (until and at > until))
        if wanted not in self._joined:
            self._joined[wanted] = _group_by_hash([self._body(session, row) for row in wanted])
        return self._joined[wanted]

    @staticmethod
    def all_series(session: Transaction) -> list[tuple[str, int]]:
        """Return every name list with each of its series, in the order in which they were first stored."""
        rows = session.execute("SELECT names, series FROM fingerprints ORDER BY id").fetchall()
        return list(dict.fromkeys((names, int(series)) for names, series in rows))

    def given(self, fingerprint: Fingerprint) -> Days:
        """Return a fingerprint by its hashes; once for each, since windows of one panel share theirs."""
        if id(fingerprint) not in self._given:
            self._given[id(fingerprint)] = fingerprint, _group_by_hash([fingerprint])
        return self._given[id(fingerprint)][1]

    def match(self, own: Days, other: Days) -> Match:
        """Return what two have in common; once for each pair."""
        key = id(own), id(other)
        if key not in self._matches:
            pairs = Counter(
                (mine, theirs) for mark in own.keys() & other.keys() for mine in own[mark] for theirs in other[mark]
            )
            self._matches[key] = own, other, Match(pairs)  # both are kept: an id may not come to mean another one
        return self._matches[key][2]

    @staticmethod
    def _rows(session: Transaction, names: str) -> list[tuple[int, int, str]]:
        query = "SELECT id, series, at FROM fingerprints WHERE names = ? ORDER BY id"
        return [(int(row), int(series), at) for row, series, at in session.execute(query, (names,)).fetchall()]

    def _body(self, session: Transaction, row: int) -> Fingerprint:
        if row not in self._bodies:
            (body,) = session.execute("SELECT body FROM fingerprints WHERE id = ?", (row,)).fetchone()
            self._bodies[row] = {day: _unpack_hashes(marks) for day, marks in json.loads(body).items()}
        return self._bodies[row]


_ADD_FINGERPRINT = "INSERT INTO fingerprints (names, series, at, body) VALUES (?, ?, ?, ?)"


def _group_by_hash(parts: Sequence[Fingerprint]) -> Days:
    found: dict[int, set[str]] = defaultdict(set)
    for part in parts:
        for day, marks in part.items():
            for mark in marks:
                found[mark].add(day)
    return {mark: frozenset(days) for mark, days in found.items()}


def _pack_hashes(marks: Sequence[int]) -> str:
    return b64encode(b"".join(mark.to_bytes(HASH_BYTES, "big") for mark in marks)).decode()


def _unpack_hashes(text: Any) -> tuple[int, ...]:
    raw = b64decode(text)
    return tuple(int.from_bytes(raw[place : place + HASH_BYTES], "big") for place in range(0, len(raw), HASH_BYTES))
