"""Tell whether two numbers of formulas are near: a distance has no edges to step over, as buckets have."""

from __future__ import annotations

import functools
import math
from operator import sub

Numbers = tuple[float, ...]
NumberCodes = tuple[int, ...]
"""What nearness is measured on, one for each number; see `code`."""

CODE_SCALE = 100.0
MAX_CODE_DISTANCE = 52
"""Two numbers are near if their logarithms, in hundredths, differ by no more: up to two thirds more, as 5 is to 3."""
OFFSET = 4000
"""Added to every size, so that the logarithm of a small number is above 0 and a sign can stand before it."""
MAX_CODED_NUMBER, MIN_CODED_NUMBER = 1e15, 1e-9


@functools.lru_cache(maxsize=4096)
def code(value: float) -> int:
    """Return the logarithm of a number in hundredths, with its sign; 0 for what is next to nothing."""
    size = abs(value)
    if size <= MIN_CODED_NUMBER:
        return 0
    steps = OFFSET + round(CODE_SCALE * math.log(min(size, MAX_CODED_NUMBER)))
    return steps if value > 0 else -steps


def is_near(a: NumberCodes, b: NumberCodes) -> bool:
    """Tell whether as many numbers are near each other, one by one."""
    return len(a) == len(b) and max(map(abs, map(sub, a, b)), default=0) <= MAX_CODE_DISTANCE
