"""Compare two answers of a factor, and round values to the precision in which they are used.

Honest code may add in another order when it is given fewer days, so its last digits may differ. But differences below
a tolerance can still order symbols, and scores depend on the order only. So values are rounded to single precision, and
the rounded values must have the same order, with the same ties: no information can hide below the tolerance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

TOLERANCE = 1e-9
"""Values x and y of a day are the same if |x - y| <= TOLERANCE * max(|x|, scale), the scale being the day's."""
MAX_RANK_NOISE = 1e-4
"""Largest 1 - rank correlation of a day, in full precision, that counts as noise; more is a look-ahead."""
VALUE_BITS = 24
"""Bits of single precision, which the rest of the program keeps of a value."""
MIN_FLOAT32, MAX_FLOAT32 = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)
"""Range of the normal numbers of single precision."""
SCALE_QUANTILE = 0.9
"""A day's scale is this quantile of |x|, so that one huge value does not blur the others."""

Frame = NDArray[np.float64]


class Cell(NamedTuple):
    """A place in the panel: row of the day, column of the symbol."""

    day: int
    name: int


def round_values(values: Frame) -> Frame:
    """Return values in the precision of the result: single precision, and no finer than that of their day's scale.

    Parameters
    ----------
    values
        `[T, N]`. Each row is rounded by itself, so that a day alone gives the same bits. Values near zero on a day of
        large ones lose the digits that are noise there; values beyond the range of single precision become NaN.
    """
    size = np.maximum(np.abs(values), np.maximum(_compute_scale(values), MIN_FLOAT32)[:, None])
    exponent = np.frexp(size)[1]
    # + 0.0 removes minus zero, and the assignment gives every NaN the same bits.
    rounded: Frame = np.ldexp(np.rint(np.ldexp(values, VALUE_BITS - exponent)), exponent - VALUE_BITS) + 0.0
    rounded[~(np.abs(rounded) <= MAX_FLOAT32)] = np.nan
    return rounded


def find_first_change(expected: Frame, actual: Frame) -> Cell | None:
    """Return the first cell of `actual` that differs from `expected`, by day, then symbol; None if none does.

    Parameters
    ----------
    expected, actual
        `[T, N]` and `[t, N]` with t <= T. NaN equals only NaN. A day on which each value is the same within the
        tolerance counts as changed if the rounded values have another order or other ties; also if the full values are
        shuffled, which shows a look-ahead even where rounding removes it.
    """
    expected = expected[: len(actual)]
    if _is_bitwise_equal(expected, actual):
        return None
    days = np.flatnonzero((expected.view(np.int64) != actual.view(np.int64)).any(axis=1))
    one, other = expected[days], actual[days]
    allowed = TOLERANCE * np.maximum(np.abs(one), _compute_scale(one)[:, None])
    wrong = ~((np.abs(one - other) <= allowed) | (np.isnan(one) & np.isnan(other)))
    wrong |= _find_reordered(round_values(one), round_values(other))[:, None] & (one != other) & ~np.isnan(one)
    wrong |= _find_shuffled(one, other)[:, None] & (one != other) & ~np.isnan(one)
    cell = _find_first_cell(wrong)
    return cell and Cell(int(days[cell.day]), cell.name)


def find_first_difference(one: Frame, other: Frame) -> Cell | None:
    """Return the first cell whose bits differ, by day, then symbol; None if none does. Any NaN equals any other."""
    if _is_bitwise_equal(one, other):
        return None
    same = (one.view(np.int64) == other.view(np.int64)) | (np.isnan(one) & np.isnan(other))
    return _find_first_cell(~same)


def _is_bitwise_equal(one: Frame, other: Frame) -> bool:
    """Return whether all bits are the same, which is faster than a comparison of numbers."""
    return bool(np.array_equal(one.view(np.int64), other.view(np.int64)))


def _compute_scale(values: Frame) -> Frame:
    """Return each day's `SCALE_QUANTILE` of |x| over its known values, `[T]`; 0 where none is known."""
    known = np.isfinite(values).sum(axis=1)
    sizes = np.sort(np.where(np.isfinite(values), np.abs(values), np.inf), axis=1)
    place = np.maximum(np.ceil(SCALE_QUANTILE * known).astype(np.int64) - 1, 0)
    scale: Frame = np.where(known > 0, np.take_along_axis(sizes, place[:, None], axis=1)[:, 0], 0.0)
    return scale


def _find_reordered(one: Frame, other: Frame) -> NDArray[np.bool_]:
    """Return the days on which order, ties or missing cells of the two differ, `[T]`."""
    order = np.argsort(one, axis=1)
    first, second = (np.take_along_axis(values, order, axis=1) for values in (one, other))
    steps = (np.nan_to_num(np.sign(np.diff(values, axis=1))) for values in (first, second))
    turned: NDArray[np.bool_] = (next(steps) != next(steps)).any(axis=1)
    turned |= (np.isnan(one) != np.isnan(other)).any(axis=1)
    return turned


def _find_shuffled(one: Frame, other: Frame) -> NDArray[np.bool_]:
    """Return the days on which the order in full precision differs by more than a swap of neighbours, `[T]`."""
    moved = np.square(_compute_places(one) - _compute_places(other)).sum(axis=1)
    count = np.isfinite(one).sum(axis=1).astype(np.float64)
    shuffled: NDArray[np.bool_] = moved > np.maximum(2.0, MAX_RANK_NOISE * count * (count**2 - 1.0) / 6.0)
    return shuffled


def _compute_places(values: Frame) -> Frame:
    """Return the place of each value in the order of its day; ties by column, NaN last."""
    return np.argsort(np.argsort(values, axis=1, kind="stable"), axis=1).astype(np.float64)


def _find_first_cell(changed: NDArray[np.bool_]) -> Cell | None:
    place = int(changed.argmax())
    return Cell(*divmod(place, changed.shape[1])) if changed.size and changed.flat[place] else None
