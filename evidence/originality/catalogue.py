"""Is it new? The known formulas that a formula is most like: of the library, in print, or earlier in the same batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...factors import Expression
from ...factors.similarity import KnownFormula, Likeness, compare_formulas, outline, rank_likeness
from ...ledger import LibraryRow
from .inverted_index import InvertedIndex, MemoryIndex, Selection, search_indexes
from .published import draw_formula, read_published
from .subtree_index import SubtreeIndex

__all__ = [
    "Catalogue",
    "KnownFormula",
    "KnownLibrary",
    "Likeness",
    "SubtreeIndex",
    "compare_formulas",
    "nearest",
    "read_published",
]

ORIGINALITY_FOLDER, LIBRARY = "originality", "the library"


@dataclass(frozen=True)
class Catalogue:
    """Everything that a formula is compared with.

    Attributes
    ----------
    shelves : sequence of Shelf
        What is searched by subtree: published factors, the library.
    batch : sequence of Known
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
        found = search_indexes(outline(expression.core), self.shelves, top)
        one_by_one = [like for like in (compare_formulas(expression, known) for known in self.batch) if like.ratio > 0]
        return rank_likeness([*found, *one_by_one], top)


def nearest(expression: Expression, against: Catalogue | Iterable[KnownFormula], top: int = 1) -> list[Likeness]:
    """Return the known formulas most like one, most alike first, ties by name; only those that share something."""
    catalogue = against if isinstance(against, Catalogue) else Catalogue(batch=tuple(against))
    return catalogue.nearest(expression, top)


class KnownLibrary:
    """The library as one run sees it: rows that it is shown, found through the workspace's index.

    The index remembers every formula that any run has shown it, so each is read and drawn once.
    """

    def __init__(
        self, workspace: Path, read: Callable[[LibraryRow], Expression], rows: Iterable[LibraryRow] = ()
    ) -> None:
        self._folder, self._read = workspace / ORIGINALITY_FOLDER, read
        self._names: set[str] = set()
        self.shelves: tuple[InvertedIndex, ...] = ()
        self.show(rows)

    def show(self, rows: Iterable[LibraryRow]) -> None:
        """Add rows to what is seen."""
        fresh = [row for row in rows if row.factor_id not in self._names]
        if not fresh:
            return
        with SubtreeIndex(self._folder) as index:
            lacking = [row for row in fresh if row.factor_id not in index]
            index.add(draw_formula(row.factor_id, self._read(row), LIBRARY) for row in lacking)
            self._names |= {row.factor_id for row in fresh}
            self.shelves = tuple(Selection(shelf, self._names) for shelf in index.shelves)
