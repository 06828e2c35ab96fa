"""Does it say what the library already says? Absolute rank correlation of values, on every fifth search day.

`find_closest` compares with everything and is what the words mean. `LibraryValues` gives the same answers from sketches: only
those that may be the most alike are computed and compared in full.
"""

from __future__ import annotations

import hashlib
from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ... import factors
from ...factors import Expression, RowOrder, order_rows, row_rank_correlation
from ...ledger import LibraryRow, compute_digest
from ..values.computing import Computes
from ..windows import Window
from . import sketch
from .sketch import SKETCH_STEP_DAYS, Sketcher, SketchStore, estimate_correlations

Values = NDArray[np.float32]
REDUNDANCY_FOLDER = "redundancy"
CORRELATION_FLOOR = 0.3
"""Correlations below it are told as they are, but which of them is the largest is not looked for: nobody asks, and among
thousands that are all next to nothing only computing them all would tell."""
SMALL_LIBRARY_FACTORS = 200
"""Factors in a library for which that is looked for all the same."""
SKETCHES_PER_WRITE = 64
"""Factors that are sketched before they are written down: a crash loses no more."""


@dataclass(frozen=True)
class Overlap:
    """The library factor that a candidate is most like, and how much; `rank_correlation` is signed."""

    factor_id: str
    rank_correlation: float


def rank_correlation(a: Values, b: Values, window: Window) -> float:
    """Return the mean daily rank correlation of two factors over every fifth day of a window.

    Parameters
    ----------
    a, b
        Values ``[T, N]`` of the panel's days, NaN missing.
    window
        Every fifth of its days is compared.

    Returns
    -------
    float
        In [-1, 1]; days without a correlation are left out, and 0 where there is no other.
    """
    return _mean(_order_days(a, window), _order_days(b, window))


def _order_days(values: Values, window: Window) -> RowOrder:
    return order_rows(np.ascontiguousarray(window.cut(values)[::SKETCH_STEP_DAYS]))


def _mean(a: RowOrder, b: RowOrder) -> float:
    daily = row_rank_correlation(a, b)
    return float(np.nanmean(daily)) if not np.isnan(daily).all() else 0.0


def find_closest(values: Values, library: Mapping[str, Values], window: Window) -> Overlap | None:
    """Return the library factor with the largest absolute rank correlation, None for an empty library."""
    found = [Overlap(name, rank_correlation(values, known, window)) for name, known in sorted(library.items())]
    return max(found, key=lambda one: abs(one.rank_correlation), default=None)


