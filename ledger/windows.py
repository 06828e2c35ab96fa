"""Find the stored windows that share data with a given one.

Two windows share data if they hold the same returns, under any symbols and dates, or have a day and a symbol in common.
"""

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
from .log.leaves import LoggedTransaction
from .records import Boundaries, Fingerprint, WindowKey

Days: TypeAlias = Mapping[int, frozenset[str]]
"""The days of each hash."""
MIN_SHARED_HASHES = 5
"""Least number of hashes that two windows with the same returns share; unrelated panels of 40,000 hashes share none."""
HASH_BYTES = 6
WINDOW_COLUMNS = "dataset, first_day, last_day, names"
WINDOW_EDGES = ("search_end", "selection_start", "selection_end", "sealed_start", "sealed_end")
SLACK_DAYS = 7
"""Days by which edges that were carried over from other dates may differ.

They differ where a row is missing on an edge.
"""


class NameLists:
    """Lists of symbols, stored once under their digest: a window of 500 symbols takes one digest a row."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, ...]] = {}
        self.fingerprints = Fingerprints()

    def keep(self, session: LoggedTransaction, names: tuple[str, ...]) -> str:
        """Store a list of symbols, inside the caller's transaction, and return its digest."""
        body = canonical_json(names)
        name = compute_digest(body)
        session.append("name_lists", {"digest": name, "body": body})
        return name

    def read(self, session: Transaction, name: str) -> tuple[str, ...]:
        """Return the list with this digest."""
        if name not in self._known:
            (body,) = session.execute("SELECT body FROM name_lists WHERE digest = ?", (name,)).fetchone()
            self._known[name] = tuple(json.loads(body))
        return self._known[name]

    def window(self, session: Transaction, columns: tuple[Any, ...]) -> WindowKey:
        """Build the record of a window from its four columns."""
        dataset, first_day, last_day, names = columns
        return WindowKey(dataset, first_day, last_day, self.read(session, names))

    def overlapping(self, session: Transaction, table: str, window: WindowKey, until: str = "") -> list[int]:
        """Return the ids of the rows whose window shares data with a window; oldest first.

        Fingerprints that were stored after the time `until` do not count.
        """
        rows = session.execute(f"SELECT id, names, first_day, last_day FROM {table} ORDER BY id").fetchall()
        shares = self._build_overlap_test(session, window, until)
        spans = {span: shares(*span) for span in {(names, first, last) for _, names, first, last in rows}}
        return [row for row, *span in rows if spans[tuple(span)]]

    def _build_overlap_test(
        self, session: Transaction, window: WindowKey, until: str
    ) -> Callable[[str, str, str], bool]:
        """Return a test whether a window (digest of its symbols, first and last day) shares data with this one."""
        symbols, own = frozenset(window.names), self.content(session, window, until)

        def shares(names: str, first: str, last: str) -> bool:
            same_days = first <= window.last_day and last >= window.first_day
            if same_days and not symbols.isdisjoint(self.read(session, names)):
                return True
            match = self.fingerprints.match(own, self.fingerprints.read(session, names, until=until))
            return match.within((window.first_day, window.last_day), (first, last))

        return shares

    def content(self, session: Transaction, window: WindowKey, until: str = "") -> Days:
        """Return the hashes of a window: those of its own fingerprint, else those stored for its symbols."""
        if window.fingerprint:
            return self.fingerprints.index(window.fingerprint)
        return self.fingerprints.read(session, compute_digest(canonical_json(window.names)), until=until)

    def known_as(self, session: Transaction, window: WindowKey) -> tuple[str, str] | None:
        """Return a day and the day under which the same returns were stored first; None if the days are equal."""
        own = self.content(session, window)
        for names, series in self.fingerprints.all_series(session):
            if match := self.fingerprints.match(own, self.fingerprints.read(session, names, series)):
                return None if match.same_days else max(match.pairs, key=lambda pair: (match.pairs[pair], pair))
        return None

    def subjects(self, session: Transaction, table: str, window: WindowKey) -> set[str]:
        """Return the subjects of the rows whose window shares data with this one."""
        return set(read_column(session, table, "subject", self.overlapping(session, table, window)))

    def columns(self, session: LoggedTransaction, window: WindowKey) -> tuple[str, str, str, str]:
        """Return the four columns of a window; its list of symbols is stored."""
        return window.dataset, window.first_day, window.last_day, self.keep(session, window.names)

    def carry_over(
        self, session: Transaction, fixed: Boundaries, series: int, span: WindowKey
    ) -> tuple[Boundaries, bool] | None:
        """Return stored edges on the days of a span's data, and whether returns placed them; None for other data.

        Edges that were fixed before fingerprints existed have no series; they are matched by symbols and days alone.
        """
        stored = self.fingerprints.read(session, compute_digest(canonical_json(fixed.names)), series) if series else {}
        match = self.fingerprints.match(self.content(session, span), stored)
        if match:
            return _move_edges(fixed, match), True
        same_days = fixed.first_day <= span.last_day and fixed.sealed_end >= span.first_day
        return (fixed, False) if same_days and not set(span.names).isdisjoint(fixed.names) else None


