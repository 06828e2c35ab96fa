"""When two answers of a factor are the same."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["REORDERED", "TOLERANCE", "Cell", "first_change", "first_difference"]

TOLERANCE = 1e-9
"""Values x and y are the same if |x - y| <= TOLERANCE * (1 + |x|): sums may be taken in another order."""
REORDERED = 1e-4
"""But names may not change places: 1 - rank correlation of a day may be this, or that of two neighbours that swap."""


class Cell(NamedTuple):
    """A place in the panel: row of the day, column of the name."""

    day: int
    name: int


def first_change(expected: NDArray[np.float64], got: NDArray[np.float64]) -> Cell | None:
    """Return the first cell of `got` that is not the same as expected, days first, then names; None if all are.

    Parameters
    ----------
    expected, got
        `[T, N]` and `[t, N]` with t <= T. A missing value is the same as a missing value only. A day on which each value
        is nearly the same, and their order is not, counts as changed: scores look at the order alone, and differences
        too small for the tolerance can hold one.
    """
    expected = expected[: len(got)]
    if _equal(expected, got):
        return None
    near = np.abs(expected - got) <= TOLERANCE * (1.0 + np.abs(expected))
    return _first(~(near | (np.isnan(expected) & np.isnan(got)))) or _first_reordered(expected, got)


def first_difference(one: NDArray[np.float64], other: NDArray[np.float64]) -> Cell | None:
    """Return the first cell whose bits differ, days first, then names; None if none does. Missing is missing."""
    if _equal(one, other):
        return None
    same = (one.view(np.int64) == other.view(np.int64)) | (np.isnan(one) & np.isnan(other))
    return _first(~same)


def _equal(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    """Tell whether all bits are the same, which is quicker than to compare numbers."""
    return bool(np.array_equal(one.view(np.int64), other.view(np.int64)))


def _first_reordered(expected: NDArray[np.float64], got: NDArray[np.float64]) -> Cell | None:
    """Return the first day whose names stand in another order, and the first whose value changed at all."""
    for day in np.flatnonzero((expected.view(np.int64) != got.view(np.int64)).any(axis=1)):
        known = np.flatnonzero(~np.isnan(expected[day]))
        moved = _places(expected[day, known]) - _places(got[day, known])
        count = float(len(known))
        if float(moved @ moved) > max(2.0, REORDERED * count * (count**2 - 1) / 6):
            return Cell(int(day), int(known[(expected[day, known] != got[day, known]).argmax()]))
    return None


def _places(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the place of each value in their order; equal ones stand as they are given."""
    places = np.empty(len(values))
    places[np.argsort(values, kind="stable")] = np.arange(len(values))
    return places


def _first(changed: NDArray[np.bool_]) -> Cell | None:
    place = int(changed.argmax())
    return Cell(*divmod(place, changed.shape[1])) if changed.size and changed.flat[place] else None
