"""Helpers of all kernels: read a row, turn non-finite numbers into NaN, copy between tiles and rows.

A kernel fills the rows or the columns ``[lo, hi)`` of ``out``, reads arrays that are C-contiguous, and writes nothing
else: two threads may fill two parts of one array. Missing values are NaN, and so are infinite results.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .kernel_cache import kernel

Array = NDArray[np.float32]
Sums = NDArray[np.float64]
Members = NDArray[np.bool_]
Flags = NDArray[np.bool_]
Places = NDArray[np.int64]
Codes = NDArray[np.int16]

Flat = NDArray[np.float32]
"""Values of a whole panel, tile after tile (see `tiles`)."""

NAN = np.float32(np.nan)
FLOAT32_ZERO = np.float32(0.0)
FLOAT32_ONE = np.float32(1.0)
FLOAT32_MAX = np.float32(np.finfo(np.float32).max)
FLOAT32_EPSILON = float(np.finfo(np.float32).eps)
"""A window whose standard deviation is below this share of its mean counts as constant: it is float32 rounding."""


@kernel
def row(values: Array, day: int) -> Array:
    """Return a day's row; an array of a single row serves every day (numbers are passed that way)."""
    day_row: Array = values[day if values.shape[0] > 1 else 0]
    return day_row


@kernel
def finite(value: float | np.float32) -> np.float32:
    """Return the value as float32, NaN where it is infinite, too large, or missing."""
    narrow = np.float32(value)
    return narrow if abs(narrow) <= FLOAT32_MAX else NAN


@kernel
def group_count(codes: Codes) -> int:
    """Return the number of group codes up to the largest, at least one."""
    return max(int(codes.max()), 0) + 1 if codes.size else 1


@kernel
def is_constant(squares: float, mean: float, count: float) -> bool:
    """Return whether a sum of squared deviations is rounding noise around its mean."""
    return squares <= count * (mean * FLOAT32_EPSILON) ** 2


@kernel
def no_flags(cells: int) -> Flags:
    """Return unset flags for some cells; their number is rounded up to a multiple of eight."""
    return np.zeros((cells + 7) // 8 * 8, np.bool_)


@kernel
def flagged(flags: Flags, places: Places) -> int:
    """Write the places of the set flags and return their number; eight flags are tested at a time."""
    words, count = flags.view(np.uint64), 0
    for k in range(words.size):
        if words[k] != 0:
            for j in range(8 * k, 8 * k + 8):
                if flags[j]:
                    places[count] = j
                    count += 1
    return count


@kernel
def gather(block: Array, flat: Flat, first: int, days: int, width: int) -> None:
    """Fill a block of whole rows from the tiles."""
    names = block.shape[1]
    for lo in range(0, names, width):
        wide = min(width, names - lo)
        for k in range(block.shape[0]):
            start = days * lo + (first + k) * wide
            line, o = flat[start : start + wide], block[k, lo : lo + wide]
            for j in range(wide):
                o[j] = line[j]


@kernel
def scatter(flat: Flat, block: Array, first: int, days: int, width: int) -> None:
    """Copy a block of whole rows back into the tiles."""
    names = block.shape[1]
    for lo in range(0, names, width):
        wide = min(width, names - lo)
        for k in range(block.shape[0]):
            start = days * lo + (first + k) * wide
            o, line = flat[start : start + wide], block[k, lo : lo + wide]
            for j in range(wide):
                o[j] = line[j]


@kernel
def emit(out: Array, values: Array, member: Members, first_day: int, first_name: int) -> None:
    """Copy a tile, a block of rows, or one row for all days to its place in a result; NaN outside the universe."""
    days = values.shape[0] if values.shape[0] > 1 else out.shape[0] - first_day
    for day in range(days):
        line = values[day if values.shape[0] > 1 else 0]
        stop = first_name + line.size
        o, m = out[first_day + day, first_name:stop], member[first_day + day, first_name:stop]
        for j in range(line.size):
            o[j] = line[j] if m[j] else NAN
