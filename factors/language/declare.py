"""Declare an operator of each family in a few lines; what it computes stands beside it, in the same file.

A file of `operators` holds some operators of one noun: the kernel, the declaration with units, days and words, and the
reference that the tests hold the kernel to. `operators` finds every `Operator` in the files of its folder.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict, Unpack

from .signature import Argument, Compute, Operator, Prose

WINDOW = Argument("window", "window", low=1, high=10_000, whole=True)
LOOKBACK_ARGUMENT = Argument("window", "window", low=0, high=10_000, whole=True)
"""The window of what looks a fixed number of rows back; 0 is today."""
MIN_PERIODS = Argument("min_periods", "number", keyword=True, low=1, high=10_000, whole=True)
DDOF = Argument("ddof", "number", default=1.0, keyword=True, low=0, high=1, whole=True)

LINEAR, ABSOLUTE, ODD, EVEN, ORDER, MIRROR, SQUARE = (
    (rule,) for rule in ("linear", "absolute", "odd", "even", "order", "mirror", "square")
)
"""What a constant factor of the only argument does; see `Operator.scaling`."""

MAX_TERMS = 200
"""How many terms a sum, product or chain may have: as many as a formula may have nodes."""


class Traits(TypedDict, total=False):
    """What an operator may have beside the fields that each one has; see `Operator`."""

    scaling: tuple[str, ...]
    mirror: str
    symmetric: bool
    infix: str
    nan: str
    many: int
    definition: str
    reference: Callable[..., Any]


def panels(names: str) -> tuple[Argument, ...]:
    """Make the arguments named in a string: ``x?`` is a condition, ``by@`` a group, the rest are panels."""
    kinds = {"?": "condition", "@": "group"}
    return tuple(Argument(name.rstrip("?@"), kinds.get(name[-1], "panel")) for name in names.split())


def choice(name: str, words: str) -> Argument:
    """Make a keyword that takes one of some words, the first by default."""
    return Argument(name, "choice", 0.0, True, choices=tuple(words.split()))


TIES = choice("ties", "average min max first")
"""How equal values rank: their mean place, the lowest, the highest, or by column, the older row first."""
SCALED = choice("scaled", "percent zero unit count")
"""What becomes of place r among n: r / n, (r - 1) / n, (r - 1) / (n - 1), or r."""


def cell(
    name: str, takes: str, unit: str, prose: Prose, sweep: Callable[..., None] | None = None, *numbers: Argument,
    cost: float = 0.2, fixed: tuple[float, ...] = (), swapped: bool = False, family: str = "elementwise",
    **more: Unpack[Traits],
) -> Operator:  # fmt: skip
    """Declare an operator that looks at one cell at a time."""
    compute = Compute(sweep, cost, fixed, by_rows=True, swapped=swapped) if sweep else None
    return Operator(name, family, (*panels(takes), *numbers), *prose, unit, compute=compute, **more)


def logic(
    name: str, takes: str, unit: str, prose: Prose, sweep: Callable[..., None], *, swapped: bool = False,
    **more: Unpack[Traits],
) -> Operator:  # fmt: skip
    """Declare an operator on truth values."""
    return cell(name, takes, unit, prose, sweep, swapped=swapped, family="logic", **more)


def lag(
    name: str, unit: str, prose: Prose, sweep: Callable[..., None], *, cost: float = 0.2, interval: str = "lag",
    window: Argument = WINDOW, **more: Unpack[Traits],
) -> Operator:  # fmt: skip
    """Declare an operator that looks at two rows, or one, a fixed distance away."""
    arguments = (*panels("x"), window)
    return Operator(name, "time series", arguments, *prose, unit, interval, compute=Compute(sweep, cost), **more)


def rolling(
    name: str, unit: str, prose: Prose, sweep: Callable[..., None] | None = None, *extra: Argument, takes: str = "x",
    cost: float = 2.0, fixed: tuple[float, ...] = (), swapped: bool = False, **more: Unpack[Traits],
) -> Operator:  # fmt: skip
    """Declare an operator over the last `window` rows, today's included.

    The kernel gets the window, the further numbers of `extra`, `min_periods`, and the keywords of `extra`.
    """
    places = [argument for argument in extra if not argument.keyword]
    keywords = [argument for argument in extra if argument.keyword]
    arguments = (*panels(takes), WINDOW, *places, MIN_PERIODS, *keywords)
    compute = Compute(sweep, cost, fixed, swapped=swapped) if sweep else None
    return Operator(name, "time series", arguments, *prose, unit, "window", compute=compute, **more)


def across(
    name: str, takes: str, unit: str, prose: Prose, sweep: Callable[..., None] | None = None, *numbers: Argument,
    cost: float = 3.0, fixed: tuple[float, ...] = (), stacked: bool = False, **more: Unpack[Traits],
) -> Operator:  # fmt: skip
    """Declare an operator over the names of the universe that day."""
    compute = Compute(sweep, cost, fixed, by_rows=True, across=True, stacked=stacked) if sweep else None
    return Operator(name, "cross-section", (*panels(takes), *numbers), *prose, unit, compute=compute, **more)
