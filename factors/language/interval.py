"""Prove that a formula never reads the future: the interval of days that each node reads."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..operators import OPERATORS
from .definitions import expand_operator
from .node import Node


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """The rows that a node reads, relative to today: `lo` is the oldest, `hi` the newest; 0 is today.

    `hi` > 0 would read the future; `-lo` is the warm-up.
    """

    lo: int = 0
    hi: int = 0

    def join(self, other: Interval) -> Interval:
        """Return the smallest interval that holds both."""
        return Interval(min(self.lo, other.lo), max(self.hi, other.hi))

    def shift(self, lo: int, hi: int) -> Interval:
        """Return the interval with its ends moved."""
        return Interval(self.lo + lo, self.hi + hi)


FIELD_INTERVALS: Mapping[str, Interval] = MappingProxyType({"returns": Interval(-1, 0)})
"""Fields that read more than today: a return needs yesterday's close."""

INTERVAL_RULES: Mapping[str, Callable[[Interval, int], Interval]] = MappingProxyType(
    {
        "now": lambda days, _: days,
        "window": lambda days, window: days.shift(1 - window, 0),
        "shift": lambda days, window: days.shift(-window, -window),
        "lag": lambda days, window: days.join(days.shift(-window, -window)),
    }
)
"""How an operator moves the days that its arguments read, by the name in `Operator.interval`."""


@functools.lru_cache(maxsize=4096)
def find_days_read(node: Node) -> Interval:
    """Return the interval of days that an expression reads, today being 0."""
    node = expand_operator(node)
    if node.op == "field":
        return FIELD_INTERVALS.get(node.name, Interval())
    intervals = [find_days_read(arg) for arg in node.args if arg.op not in ("number", "group")]
    joined = Interval(
        min((interval.lo for interval in intervals), default=0), max((interval.hi for interval in intervals), default=0)
    )
    operator = OPERATORS.get(node.op)
    return INTERVAL_RULES[operator.interval](joined, node.window) if operator else joined