def name_columns(window: tuple[str, ...]) -> dict[str, str]:
    """Return the four columns of a window under their names."""
    return dict(zip(WINDOW_COLUMNS.split(", "), window, strict=True))


def _move_edges(fixed: Boundaries, match: Match) -> Boundaries:
    """Return the edges on the days on which the other data has the same returns."""
    days: dict[str, Any] = {
        name: match.own_day(getattr(fixed, name), first=not name.endswith("_end"))
        for name in ("first_day", *WINDOW_EDGES)
    }
    return replace(fixed, **days)


def disagree(one: tuple[Boundaries, bool], other: tuple[Boundaries, bool]) -> bool:
    """Return whether two sets of edges differ; by more than a week, where returns placed one of them."""
    by_returns = one[1] or other[1]
    slack, names = (SLACK_DAYS, WINDOW_EDGES) if by_returns else (0, ("first_day", *WINDOW_EDGES))
    days = [[date.fromisoformat(getattr(edges, name)) for name in names] for edges in (one[0], other[0])]
    return any(abs((mine - theirs).days) > slack for mine, theirs in zip(*days, strict=True))


def read_column(session: Transaction, table: str, name: str, rows: list[int]) -> list[Any]:
    """Return the values of one column in some rows, in a single query."""
    ids = set(rows)
    if not ids:
        return []
    return [value for row, value in session.execute(f"SELECT id, {name} FROM {table}").fetchall() if row in ids]


@dataclass(frozen=True)
class Match:
    """Number of shared hashes for each pair of (own day, other day)."""

    pairs: Mapping[tuple[str, str], int]

    def __bool__(self) -> bool:
        """Return whether both hold the same returns."""
        return sum(self.pairs.values()) >= MIN_SHARED_HASHES

    def within(self, own: tuple[str, str], other: tuple[str, str]) -> bool:
        """Return whether a span of own days and a span of the other's days hold the same returns."""
        total = 0
        for (mine, theirs), count in self.pairs.items():
            if own[0] <= mine <= own[1] and other[0] <= theirs <= other[1]:
                total += count
        return total >= MIN_SHARED_HASHES

    @property
    def same_days(self) -> bool:
        """Return whether most shared hashes are on equal days."""
        return 2 * sum(count for (mine, theirs), count in self.pairs.items() if mine == theirs) > sum(
            self.pairs.values()
        )

    def own_day(self, other: str, *, first: bool) -> str:
        """Return the own day that has the other's returns of a day.

        For a day without hashes, the nearest day with hashes is taken: the next one where the `first` day of a window
        is asked for, else the one before. The answer is shifted by the same number of calendar days.
        """
        votes: dict[str, Counter[str]] = defaultdict(Counter)
        for (mine, theirs), count in self.pairs.items():
            votes[theirs][mine] += count
        days = sorted(votes)
        place = bisect_left(days, other)
        if place == len(days) or (days[place] != other and not first and place > 0):
            place -= 1
        near = days[place]
        moved = date.fromisoformat(min(votes[near], key=lambda day: (-votes[near][day], day))) - date.fromisoformat(
            near
        )
        return (date.fromisoformat(other) + moved).isoformat()


