"""The declaration of an operator: arguments, meaning, unit, days read, kernel; with a helper for each family.

A file of `operators` has some operators of one noun: the kernel, the declaration with units, days and words, and the
reference that tests compare the kernel with. `operators` finds every `Operator` in the files of its folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple, TypedDict, Unpack

NAN_NOTES: Mapping[str, str] = MappingProxyType(
    {
        "elementwise": "NaN in, NaN out; a result that is not finite is NaN.",
        "logic": "1 for true, 0 for false; NaN in, NaN out.",
        "time series": "NaN unless at least `min_periods` values of the window are present; by default all of them.",
        "cross-section": "Names without a value today stay NaN and do not count.",
    }
)


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of an operator.

    Attributes
    ----------
    name : str
        Its name in the signature and in templates.
    kind : str
        ``panel`` (an expression), ``condition`` (an expression that is true or false), ``group`` (a grouping's name),
        ``window`` (a whole number of rows), ``number`` (a literal) or ``choice`` (one of some words).
    default : float or None
        Value if it is left out; for a keyword, None means the window.
    keyword : bool
        Whether it can only be passed by name.
    low, high : float
        Bounds of a number.
    whole : bool
        Whether the number must be whole.
    choices : tuple of str
        The words of a choice, its default first; a tree holds the position of the word.
    """

    name: str
    kind: str = "panel"
    default: float | None = None
    keyword: bool = False
    low: float = float("-inf")
    high: float = float("inf")
    whole: bool = False
    choices: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Return whether the kernel takes it as an integer."""
        return self.whole or self.kind == "choice"

    @property
    def is_node(self) -> bool:
        """Return whether the argument is a subtree, not a number."""
        return self.kind in ("panel", "condition", "group")

    @property
    def text(self) -> str:
        """Return the argument as the signature shows it."""
        if self.keyword and self.default is None:
            return f"{self.name}=window"
        if self.choices:
            return f"{self.name}={self.choices[int(self.default or 0)]}"
        return self.name if self.default is None else f"{self.name}={self.default:g}"


@dataclass(frozen=True, slots=True)
class Compute:
    """How the engine computes an operator.

    Attributes
    ----------
    sweep : callable
        ``sweep(out, *arrays, *members, *numbers, *fixed, lo, hi)`` fills columns ``[lo, hi)`` of `out`, or rows where
        `by_rows`; members are the universe, if the names of a day are compared; numbers are the operator's own, in
        the order of its signature.
    cost : float
        Approximate nanoseconds per cell at a window of 20; the cache keeps expensive results.
    fixed : tuple of numbers
        Constants that distinguish operators with the same kernel.
    by_rows : bool
        True if rows do not depend on each other, False if columns do not.
    across : bool
        Whether the universe is needed.
    swapped : bool
        Whether the kernel takes the two panels in the reverse order.
    stacked : bool
        Whether the kernel takes the panels after the first as one tuple.
    """

    sweep: Callable[..., None]
    cost: float = 1.0
    fixed: tuple[float, ...] = ()
    by_rows: bool = False
    across: bool = False
    swapped: bool = False
    stacked: bool = False


@dataclass(frozen=True)
class Operator:
    """One operator of the language.

    Attributes
    ----------
    name : str
        Name in formulas and in `Node.op`.
    family : str
        ``elementwise``, ``logic``, ``time series`` or ``cross-section``.
    arguments : tuple of Argument
        Positional ones first, then keywords.
    summary : str
        What it computes, in one sentence.
    words : str
        Template of its description in words, with the names of the arguments.
    example : str
        A formula that parses.
    unit : str
        Name of its rule in `types.UNIT_RULES`.
    interval : str
        How it moves the days that are read: ``now``, ``window``, ``shift`` or ``lag`` (see `interval`).
    scaling : tuple of str
        For each panel argument, what a constant factor c does to the result (see `canonical`): ``none``, ``linear``
        (c), ``absolute`` (|c|), ``square`` (c * c), ``inverse`` (1 / c), ``odd`` (its sign), ``even`` (nothing),
        ``order`` (nothing if positive), ``mirror`` (c, and the mirror operator if negative).
    mirror : str
        The operator that this one becomes under a change of sign.
    symmetric : bool
        Whether the panel arguments may be exchanged.
    infix : str
        Its symbol, empty for a function.
    nan : str
        Rules for NaN in addition to those of its family.
    many : int
        How often the last panel argument may be repeated; 0 for once.
    definition : str
        A formula of other operators in the names of the arguments; such an operator has no kernel, and its canonical
        form, units and days are those of the formula.
    compute : Compute or None
        How the engine computes it; None if it has a definition.
    reference : callable or None
        The slow, obvious implementation in float64 that tests compare the kernel with. Elementwise and logic: arrays to
        an array. Time series: the rows of one name's window that exist, oldest first and NaN included, to a number (for
        an operator that looks `window` rows back, those `window` + 1 rows). Cross-section: the values of one day's
        names that are present, to as many. Numbers come by name.
    """

    name: str
    family: str
    arguments: tuple[Argument, ...]
    summary: str
    words: str
    example: str
    unit: str
    interval: str = "now"
    scaling: tuple[str, ...] = ()
    mirror: str = ""
    symmetric: bool = False
    infix: str = ""
    nan: str = ""
    many: int = 0
    definition: str = ""
    compute: Compute | None = None
    reference: Callable[..., Any] | None = None

    @property
    def signature(self) -> str:
        """Return the signature: ``ts_mean(x, window, min_periods=window)``."""
        texts = [argument.text for argument in self.arguments]
        if self.many > 1:
            texts[len(self.nodes) - 1] += ", ..."
        return f"{self.name}({', '.join(texts)})"

    @property
    def takes_many(self) -> bool:
        """Return whether it takes more than two arguments: sums, products, chains of conditions, max and min."""
        return self.many > 1

    @cached_property
    def positional(self) -> tuple[Argument, ...]:
        """Return the positional arguments."""
        return tuple(argument for argument in self.arguments if not argument.keyword)

    @cached_property
    def nodes(self) -> tuple[Argument, ...]:
        """Return the arguments that are subtrees: panels, conditions and groups."""
        return tuple(argument for argument in self.arguments if argument.is_node)

    @cached_property
    def numbers(self) -> tuple[Argument, ...]:
        """Return the arguments that are numbers: windows, numbers and keywords."""
        return tuple(argument for argument in self.arguments if not argument.is_node)

    @property
    def doc(self) -> str:
        """Return the documentation, numpy style."""
        lines = [f"{self.signature}", "", self.summary, "", "Parameters", "----------"]
        lines += [f"{argument.name} : {argument.kind}" for argument in self.arguments]
        note = " ".join(part for part in (NAN_NOTES[self.family], self.nan) if part)
        return "\n".join([*lines, "", "Notes", "-----", note, "", "Examples", "--------", self.example])


class Prose(NamedTuple):
    """The texts of an operator; see `Operator`."""

    summary: str
    words: str
    example: str


WINDOW = Argument("window", "window", low=1, high=10_000, whole=True)
LOOKBACK_ARGUMENT = Argument("window", "window", low=0, high=10_000, whole=True)
"""The window of operators that read a row a fixed distance back; 0 is today."""
MIN_PERIODS = Argument("min_periods", "number", keyword=True, low=1, high=10_000, whole=True)
DDOF = Argument("ddof", "number", default=1.0, keyword=True, low=0, high=1, whole=True)

LINEAR, ABSOLUTE, ODD, EVEN, ORDER, MIRROR, SQUARE = (
    (rule,) for rule in ("linear", "absolute", "odd", "even", "order", "mirror", "square")
)
"""Scaling rules of operators with one panel argument; see `Operator.scaling`."""

MAX_TERMS = 200
"""Limit on the terms of a sum, product or chain: as many as the nodes of a formula."""


class Traits(TypedDict, total=False):
    """Optional fields of an operator; see `Operator`."""

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
    """Make a keyword argument that takes one of some words, the first by default."""
    return Argument(name, "choice", 0.0, True, choices=tuple(words.split()))


TIES = choice("ties", "average min max first")
"""How ties rank: at their mean place, the lowest, the highest, or by column (over time: the older row first)."""
SCALED = choice("scaled", "percent zero unit count")
"""How place r among n is scaled: r / n, (r - 1) / n, (r - 1) / (n - 1), or r."""


def cell(
    name: str,
    takes: str,
    unit: str,
    prose: Prose,
    sweep: Callable[..., None] | None = None,
    *numbers: Argument,
    cost: float = 0.2,
    fixed: tuple[float, ...] = (),
    swapped: bool = False,
    family: str = "elementwise",
    **more: Unpack[Traits],
) -> Operator:
    """Declare an operator on single cells."""
    compute = Compute(sweep, cost, fixed, by_rows=True, swapped=swapped) if sweep else None
    return Operator(name, family, (*panels(takes), *numbers), *prose, unit, compute=compute, **more)


def logic(
    name: str,
    takes: str,
    unit: str,
    prose: Prose,
    sweep: Callable[..., None],
    *,
    swapped: bool = False,
    **more: Unpack[Traits],
) -> Operator:
    """Declare an operator on truth values."""
    return cell(name, takes, unit, prose, sweep, swapped=swapped, family="logic", **more)


def lag(
    name: str,
    unit: str,
    prose: Prose,
    sweep: Callable[..., None],
    *,
    cost: float = 0.2,
    interval: str = "lag",
    window: Argument = WINDOW,
    **more: Unpack[Traits],
) -> Operator:
    """Declare an operator on one earlier row, or on today's and one earlier row."""
    arguments = (*panels("x"), window)
    return Operator(name, "time series", arguments, *prose, unit, interval, compute=Compute(sweep, cost), **more)


