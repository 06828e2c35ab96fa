"""Numbers that must not be told, and whether a text tells one, however it is rounded."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?!\w)")
MOST_DIGITS = 9
"""A number given with more is read with nine: with six, one of a panel's thousands agrees by chance with one told."""
Sign = tuple[int, str]
"""How many significant digits a number is given with, and the number in one spelling: `(4, "1.234e-05")`."""


def floats(value: Any) -> Iterator[float]:
    """Yield every number of a JSON value that has a fraction: counts tell little and stand everywhere."""
    if isinstance(value, Mapping):
        for each in value.values():
            yield from floats(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from floats(each)
    elif isinstance(value, float) and math.isfinite(value) and value != round(value):
        yield value


def sign(value: float, digits: int) -> Sign:
    return digits, f"{abs(value):.{digits - 1}e}"


def signs(values: Iterable[float], fewest: int) -> set[Sign]:
    """Return the signs of numbers as they are, in percent and in basis points, with `fewest` digits or more."""
    spelled = [unit * value for value in values for unit in (1.0, 100.0, 10_000.0)]
    return {sign(value, digits) for value in spelled for digits in range(fewest, MOST_DIGITS + 1)}


def told(text: str, fewest: int) -> set[Sign]:
    """Return the numbers of a text that are given with so many digits or more; more than nine are read as nine."""
    found = set()
    for match in NUMBER.finditer(text):
        digits = len(re.split("[eE]", match.group())[0].lstrip("-0.").replace(".", ""))
        if digits >= fewest:
            found.add(sign(float(match.group()), min(digits, MOST_DIGITS)))
    return found
