"""Move values between tiles, whole rows and results (see `tiles`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .cells import NAN, Array, Members
from .kernel_cache import kernel

Flat = NDArray[np.float32]


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
    """Put a block of whole rows back into the tiles."""
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
    """Copy a tile, a block of rows, or one row for all days to its place in a result; missing outside the universe."""
    days = values.shape[0] if values.shape[0] > 1 else out.shape[0] - first_day
    for day in range(days):
        line = values[day if values.shape[0] > 1 else 0]
        stop = first_name + line.size
        o, m = out[first_day + day, first_name:stop], member[first_day + day, first_name:stop]
        for j in range(line.size):
            o[j] = line[j] if m[j] else NAN
