"""Which stored windows share data with a given one: the same returns under any symbols and dates, or a day and a name."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, TypeAlias

from .database.protocol import Transaction
from .digest import canonical_json, compute_digest
from .records import Boundaries, Fingerprint, WindowKey

Days: TypeAlias = Mapping[int, frozenset[str]]
"""For each hash the days on which it stands."""
MIN_SHARED_HASHES = 5
"""Hashes that two windows must share to hold the same returns; unrelated panels of 40,000 hashes each share none."""
HASH_BYTES = 6
"""Bytes of a hash."""
_ADD_FINGERPRINT = "INSERT INTO fingerprints (names, series, at, body) VALUES (?, ?, ?, ?)"
WINDOW_COLUMNS = "dataset, first_day, last_day, names"
WINDOW_EDGES = ("search_end", "selection_start", "selection_end", "sealed_start", "sealed_end")
SLACK_DAYS = 7
"""How far the edges of one data set may lie apart that were carried over from other dates: a row that is missing on an edge."""


class NameLists:
    """Lists of names, stored once by digest: a window of 500 names costs one hash a row."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, ...]] = {}
        self.fingerprints = Fingerprints()

    def keep(self, session: Transaction, names: tuple[str, ...]) -> str:
        """Store a list of names, inside the caller's transaction, and return its digest."""
        body = canonical_json(names)
        name = compute_digest(body)
        session.execute("INSERT INTO name_lists VALUES (?, ?) ON CONFLICT DO NOTHING", (name, body))
        return name

    def read(self, session: Transaction, name: str) -> tuple[str, ...]:
        """Return the list with this digest."""
        if name not in self._known:
            (body,) = session.execute("SELECT body FROM name_lists WHERE digest = ?", (name,)).fetchone()
            self._known[name] = tuple(json.loads(body))
        return self._known[name]

    def window(self, session: Transaction, columns: tuple[Any, ...]) -> WindowKey:
        """Turn the four columns of a window into its record."""
        dataset, first_day, last_day, names = columns
        return WindowKey(dataset, first_day, last_day, self.read(session, names))

    def overlapping(self, session: Transaction, table: str, window: WindowKey, until: str = "") -> list[int]:
        """Return the ids of the rows whose window shares returns, or a day and a name, with a window; oldest first.

        `until` asks what was known at a moment: fingerprints that were stored later do not count.
        """
        rows = session.execute(f"SELECT id, names, first_day, last_day FROM {table} ORDER BY id").fetchall()
        shares = self._sharing(session, window, until)
        spans = {span: shares(*span) for span in {(names, first, last) for _, names, first, last in rows}}
        return [row for row, *span in rows if spans[tuple(span)]]

    def _sharing(self, session: Transaction, window: WindowKey, until: str) -> Callable[[str, str, str], bool]:
        """Return what tells whether another window, as list, first and last day, shares data with this one."""
        wanted, own = frozenset(window.names), self.content(session, window, until)

        def shares(names: str, first: str, last: str) -> bool:
            same_days = first <= window.last_day and last >= window.first_day
            if same_days and not wanted.isdisjoint(self.read(session, names)):
                return True
            match = self.fingerprints.match(own, self.fingerprints.stored(session, names, until=until))
            return match.within((window.first_day, window.last_day), (first, last))

        return shares

    def content(self, session: Transaction, window: WindowKey, until: str = "") -> Days:
        """Return the returns of a window's data: those that it brings along, else what is stored of its names."""
        if window.fingerprint:
            return self.fingerprints.given(window.fingerprint)
        return self.fingerprints.stored(session, compute_digest(canonical_json(window.names)), until=until)

    def known_as(self, session: Transaction, window: WindowKey) -> tuple[str, str] | None:
        """Return a day and the other day under which the same returns were stored first; None where the days are the same."""
        own = self.content(session, window)
        for names, series in self.fingerprints.all_series(session):
            if match := self.fingerprints.match(own, self.fingerprints.stored(session, names, series)):
                return None if match.same_days else max(match.pairs, key=lambda pair: (match.pairs[pair], pair))
        return None

    def subjects(self, session: Transaction, table: str, window: WindowKey) -> set[str]:
        """Return what was looked at in windows that share data with this one."""
        return set(read_column(session, table, "subject", self.overlapping(session, table, window)))

    def columns(self, session: Transaction, window: WindowKey) -> tuple[str, str, str, str]:
        """Return a window as its four columns."""
        return window.dataset, window.first_day, window.last_day, self.keep(session, window.names)

    def carried(
        self, session: Transaction, fixed: Boundaries, series: int, span: WindowKey
    ) -> tuple[Boundaries, bool] | None:
        """Return stored edges on the days of a span's data, and whether its returns said where they lie; None: other data.

        Edges that were fixed before there were fingerprints, and so have no series, hold by names and days alone.
        """
        stored = (
            self.fingerprints.stored(session, compute_digest(canonical_json(fixed.names)), series) if series else {}
        )
        match = self.fingerprints.match(self.content(session, span), stored)
        if match:
            return _move_edges(fixed, match), True
        same_days = fixed.first_day <= span.last_day and fixed.sealed_end >= span.first_day
        return (fixed, False) if same_days and not set(span.names).isdisjoint(fixed.names) else None


def _move_edges(fixed: Boundaries, match: Match) -> Boundaries:
    """Return edges on the days on which the same returns stand elsewhere."""
    days: dict[str, Any] = {
        name: match.own_day(getattr(fixed, name), first=not name.endswith("_end"))
        for name in ("first_day", *WINDOW_EDGES)
    }
    return replace(fixed, **days)


def disagree(one: tuple[Boundaries, bool], other: tuple[Boundaries, bool]) -> bool:
    """Tell whether two say something else of where windows lie; a week is allowed between what was carried over."""
    by_returns = one[1] or other[1]
    slack, names = (SLACK_DAYS, WINDOW_EDGES) if by_returns else (0, ("first_day", *WINDOW_EDGES))
    days = [[date.fromisoformat(getattr(each, name)) for name in names] for each in (one[0], other[0])]
    return any(abs((mine - theirs).days) > slack for mine, theirs in zip(*days, strict=True))


def read_column(session: Transaction, table: str, name: str, rows: list[int]) -> list[Any]:
    """Return what some rows hold in one column, in one question to the database however many they are."""
    wanted = set(rows)
    if not wanted:
        return []
    return [value for row, value in session.execute(f"SELECT id, {name} FROM {table}").fetchall() if row in wanted]


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