class LibraryValues:
    """What the library's factors say on one panel: sketches of all, values of those that are asked for.

    Rows that the panel lacks a column or grouping for are left out. Sketches are made at the first question, once for the days of
    the search window, and kept in the workspace.
    """

    def __init__(
        self, engine: Computes, window: Window, workspace: Path, read: Callable[[LibraryRow], Expression],
        rows: Iterable[LibraryRow] = (),
    ) -> None:  # fmt: skip
        self._engine, self._window, self._workspace, self._read = engine, window, workspace, read
        self._rows: dict[str, LibraryRow] = {}
        self.show(rows)

    def show(self, rows: Iterable[LibraryRow]) -> None:
        """Add rows to what is compared with."""
        for row in rows:
            if row.factor_id not in self._rows and self._can_compute(row):
                self._rows[row.factor_id] = row

    def _can_compute(self, row: LibraryRow) -> bool:
        fields = row.sheet.get("fields")
        needed = set(self._read(row).fields) if fields is None else set(fields)
        return needed <= {*self._engine.panel.fields, *self._engine.panel.groups}

    def __len__(self) -> int:
        """Count the factors."""
        return len(self._rows)

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the factors, sorted."""
        return iter(sorted(self._rows))

    def shape(self, window: Window) -> tuple[int, int]:
        """Return days of a window and names of the panel."""
        return window.days, self._engine.panel.names

    def values(self, name: str) -> Values:
        """Compute a factor, `[T, N]`, NaN outside the universe."""
        return self._engine.evaluate([self._read(self._rows[name])])[0]

    def stream(self, names: Sequence[str]) -> Iterator[tuple[str, Values]]:
        """Compute factors, a few at a time, in order."""
        return zip(names, self._engine.stream(self._read(self._rows[name]) for name in names), strict=True)

    def direction(self, name: str) -> int:
        """Return the direction in which a factor is held: the sign of its RankIC on the search days it was found on."""
        return -1 if (self._rows[name].sheet.get("rank_ic") or 0.0) < 0 else 1

    @cached_property
    def folder(self) -> Path:
        """Return where what is known of this panel's search days is kept."""
        window = self._window
        data = self._engine.panel.rows(0, window.stop).digest  # of no later day: one more changes nothing here
        seen: dict[str, str | int] = {"data": data, "start": window.start, "form": sketch_code_digest()}
        return self._workspace / REDUNDANCY_FOLDER / compute_digest(seen)[:20]

    @cached_property
    def _sketcher(self) -> Sketcher:
        return Sketcher(self._engine.panel.universe, self._window)

    @cached_property
    def _store(self) -> SketchStore:
        return SketchStore(self.folder)

    def sketched(self) -> SketchStore:
        """Return the sketches of all, after making those that are not there yet."""
        lacking = sorted(set(self._rows) - set(self._store.names))
        if lacking:
            self._store.read()
            lacking = sorted(set(lacking) - set(self._store.names))
        for first in range(0, len(lacking), SKETCHES_PER_WRITE):
            group = self.stream(lacking[first : first + SKETCHES_PER_WRITE])
            self._store.add({name: self._sketcher.sketch(values) for name, values in group})
        return self._store

    def closest(self, values: Values, but: str = "", floor: float = CORRELATION_FLOOR) -> Overlap | None:
        """Return the factor with the largest absolute rank correlation, None if there is none; see `nearest`."""
        return next(iter(self.nearest(values, 1, but, floor)), None)

    def beyond(self, values: Values, limit: float) -> Overlap | None:
        """Return the factor with the largest absolute rank correlation if it is above a limit; only such ones are looked for."""
        found = next(iter(self.nearest(values, 1, floor=limit, few=0)), None)
        return found if found and abs(found.rank_correlation) > limit else None

    def nearest(
        self,
        values: Values,
        top: int,
        but: str = "",
        floor: float = CORRELATION_FLOOR,
        few: int = SMALL_LIBRARY_FACTORS,
    ) -> list[Overlap]:
        """Return the factors with the largest absolute rank correlations, largest first, ties by name.

        Parameters
        ----------
        values
            `[T, N]`, NaN outside the universe.
        top
            How many.
        but
            The name of a factor to leave out: the one that is asked about.
        floor
            Where no correlation reaches it, the answer is the factors that sketches find likeliest; 0 for a library of
            at most `few`.

        Notes
        -----
        Sketches tell how large each correlation can be. Those that may be among the top are computed and compared in
        full, likeliest first, until none that is left can reach the last of them; so the answer is that of `find_closest`.
        Every correlation that is returned was computed in full.
        """
        others = sorted(set(self._rows) - {but})
        floor = floor if len(others) > few else 0.0
        mine = self._sketcher.sketch(values)
        if not others or mine.share == 0:  # no day on which it could be correlated with anything
            return [Overlap(name, 0.0) for name in others[:top]]
        store = self.sketched()
        guessed = estimate_correlations(mine, store.sketches)
        most = guessed.most
        own = [at for at, name in enumerate(store.names) if name in self._rows and name != but]
        likeliest = sorted(own, key=lambda at: (-abs(guessed.rank_correlation[at]), store.names[at]))
        order, found = _order_days(values, self._window), list[tuple[float, str, float]]()
        for at in likeliest:
            if len(found) == top and most[at] < max(-found[-1][0], floor):
                continue
            name = store.names[at]
            exact = _mean(order, _order_days(self.values(name), self._window))
            insort(found, (-abs(exact), name, exact))
            del found[top:]
        return [Overlap(name, exact) for _, name, exact in found]


@cache
def sketch_code_digest() -> str:
    """Return a digest of the code that decides a factor's values and its sketch: those of other code are made anew."""
    package = Path(str(factors.__file__)).parent
    sources = [*package.rglob("*.py"), *package.rglob("*.lark"), Path(str(sketch.__file__))]
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sorted(sources))).hexdigest()
