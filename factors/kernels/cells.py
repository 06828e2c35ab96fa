"""What every kernel shares: how a row is read, and what becomes of a number that is none.

A kernel fills the rows or the columns ``[lo, hi)`` of ``out``, reads arrays that are C-contiguous, and touches nothing
else: two threads may fill two parts of one array. Missing is NaN, and an infinite result is missing too.
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

NAN = np.float32(np.nan)
FLOAT32_ZERO = np.float32(0.0)
FLOAT32_ONE = np.float32(1.0)
FLOAT32_MAX = np.float32(np.finfo(np.float32).max)
FLOAT32_EPSILON = float(np.finfo(np.float32).eps)
"""A window whose standard deviation is below this share of its mean is constant: float32 cannot tell it from one."""


@kernel
def row(values: Array, day: int) -> Array:
    """Return a day's row; an array of a single row serves every day (numbers are handed over like that)."""
    found: Array = values[day if values.shape[0] > 1 else 0]
    return found


@kernel
def finite(value: float | np.float32) -> np.float32:
    """Return the value as float32, NaN where it is infinite, too large, or missing."""
    narrow = np.float32(value)
    return narrow if abs(narrow) <= FLOAT32_MAX else NAN


@kernel
def group_count(codes: Codes) -> int:
    """Return how many groups there may be, at least one."""
    return max(int(codes.max()), 0) + 1 if codes.size else 1


@kernel
def is_constant(squares: float, mean: float, count: float) -> bool:
    """Tell whether a sum of squared deviations is rounding noise around its mean."""
    return squares <= count * (mean * FLOAT32_EPSILON) ** 2


@kernel
def no_flags(cells: int) -> Flags:
    """Return flags for some cells, none set; their number is made a multiple of eight."""
    return np.zeros((cells + 7) // 8 * 8, np.bool_)


@kernel
def flagged(flags: Flags, places: Places) -> int:
    """Write the places of the flags that are set, and count them; eight are looked at at a time."""
    words, found = flags.view(np.uint64), 0
    for k in range(words.size):
        if words[k] != 0:
            for j in range(8 * k, 8 * k + 8):
                if flags[j]:
                    places[found] = j
                    found += 1
    return found
