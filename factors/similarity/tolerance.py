"""Tell whether two numbers of formulas are near: a distance has no edges to step over, as buckets have."""

from __future__ import annotations

import functools
import math
from operator import sub

Numbers = tuple[float, ...]
Codes = tuple[int, ...]
"""What nearness is measured on, one for each number; see `code`."""

STEP = 100.0
NEAR = 52
"""Two numbers are near if their logarithms, in hundredths, differ by no more: up to two thirds more, as 5 is to 3."""
OFFSET = 4000
"""Added to every size, so that the logarithm of a small number is above 0 and a sign can stand before it."""
LARGEST, SMALLEST = 1e15, 1e-9


@functools.lru_cache(maxsize=4096)
def code(value: float) -> int:
    """Return the logarithm of a number in hundredths, with its sign; 0 for what is next to nothing."""
    size = abs(value)
    if size <= SMALLEST:
        return 0
    steps = OFFSET + round(STEP * math.log(min(size, LARGEST)))
    return steps if value > 0 else -steps


def near(a: Codes, b: Codes) -> bool:
    """Tell whether as many numbers are near each other, one by one."""
    return len(a) == len(b) and max(map(abs, map(sub, a, b)), default=0) <= NEAR
