"""Redundancy with the library: the absolute rank correlation of values on every fifth search day.

`find_closest` compares with all factors and defines the result. `LibraryValues` gives the same results from sketches:
it computes and compares in full only the factors that may be the most correlated.
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
from ...ledger.files import make_folder
from ..values.computing import Computes
from ..windows import Window
from . import sketch
from .sketch import SKETCH_STEP_DAYS, Sketcher, SketchStore, estimate_correlations

Values = NDArray[np.float32]
REDUNDANCY_FOLDER = "redundancy"
CORRELATION_FLOOR = 0.3
"""Below it the largest correlation is not searched for: no rule needs it, and among thousands of factors that are all
nearly uncorrelated only computing every one would find it. Any correlation that is returned is still exact."""
SMALL_LIBRARY_FACTORS = 200
"""A library of at most so many factors is searched in full all the same."""
SKETCHES_PER_WRITE = 64
"""Sketches per write to the disk: a crash loses at most so many."""


@dataclass(frozen=True)
class Overlap:
    """A library factor and its signed rank correlation with a candidate."""

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
        In [-1, 1]; the mean over days that have a correlation, 0 where none has.
    """
    return _mean(_order_days(a, window), _order_days(b, window))


def _order_days(values: Values, window: Window) -> RowOrder:
    return order_rows(np.ascontiguousarray(window.cut(values)[::SKETCH_STEP_DAYS]))


def _mean(a: RowOrder, b: RowOrder) -> float:
    daily = row_rank_correlation(a, b)
    return float(np.nanmean(daily)) if not np.isnan(daily).all() else 0.0


def find_closest(values: Values, library: Mapping[str, Values], window: Window) -> Overlap | None:
    """Return the library factor with the largest absolute rank correlation; None for an empty library."""
    overlaps = [Overlap(name, rank_correlation(values, known, window)) for name, known in sorted(library.items())]
    return max(overlaps, key=lambda overlap: abs(overlap.rank_correlation), default=None)


