"""Find the known formulas most like a formula: in the library, published, or earlier in the same batch.

The search uses an inverted index from the hash of a subtree to the formulas that contain it, smallest first, then by
name. `MemoryIndex` is the index in memory; `subtree_index.py` has the one on disk.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ...factors import Expression
from ...factors.similarity import (
    KnownFormula,
    Likeness,
    NumberCodes,
    Outline,
    compare_formulas,
    draw_outline,
    is_near,
    list_subtrees,
    rank_likeness,
)

MAX_POSTING_CODES = 15
"""Numbers of a subtree that are stored beside its hash; further ones are looked up in the formula."""
COUNT_BITS = 4

Posting = tuple[int, NumberCodes]
"""The key of a subtree, and its first numbers."""


@dataclass(frozen=True)
class Catalogue:
    """All formulas that a formula is compared with.

    Attributes
    ----------
    shelves : sequence of InvertedIndex
        Formulas that are searched by subtree: published factors, the library.
    batch : sequence of KnownFormula
        Formulas that are compared one by one: the few earlier ones of the same batch.
    """

    shelves: Sequence[InvertedIndex] = ()
    batch: Sequence[KnownFormula] = ()

    @classmethod
    def of(cls, formulas: Iterable[tuple[str, Expression, str]]) -> Catalogue:
        """Return a catalogue of formulas `(name, expression, where it is from)`."""
        return cls((MemoryIndex(draw_formula(*formula) for formula in formulas),))

    def with_batch(self, batch: Iterable[KnownFormula]) -> Catalogue:
        """Return the catalogue with further formulas in its batch."""
        return replace(self, batch=(*self.batch, *batch))

    def nearest(self, expression: Expression, top: int = 1) -> list[Likeness]:
        """Return the `top` formulas that share most with one, most similar first, ties by name."""
        matches = search_indexes(draw_outline(expression.core), self.shelves, top)
        batch_matches = [
            like for like in (compare_formulas(expression, known) for known in self.batch) if like.ratio > 0
        ]
        return rank_likeness([*matches, *batch_matches], top)


def find_nearest(expression: Expression, against: Catalogue | Iterable[KnownFormula], top: int = 1) -> list[Likeness]:
    """Return the `top` known formulas that share most with one, most similar first, ties by name."""
    catalogue = against if isinstance(against, Catalogue) else Catalogue(batch=tuple(against))
    return catalogue.nearest(expression, top)


class InvertedIndex(Protocol):
    """Known formulas that can be searched by subtree; a formula is identified by its place."""

    def find(self, key: int, codes: NumberCodes) -> Iterator[tuple[int, int]]:
        """Yield size and place of each formula whose index entry matches a subtree, smallest first, then by name."""

    def name(self, place: int) -> str:
        """Return the name of a formula."""

    def holds(self, place: int, part: Outline) -> bool:
        """Tell whether a formula contains a subtree with numbers that are near; exact, unlike `find`."""

    def known(self, place: int) -> KnownFormula:
        """Return a formula."""


def posting(part: Outline) -> Posting:
    """Return the index entry of a subtree: 60 bits of its hash with the count of its numbers, and the numbers."""
    count = min(len(part.codes), MAX_POSTING_CODES)
    return int.from_bytes(part.digest, "little") >> COUNT_BITS << COUNT_BITS | count, part.codes[:MAX_POSTING_CODES]


def postings(whole: Outline) -> list[Posting]:
    """Return the index entries of the distinct subtrees of a formula."""
    return list(dict.fromkeys(map(posting, list_subtrees(whole))))


class MemoryIndex:
    """An inverted index in memory; formulas can be added at any time."""

    def __init__(self, formulas: Iterable[tuple[KnownFormula, Outline]] = ()) -> None:
        self._all: list[KnownFormula] = []
        self._names: set[str] = set()
        self._lists: dict[int, list[tuple[int, str, int, NumberCodes]]] = {}
        for known, whole in formulas:
            self.add(known, postings(whole))

    def __len__(self) -> int:
        """Count the formulas."""
        return len(self._all)

    def __iter__(self) -> Iterator[KnownFormula]:
        """Yield the formulas in the order in which they were added."""
        return iter(self._all)

    def __contains__(self, name: str) -> bool:
        """Tell whether there is a formula of this name."""
        return name in self._names

    def add(self, known: KnownFormula, parts: Iterable[Posting]) -> None:
        """Add a formula under each of its subtrees."""
        place = len(self._all)
        self._all.append(known)
        self._names.add(known.name)
        for key, codes in parts:
            insort(self._lists.setdefault(key, []), (known.size, known.name, place, codes))

    def find(self, key: int, codes: NumberCodes) -> Iterator[tuple[int, int]]:
        """Yield size and place of each formula whose index entry matches a subtree, smallest first, then by name."""
        for size, _, place, numbers in self._lists.get(key, ()):
            if is_near(numbers, codes):
                yield size, place

    def name(self, place: int) -> str:
        """Return the name of a formula."""
        return self._all[place].name

    def holds(self, place: int, part: Outline) -> bool:
        """Tell whether a formula contains a subtree with numbers that are near; exact, unlike `find`."""
        return self._all[place].holds(part)

    def known(self, place: int) -> KnownFormula:
        """Return a formula."""
        return self._all[place]


class Selection:
    """The formulas of an index that have certain names."""

    def __init__(self, shelf: InvertedIndex, names: Collection[str]) -> None:
        self._shelf, self._names = shelf, names

    def find(self, key: int, codes: NumberCodes) -> Iterator[tuple[int, int]]:
        """Yield size and place of each formula whose index entry matches a subtree, smallest first, then by name."""
        return (match for match in self._shelf.find(key, codes) if self.name(match[1]) in self._names)

    def name(self, place: int) -> str:
        """Return the name of a formula."""
        return self._shelf.name(place)

    def holds(self, place: int, part: Outline) -> bool:
        """Tell whether a formula contains a subtree with numbers that are near; exact, unlike `find`."""
        return self._shelf.holds(place, part)

    def known(self, place: int) -> KnownFormula:
        """Return a formula."""
        return self._shelf.known(place)


def search_indexes(whole: Outline, shelves: Sequence[InvertedIndex], top: int = 1) -> list[Likeness]:
    """Return the `top` formulas that share most with one, most similar first, ties by name.

    The result equals that of comparing all formulas. Subtrees are tried from the largest down, and the formulas that
    contain one from the smallest up, so ratios only fall. A list is abandoned where its next ratio is below the worst
    result, and the search ends where no smaller subtree can reach it. A match of hashes is confirmed in the formula.
    """
    best = _Best(whole, top)
    for part in list_subtrees(whole):
        if not best.may_reach(part):
            break
        key, codes = posting(part)
        for number, shelf in enumerate(shelves):
            best.take_from(part, number, shelf, shelf.find(key, codes))
    return [Likeness(shelves[number].known(place), -ratio, part) for ratio, _, number, place, part in best.matches]


class _Best:
    """The best matches so far."""

    def __init__(self, whole: Outline, top: int) -> None:
        self.whole, self.top = whole, top
        self.matches: list[tuple[float, str, int, int, Outline]] = []
        self.taken: set[tuple[int, int]] = set()
        self.worst, self.last = 1.0, ""
        """Minus the ratio, and the name, of the worst of them once there are `top`; a further match must sort below."""

    def may_reach(self, part: Outline) -> bool:
        """Tell whether a formula that equals this subtree would be among the best."""
        return -2.0 * part.size / (self.whole.size + part.size) <= self.worst

    def take_from(self, part: Outline, number: int, shelf: InvertedIndex, matches: Iterator[tuple[int, int]]) -> None:
        """Take the formulas of one index that contain a subtree."""
        minus_twice_size, own_size, taken = -2.0 * part.size, self.whole.size, self.taken
        for size, place in matches:
            ratio = minus_twice_size / (own_size + size)
            if ratio > self.worst:
                return
            if (number, place) in taken:
                continue
            name = shelf.name(place)
            if ratio == self.worst and name >= self.last:
                return
            if shelf.holds(place, part):
                taken.add((number, place))
                self._take((ratio, name, number, place, part))

    def _take(self, match: tuple[float, str, int, int, Outline]) -> None:
        insort(self.matches, match)
        del self.matches[self.top :]
        if len(self.matches) == self.top:
            self.worst, self.last = self.matches[-1][:2]


def draw_formula(name: str, expression: Expression, where: str) -> tuple[KnownFormula, Outline]:
    """Return a known formula with its outline, as an index takes it."""
    return KnownFormula.of(name, expression, where), draw_outline(expression.core)
