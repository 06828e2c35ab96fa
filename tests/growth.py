"""Whether work grows with the length of its input only: measured against itself, so that no machine is too slow."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

__all__ = ["linear"]

LONGER = 8
"""How many times longer the second input is; twice a quadratic cost would be 64 times as much work."""
TRIES = 6
"""Another load, or a full cache, makes some tries longer and none shorter."""


def linear(work: Callable[[str], object], piece: str, length: int) -> bool:
    """Tell whether text that is eight times longer takes less than 24 times the work: quadratic work takes 64 times."""
    short, long = (piece * (size // len(piece)) for size in (length, LONGER * length))
    least_short = least_long = float("inf")
    for _ in range(TRIES):
        least_short, least_long = min(least_short, spent(work, short)), min(least_long, spent(work, long))
        if least_long < 3 * LONGER * least_short:
            return True
    return False


def spent(work: Callable[[str], object], text: str) -> float:
    """Return the processor's seconds for one call; the collector would walk through all objects of the whole suite."""
    gc.disable()
    try:
        began = time.thread_time()
        work(text)
        return time.thread_time() - began
    finally:
        gc.enable()
