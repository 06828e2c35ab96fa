"""Describe one operator of the factor language: what it takes, means, reads and returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, TypedDict

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
        ``window`` (a whole number of rows, at least 1) or ``number`` (a literal).
    default : float or None
        Value where it is left out; for ``min_periods`` None means the window.
    keyword : bool
        True where it can only be given by name.
    low, high : float
        Bounds of a number.
    whole : bool
        True where the number must be whole.
    """

    name: str
    kind: str = "panel"
    default: float | None = None
    keyword: bool = False
    low: float = float("-inf")
    high: float = float("inf")
    whole: bool = False

    @property
    def is_node(self) -> bool:
        """Tell whether the argument is a subtree, not a number."""
        return self.kind in ("panel", "condition", "group")

    @property
    def text(self) -> str:
        """Return the argument as the signature shows it."""
        if self.keyword and self.default is None:
            return f"{self.name}=window"
        return self.name if self.default is None else f"{self.name}={self.default:g}"


@dataclass(frozen=True, slots=True)
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
        Template of its plain words, with the names of the arguments.
    example : str
        A formula that parses.
    unit : str
        Name of its rule in `types.RULES`.
    interval : str
        How it moves the days that are read: ``now``, ``window``, ``shift`` or ``lag`` (see `interval`).
    scaling : tuple of str
        For each panel argument, what a constant factor c does to the result (see `canonical`): ``none``, ``linear``
        (c), ``absolute`` (|c|), ``square`` (c * c), ``inverse`` (1 / c), ``odd`` (its sign), ``even`` (nothing),
        ``order`` (nothing if positive), ``mirror`` (c, and the mirror operator if negative).
    mirror : str
        The operator that a change of sign turns this one into.
    symmetric : bool
        True where the panel arguments may be exchanged.
    infix : str
        Its symbol, empty for a function.
    nan : str
        What is special about NaN, after the sentence of its family.
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

    @property
    def signature(self) -> str:
        """Return the operator as it is written: ``ts_mean(x, window, min_periods=window)``."""
        return f"{self.name}({', '.join(argument.text for argument in self.arguments)})"

    @property
    def takes_many(self) -> bool:
        """Tell whether more than two arguments may be given: to sums, products, chains of conditions, max and min."""
        return self.symmetric and self.name in ("add", "mul", "and", "or", "max", "min")

    @property
    def positional(self) -> tuple[Argument, ...]:
        """Return the arguments that are given by position."""
        return tuple(argument for argument in self.arguments if not argument.keyword)

    @property
    def nodes(self) -> tuple[Argument, ...]:
        """Return the arguments that are subtrees: panels, conditions and groups."""
        return tuple(argument for argument in self.arguments if argument.is_node)

    @property
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


WINDOW = Argument("window", "window", low=1, high=10_000, whole=True)
MIN_PERIODS = Argument("min_periods", "number", keyword=True, low=1, high=10_000, whole=True)
DDOF = Argument("ddof", "number", default=1.0, keyword=True, low=0, high=1, whole=True)


def panels(names: str) -> tuple[Argument, ...]:
    """Make the arguments named in a string: ``x?`` is a condition, ``by@`` a group, the rest are panels."""
    kinds = {"?": "condition", "@": "group"}
    return tuple(Argument(name.rstrip("?@"), kinds.get(name[-1], "panel")) for name in names.split())


class Prose(NamedTuple):
    """What is said about an operator; see `Operator`."""

    summary: str
    words: str
    example: str


class Traits(TypedDict, total=False):
    """What an operator may have beside the fields that each one has; see `Operator`."""

    interval: str
    scaling: tuple[str, ...]
    mirror: str
    symmetric: bool
    infix: str
    nan: str
