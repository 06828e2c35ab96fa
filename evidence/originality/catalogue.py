"""Is it new? The known formulas that a formula is most like: of the library, published, or earlier in the same batch.

Formulas are found through an inverted index from the hash of a subtree to the formulas that contain it, smallest first, then
by name. `MemoryIndex` is the index in memory; `subtree_index.py` has the one on disk.
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
"""As many numbers of a subtree are kept beside its hash; the others are looked up in the formula."""
COUNT_BITS = 4

Posting = tuple[int, NumberCodes]
"""The key of a subtree, and its first numbers."""


@dataclass(frozen=True)
class Catalogue:
    """Everything that a formula is compared with.

    Attributes
    ----------
    shelves : sequence of InvertedIndex
        What is searched by subtree: published factors, the library.
    batch : sequence of KnownFormula
        What is compared one by one: the few that came before in the same batch.
    """

    shelves: Sequence[InvertedIndex] = ()
    batch: Sequence[KnownFormula] = ()

    @classmethod
    def of(cls, formulas: Iterable[tuple[str, Expression, str]]) -> Catalogue:
        """Return formulas, each with its name and where it stands, ready to be searched."""
        return cls((MemoryIndex(draw_formula(*each) for each in formulas),))

    def with_batch(self, batch: Iterable[KnownFormula]) -> Catalogue:
        """Return the same with further formulas."""
        return replace(self, batch=(*self.batch, *batch))

    def nearest(self, expression: Expression, top: int = 1) -> list[Likeness]:
        """Return the most alike, most alike first, ties by name; only those that share something."""
        found = search_indexes(draw_outline(expression.core), self.shelves, top)
        one_by_one = [like for like in (compare_formulas(expression, known) for known in self.batch) if like.ratio > 0]
        return rank_likeness([*found, *one_by_one], top)


def find_nearest(expression: Expression, against: Catalogue | Iterable[KnownFormula], top: int = 1) -> list[Likeness]:
    """Return the known formulas most like one, most alike first, ties by name; only those that share something."""
    catalogue = against if isinstance(against, Catalogue) else Catalogue(batch=tuple(against))
    return catalogue.nearest(expression, top)


class InvertedIndex(Protocol):
    """A set of known formulas that can be searched by subtree; a formula is named by its place."""

    def find(self, key: int, codes: NumberCodes) -> Iterator[tuple[int, int]]:
        """Yield size and place of each formula that seems to hold a subtree, smallest first, then by name."""

    def name(self, place: int) -> str:
        """Return the name of a formula."""

    def holds(self, place: int, part: Outline) -> bool:
        """Tell whether a subtree really stands in a formula, with numbers that are near."""

    def known(self, place: int) -> KnownFormula:
        """Return a formula."""


def posting(part: Outline) -> Posting:
    """Return under what a subtree is found: 60 bits of its hash, how many numbers it has, and the numbers."""
    count = min(len(part.codes), MAX_POSTING_CODES)
    return int.from_bytes(part.digest, "little") >> COUNT_BITS << COUNT_BITS | count, part.codes[:MAX_POSTING_CODES]


def postings(whole: Outline) -> list[Posting]:
    """Return the distinct subtrees of a formula."""
    return list(dict.fromkeys(map(posting, list_subtrees(whole))))


class MemoryIndex:
    """Formulas in memory, to which one may be added at any time."""

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
        """Yield the formulas as they came."""
        return iter(self._all)

    def __contains__(self, name: str) -> bool:
        """Tell whether there is a formula of this name."""
        return name in self._names

    def add(self, known: KnownFormula, parts: Iterable[Posting]) -> None:
        """Put a formula on the shelf, under each of its subtrees."""
        place = len(self._all)
        self._all.append(known)
        self._names.add(known.name)
        for key, codes in parts:
            insort(self._lists.setdefault(key, []), (known.size, known.name, place, codes))

    def find(self, key: int, codes: NumberCodes) -> Iterator[tuple[int, int]]:
        """Yield size and place of each formula that seems to hold a subtree, smallest first, then by name."""
        for size, _, place, own in self._lists.get(key, ()):
            if is_near(own, codes):
                yield size, place

    def name(self, place: int) -> str:
        """Return the name of a formula."""
        return self._all[place].name

    def holds(self, place: int, part: Outline) -> bool:
        """Tell whether a subtree really stands in a formula, with numbers that are near."""
        return self._all[place].holds(part)

    def known(self, place: int) -> KnownFormula:
        """Return a formula."""
        return self._all[place]


class Selection:
    """Those formulas of a shelf that have certain names."""

    def __init__(self, shelf: InvertedIndex, names: Collection[str]) -> None:
        self._shelf, self._names = shelf, names

    def find(self, key: int, codes: NumberCodes) -> Iterator[tuple[int, int]]:
        """Yield size and place of each formula that seems to hold a subtree, smallest first, then by name."""
        return (found for found in self._shelf.find(key, codes) if self.name(found[1]) in self._names)

    def name(self, place: int) -> str:
        """Return the name of a formula."""
        return self._shelf.name(place)

    def holds(self, place: int, part: Outline) -> bool:
        """Tell whether a subtree really stands in a formula, with numbers that are near."""
        return self._shelf.holds(place, part)

    def known(self, place: int) -> KnownFormula:
        """Return a formula."""
        return self._shelf.known(place)


def search_indexes(whole: Outline, shelves: Sequence[InvertedIndex], top: int = 1) -> list[Likeness]:
    """Return the formulas most like one, most alike first, ties by name; only those that share something.

    The answer is that of comparing all. Subtrees are tried from the largest down, and the formulas that hold one from the
    smallest up, so ratios only fall: a list is left where its next ratio is below the last one found, and so is the search
    where no smaller subtree can reach it. A formula is taken only if the subtree stands in it: hashes alone decide nothing.
    """
    found = _Best(whole, top)
    for part in list_subtrees(whole):
        if not found.may_reach(part):
            break
        key, codes = posting(part)
        for number, shelf in enumerate(shelves):
            found.look(part, number, shelf, shelf.find(key, codes))
    return [Likeness(shelves[number].known(place), -ratio, part) for ratio, _, number, place, part in found.kept]


class _Best:
    """The best that were found so far."""

    def __init__(self, whole: Outline, top: int) -> None:
        self.whole, self.top = whole, top
        self.kept: list[tuple[float, str, int, int, Outline]] = []
        self.seen: set[tuple[int, int]] = set()
        self.worst, self.last = 1.0, ""
        """What a further one must stay below: minus its ratio, then its name."""

    def may_reach(self, part: Outline) -> bool:
        """Tell whether a formula that is this subtree and nothing else would be among the best."""
        return -2.0 * part.size / (self.whole.size + part.size) <= self.worst

    def look(self, part: Outline, number: int, shelf: InvertedIndex, found: Iterator[tuple[int, int]]) -> None:
        """Take from one shelf what shares a subtree."""
        twice, own, seen = -2.0 * part.size, self.whole.size, self.seen
        for size, place in found:
            ratio = twice / (own + size)
            if ratio > self.worst:
                return
            if (number, place) in seen:
                continue
            name = shelf.name(place)
            if ratio == self.worst and name >= self.last:
                return
            if shelf.holds(place, part):
                seen.add((number, place))
                self._take((ratio, name, number, place, part))

    def _take(self, found: tuple[float, str, int, int, Outline]) -> None:
        insort(self.kept, found)
        del self.kept[self.top :]
        if len(self.kept) == self.top:
            self.worst, self.last = self.kept[-1][:2]


def draw_formula(name: str, expression: Expression, where: str) -> tuple[KnownFormula, Outline]:
    """Return a known formula with its outline, as shelves take them."""
    return KnownFormula.of(name, expression, where), draw_outline(expression.core)