def rolling(
    name: str,
    unit: str,
    prose: Prose,
    sweep: Callable[..., None] | None = None,
    *extra: Argument,
    takes: str = "x",
    cost: float = 2.0,
    fixed: tuple[float, ...] = (),
    swapped: bool = False,
    **more: Unpack[Traits],
) -> Operator:
    """Declare an operator over the last `window` rows, today's included.

    The kernel gets the window, the further numbers of `extra`, `min_periods`, and the keywords of `extra`.
    """
    places = [argument for argument in extra if not argument.keyword]
    keywords = [argument for argument in extra if argument.keyword]
    arguments = (*panels(takes), WINDOW, *places, MIN_PERIODS, *keywords)
    compute = Compute(sweep, cost, fixed, swapped=swapped) if sweep else None
    return Operator(name, "time series", arguments, *prose, unit, "window", compute=compute, **more)


def across(
    name: str,
    takes: str,
    unit: str,
    prose: Prose,
    sweep: Callable[..., None] | None = None,
    *numbers: Argument,
    cost: float = 3.0,
    fixed: tuple[float, ...] = (),
    stacked: bool = False,
    **more: Unpack[Traits],
) -> Operator:
    """Declare an operator over the names of the universe that day."""
    compute = Compute(sweep, cost, fixed, by_rows=True, across=True, stacked=stacked) if sweep else None
    return Operator(name, "cross-section", (*panels(takes), *numbers), *prose, unit, compute=compute, **more)