class LibraryValues:
    """The library's factors on one panel: sketches of all, values on demand.

    Rows that need a column or grouping which the panel lacks are left out. Sketches are computed at the first query,
    once for the days of the search window, and stored in the workspace.
    """

    def __init__(
        self,
        engine: Computes,
        window: Window,
        workspace: Path,
        read: Callable[[LibraryRow], Expression],
        rows: Iterable[LibraryRow] = (),
    ) -> None:
        self._engine, self._window, self._workspace, self._read = engine, window, workspace, read
        self._rows: dict[str, LibraryRow] = {}
        self.show(rows)

    def show(self, rows: Iterable[LibraryRow]) -> None:
        """Add rows that the panel can compute."""
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
        """Return the values of a factor `[T, N]`, NaN outside the universe."""
        return self._engine.evaluate([self._read(self._rows[name])])[0]

    def stream(self, names: Sequence[str]) -> Iterator[tuple[str, Values]]:
        """Yield names and values `[T, N]` of factors, computed a few at a time, in order."""
        return zip(names, self._engine.stream(self._read(self._rows[name]) for name in names), strict=True)

    def direction(self, name: str) -> int:
        """Return the direction in which a factor is held: the sign of its RankIC on its own search days."""
        return -1 if (self._rows[name].sheet.get("rank_ic") or 0.0) < 0 else 1

    @cached_property
    def folder(self) -> Path:
        """Return the folder of the sketches of this panel's search days."""
        window = self._window
        data = self._engine.panel.rows(
            0, window.stop
        ).digest  # without later days: an extended panel keeps its sketches
        identity: dict[str, str | int] = {"data": data, "start": window.start, "form": sketch_code_digest()}
        return self._workspace / REDUNDANCY_FOLDER / compute_digest(identity)[:20]

    @cached_property
    def _sketcher(self) -> Sketcher:
        return Sketcher(self._engine.panel.universe, self._window)

    @cached_property
    def _store(self) -> SketchStore:
        return SketchStore(self.folder)

    def sketched(self) -> SketchStore:
        """Return the sketches of all factors, after adding the missing ones."""
        missing = sorted(set(self._rows) - set(self._store.names))
        if missing:
            self._store.read()
            missing = sorted(set(missing) - set(self._store.names))
        for first in range(0, len(missing), SKETCHES_PER_WRITE):
            group = self.stream(missing[first : first + SKETCHES_PER_WRITE])
            self._store.add({name: self._sketcher.sketch(values) for name, values in group})
        return self._store

    def pack_sketches(self) -> dict[str, bytes]:
        """Return the files of the sketches, after adding the missing ones."""
        if not self._rows:
            return {}
        self.sketched()
        return {path.name: path.read_bytes() for path in sorted(self.folder.iterdir())}

    def restore_sketches(self, packed: Mapping[str, bytes]) -> None:
        """Write packed sketches of the same factors on the same panel, and read them; the folder is not read again."""
        make_folder(self.folder)
        for name, body in packed.items():
            (self.folder / name).write_bytes(body)
        if self._rows:
            self.sketched()

    def closest(self, values: Values, but: str = "", floor: float = CORRELATION_FLOOR) -> Overlap | None:
        """Return the factor with the largest absolute rank correlation, None for an empty library; see `nearest`."""
        return next(iter(self.nearest(values, 1, but, floor)), None)

    def beyond(self, values: Values, limit: float) -> Overlap | None:
        """Return the factor with the largest absolute rank correlation if that is above a limit, else None."""
        closest = next(iter(self._find_nearest(values, 1, sorted(self._rows), limit, least=limit)), None)
        return closest if closest and abs(closest.rank_correlation) > limit else None

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
            Values of a factor `[T, N]`, NaN outside the universe.
        top
            Number of factors to return.
        but
            Name of a factor to leave out, usually the one that `values` are of.
        floor
            Where no correlation reaches it, the result is the factors with the largest estimates; 0 for a library of at
            most `few`.
        few
            Largest number of factors for which `floor` is 0.

        Notes
        -----
        Sketches bound each correlation. The factors that may be among the top are computed and compared in full,
        largest estimate first, until no other can reach the last of them, so the result equals that of `find_closest`.
        Every returned correlation is computed in full.
        """
        others = sorted(set(self._rows) - {but})
        return self._find_nearest(values, top, others, floor if len(others) > few else 0.0)

    def _find_nearest(
        self, values: Values, top: int, others: Sequence[str], floor: float, least: float = 0.0
    ) -> list[Overlap]:
        """Return the nearest of some factors; see `nearest`. Those that cannot reach `least` are not computed."""
        sketch = self._sketcher.sketch(values)
        if not others or sketch.share == 0:  # on no day can it be correlated
            return [Overlap(name, 0.0) for name in others[:top]]
        store = self.sketched()
        estimates = estimate_correlations(sketch, store.sketches)
        bounds = estimates.most
        wanted = set(others)
        places = [place for place, name in enumerate(store.names) if name in wanted and bounds[place] >= least]
        likeliest = sorted(places, key=lambda place: (-abs(estimates.rank_correlation[place]), store.names[place]))
        order, exact_matches = _order_days(values, self._window), list[tuple[float, str, float]]()
        for place in likeliest:
            if len(exact_matches) == top and bounds[place] < max(-exact_matches[-1][0], floor):
                continue
            name = store.names[place]
            exact = _mean(order, _order_days(self.values(name), self._window))
            insort(exact_matches, (-abs(exact), name, exact))
            del exact_matches[top:]
        return [Overlap(name, exact) for _, name, exact in exact_matches]


@cache
def sketch_code_digest() -> str:
    """Return a digest of the code that decides values and sketches; sketches of other code are not reused."""
    package = Path(str(factors.__file__)).parent
    sources = [*package.rglob("*.py"), *package.rglob("*.lark"), Path(str(sketch.__file__))]
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sorted(sources))).hexdigest()