class Fingerprints:
    """Reads and writes the fingerprints of lists of symbols."""

    def __init__(self) -> None:
        self._bodies: dict[int, Fingerprint] = {}
        self._joined: dict[tuple[int, ...], Days] = {}
        self._matches: dict[tuple[int, int], tuple[Days, Days, Match]] = {}
        self._indexed: dict[int, tuple[Fingerprint, Days]] = {}

    def keep(self, session: LoggedTransaction, names: str, fingerprint: Fingerprint, at: str) -> int:
        """Store the new hashes of a fingerprint, inside the caller's transaction.

        Return the number of its series; 0 for an empty fingerprint.
        """
        if not fingerprint:
            return 0
        series, stored = self._find_series(session, names, fingerprint)
        new = {day: [mark for mark in marks if day not in stored.get(mark, ())] for day, marks in fingerprint.items()}
        body = {day: _pack_hashes(marks) for day, marks in new.items() if marks}
        if body:
            session.append("fingerprints", {"names": names, "series": series, "at": at, "body": canonical_json(body)})
        return series

    def _find_series(self, session: Transaction, names: str, fingerprint: Fingerprint) -> tuple[int, Days]:
        """Return the series that a fingerprint continues, with its hashes; else the next number, without hashes."""
        numbers = sorted({row[1] for row in self._list_rows(session, names)})
        for series in numbers:
            stored = self.read(session, names, series)
            if (match := self.match(self.index(fingerprint), stored)) and match.same_days:
                return series, stored
        return (numbers[-1] + 1 if numbers else 1), {}

    def read(self, session: Transaction, names: str, series: int = 0, until: str = "") -> Days:
        """Return the stored hashes of a list of symbols: of one series or of all, up to the time `until` if given."""
        rows = self._list_rows(session, names)
        chosen = tuple(row for row, own, at in rows if series in (0, own) and not (until and at > until))
        if chosen not in self._joined:
            self._joined[chosen] = _group_by_hash([self._read_body(session, row) for row in chosen])
        return self._joined[chosen]

    @staticmethod
    def all_series(session: Transaction) -> list[tuple[str, int]]:
        """Return every list of symbols with each of its series, in the order in which they were first stored."""
        rows = session.execute("SELECT names, series FROM fingerprints ORDER BY id").fetchall()
        return list(dict.fromkeys((names, int(series)) for names, series in rows))

    def index(self, fingerprint: Fingerprint) -> Days:
        """Return a fingerprint by its hashes; cached, because windows of one panel share their fingerprint."""
        if id(fingerprint) not in self._indexed:
            self._indexed[id(fingerprint)] = fingerprint, _group_by_hash([fingerprint])
        return self._indexed[id(fingerprint)][1]

    def match(self, own: Days, other: Days) -> Match:
        """Return the shared hashes of two sets; cached by identity."""
        key = id(own), id(other)
        if key not in self._matches:
            pairs = Counter(
                (mine, theirs) for mark in own.keys() & other.keys() for mine in own[mark] for theirs in other[mark]
            )
            self._matches[key] = own, other, Match(pairs)  # both are stored, so that their ids are not reused
        return self._matches[key][2]

    @staticmethod
    def _list_rows(session: Transaction, names: str) -> list[tuple[int, int, str]]:
        query = "SELECT id, series, at FROM fingerprints WHERE names = ? ORDER BY id"
        return [(int(row), int(series), at) for row, series, at in session.execute(query, (names,)).fetchall()]

    def _read_body(self, session: Transaction, row: int) -> Fingerprint:
        if row not in self._bodies:
            (body,) = session.execute("SELECT body FROM fingerprints WHERE id = ?", (row,)).fetchone()
            self._bodies[row] = {day: _unpack_hashes(marks) for day, marks in json.loads(body).items()}
        return self._bodies[row]


def _group_by_hash(parts: Sequence[Fingerprint]) -> Days:
    days_of: dict[int, frozenset[str]] = {}
    for part in parts:
        for day, marks in part.items():
            new = dict.fromkeys(marks, frozenset((day,)))
            for mark in days_of.keys() & new.keys():
                new[mark] |= days_of[mark]
            days_of |= new
    return days_of


def _pack_hashes(marks: Sequence[int]) -> str:
    return b64encode(b"".join(mark.to_bytes(HASH_BYTES, "big") for mark in marks)).decode()


def _unpack_hashes(text: Any) -> tuple[int, ...]:
    raw = b64decode(text)
    return tuple(int.from_bytes(raw[place : place + HASH_BYTES], "big") for place in range(0, len(raw), HASH_BYTES))
