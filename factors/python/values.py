"""What a name of a Python factor can stand for while its code is read without being run."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ..language.node import Node

__all__ = [
    "Call",
    "CellSelection",
    "DayRow",
    "FlippedFrame",
    "KnownList",
    "Literal",
    "Method",
    "NamedObject",
    "Routine",
    "Spans",
    "Value",
    "Vector",
    "WeightedWindows",
    "WholePanel",
]  # fmt: skip


@dataclass(frozen=True)
class Literal:
    """A number, text, truth value or None that is known."""

    value: object


@dataclass(frozen=True)
class KnownList:
    """A list, tuple or set whose members are known."""

    items: tuple[Value, ...]


@dataclass(frozen=True)
class Vector:
    """An array of known numbers, such as weights."""

    numbers: tuple[float, ...]


@dataclass(frozen=True)
class NamedObject:
    """A function or module of numpy, pandas or Python itself: ``np.log``, ``abs``."""

    name: str


@dataclass(frozen=True)
class WholePanel:
    """The panel."""


@dataclass(frozen=True)
class DayRow:
    """One day's row of names, inside ``apply(..., axis=1)``."""

    x: Node


@dataclass(frozen=True)
class FlippedFrame:
    """A frame with names down and days across."""

    x: Node


@dataclass(frozen=True)
class Spans:
    """The windows of a frame that end on each day: rolling, expanding, or with weights that fade.

    Attributes
    ----------
    kind
        ``rolling``, ``expanding`` or ``ewm``; ``ranked`` is a rolling one whose last value is asked for as a rank.
    window
        Days, or the span of the weights; what is not known when the code is read is 0.
    """

    kind: str
    x: Node
    window: int


@dataclass(frozen=True)
class WeightedWindows:
    """The windows of a frame, each value of a window times a known weight."""

    spans: Spans
    weights: Vector


@dataclass(frozen=True)
class Method:
    """A method or attribute of a value, not yet called."""

    owner: Value
    name: str


@dataclass(frozen=True)
class CellSelection:
    """What stands between a frame and the cells that are picked: ``x.iloc``, ``x.loc``, ``x.at``."""

    owner: Value


@dataclass(frozen=True, eq=False)
class Routine:
    """A function of the code itself, with the names that it can see."""

    takes: ast.arguments
    body: tuple[ast.stmt, ...]
    around: Mapping[str, Value]


Value: TypeAlias = (
    Node | Literal | KnownList | Vector | NamedObject | WholePanel | DayRow | FlippedFrame | Spans | WeightedWindows | Method | CellSelection | Routine
)  # fmt: skip


@dataclass(frozen=True)
class Call:
    """A call: what is called on what, with what."""

    name: str
    owner: Value
    args: tuple[Value, ...] = ()
    named: Mapping[str, Value] = field(default_factory=dict)

    def given(self, name: str, place: int = -1) -> Value | None:
        """Return an argument by name or place; None where it is left out."""
        if name in self.named:
            return self.named[name]
        return self.args[place] if 0 <= place < len(self.args) else None

    def number(self, name: str, place: int = -1, default: float | None = None) -> float | None:
        """Return an argument that is a known number; the default where it is left out, None where it is not known."""
        value = self.given(name, place)
        if value is None:
            return default
        known = value.value if isinstance(value, Literal) else None
        return float(known) if isinstance(known, int | float) and not isinstance(known, bool) else None

    @property
    def is_across(self) -> bool:
        """Tell whether it works across names: ``axis=1``, or on one day's row."""
        axis = self.named.get("axis")
        said = axis.value if isinstance(axis, Literal) else None
        return said in (1, "columns") or isinstance(self.owner, DayRow)
