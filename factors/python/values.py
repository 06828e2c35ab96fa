"""The values that names of a Python factor can have while its code is read, and their conversion to nodes.

Code is never run. Trees are bounded: a part that is too large becomes a leaf with a hash.
"""

from __future__ import annotations

import ast
import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ..language.node import Node, call_node, field_node, group_node, number_node

MAX_TREE_NODES, MAX_TREE_DEPTH = 400, 30
MAX_READ_STEPS = 20_000

LARGEST_NUMBER = 1e15

UNKNOWN_NODE = group_node("unknown")


@dataclass(frozen=True)
class Literal:
    """A known number, text, truth value or None."""

    value: object


@dataclass(frozen=True)
class KnownList:
    """A list, tuple or set with known members."""

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
    kind : str
        ``rolling``, ``expanding`` or ``ewm``; ``ranked`` is a rolling window whose values are replaced by their ranks.
    window : int
        Days, or the span of the weights; 0 if it is not known when the code is read.
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
    """An indexer of a frame: ``x.iloc``, ``x.loc``, ``x.at``."""

    owner: Value


@dataclass(frozen=True, eq=False)
class Routine:
    """A function of the code itself, with the names that it can see."""

    takes: ast.arguments
    body: tuple[ast.stmt, ...]
    around: Mapping[str, Value]


Value: TypeAlias = (
    Node | Literal | KnownList | Vector | NamedObject | WholePanel | DayRow | FlippedFrame | Spans | WeightedWindows
    | Method | CellSelection | Routine
)  # fmt: skip  # a table


@dataclass(frozen=True)
class Call:
    """A call: its name, its owner and its arguments."""

    name: str
    owner: Value
    args: tuple[Value, ...] = ()
    named: Mapping[str, Value] = field(default_factory=dict)

    def argument(self, name: str, place: int = -1) -> Value | None:
        """Return an argument by name or place; None if it is left out."""
        if name in self.named:
            return self.named[name]
        return self.args[place] if 0 <= place < len(self.args) else None

    def number(self, name: str, place: int = -1, default: float | None = None) -> float | None:
        """Return an argument that is a known number; the default if it is left out, None if it is unknown."""
        value = self.argument(name, place)
        if value is None:
            return default
        number = value.value if isinstance(value, Literal) else None
        return float(number) if isinstance(number, int | float) and not isinstance(number, bool) else None

    @property
    def is_across(self) -> bool:
        """Return whether the call works across names: ``axis=1``, or on one day's row."""
        axis = self.named.get("axis")
        axis_value = axis.value if isinstance(axis, Literal) else None
        return axis_value in (1, "columns") or isinstance(self.owner, DayRow)


class CodeTooLong(Exception):
    """The code takes more steps to follow than allowed."""


class Nodes:
    """Builds nodes, and counts the steps of following the code.

    Attributes
    ----------
    fields : set of str
        The columns that the code names.
    reads_all : bool
        Whether it may read any column.
    """

    def __init__(self) -> None:
        self.fields: set[str] = set()
        self.reads_all = False
        self._steps = 0
        self._measured: dict[Node, tuple[int, int, bytes]] = {}

    def node(self, value: Value) -> Node:
        """Return a value as a tree."""
        if isinstance(value, Node):
            return value
        if isinstance(value, Literal):
            return _build_leaf(value.value)
        if isinstance(value, KnownList):
            return self.make("py.list", *value.items) if value.items else group_node("empty")
        if isinstance(value, DayRow | FlippedFrame):
            return value.x
        if isinstance(value, Spans):
            return self.make(f"py.{value.kind}", value.x, Literal(value.window))
        return self._other(value)

    def _other(self, value: Value) -> Node:
        """Return the node of a value without cells: a method that is not called, a function, the panel itself."""
        if isinstance(value, Vector):
            return group_node(build_word(repr(value.numbers)))
        if isinstance(value, WeightedWindows):
            return self.make("py.weighted", value.spans.x, Literal(value.spans.window), value.weights)
        if isinstance(value, Method):
            return self.make(f"py.{build_word(value.name)}", value.owner)
        if isinstance(value, CellSelection):
            return self.node(value.owner)
        if isinstance(value, NamedObject):
            return group_node(build_word(value.name))
        if isinstance(value, Routine):
            return group_node(f"function-{hash_code(*value.body)}")
        self.reads_all = True
        return field_node("panel")

    def make(self, op: str, *args: Value, **params: float) -> Node:
        """Return an operator on some values; arguments that are too large become a hash."""
        nodes = [self.node(arg) for arg in args] or [UNKNOWN_NODE]
        while (at := self._find_too_large(nodes)) is not None:
            nodes[at] = field_node(f"code-{self._measure(nodes[at])[2].hex()}")
        node = Node(op, tuple(nodes), tuple((name, float(value)) for name, value in params.items()))
        return fold_idiom(node)

    def _find_too_large(self, nodes: list[Node]) -> int | None:
        """Return the place of an argument that is too deep, or of the largest if their sum is too large; else None."""
        sizes = [self._measure(node) for node in nodes]
        deep = next((place for place, size in enumerate(sizes) if size[1] >= MAX_TREE_DEPTH), None)
        if deep is not None or sum(size[0] for size in sizes) < MAX_TREE_NODES:
            return deep
        largest = max(range(len(nodes)), key=lambda place: sizes[place][0])
        return largest if sizes[largest][0] > 1 else None

    def _measure(self, node: Node) -> tuple[int, int, bytes]:
        """Return nodes, levels and a hash of a tree; cached by subtree."""
        measured = self._measured.get(node)
        if measured is None:
            below = [self._measure(arg) for arg in node.args]
            content = repr((node.op, node.params, node.value, node.name, [size[2] for size in below]))
            digest = hashlib.sha256(content.encode()).digest()[:6]
            measured = 1 + sum(size[0] for size in below), 1 + max((size[1] for size in below), default=0), digest
            self._measured[node] = measured
        return measured

    def _step(self) -> None:
        self._steps += 1
        if self._steps > MAX_READ_STEPS:
            raise CodeTooLong


def fold_idiom(node: Node) -> Node:
    """Return the single operator for several steps of pandas: a scale, a signed power."""
    first = node.args[0]
    if node.op == "div" and node.args[1] == call_node("sum_across", call_node("abs", first)):
        return call_node("scale", first)
    if node.op == "mul":
        for first_factor, second_factor in (node.args[:2], node.args[:2][::-1]):
            if (
                second_factor.op == "power"
                and first_factor.op == "sign"
                and second_factor.args[0] == call_node("abs", first_factor.args[0])
            ):
                return call_node("signed_power", first_factor.args[0], second_factor.args[1])
    return node


def build_loop_leaf(name: str) -> Node:
    """Return the leaf for a value that changes with each turn of a loop."""
    return group_node(f"each-{name}")


def build_word(text: str) -> str:
    """Return a text if it is a valid name in an outline, else a name with its hash."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]{0,60}", text):
        return text
    return f"text-{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:8]}"


def hash_code(*pieces: ast.AST) -> str:
    """Return a hash of code as written."""
    return hashlib.sha256(" ".join(map(ast.dump, pieces)).encode(errors="replace")).hexdigest()[:12]


def _build_leaf(value: object) -> Node:
    """Return a known value as a leaf: a number, or a name."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return group_node(build_word(value if isinstance(value, str) else repr(value)))
    if math.isnan(value) or abs(value) > LARGEST_NUMBER or 0 < abs(value) < 1 / LARGEST_NUMBER:
        return group_node("nan" if math.isnan(value) else "huge" if abs(value) > 1 else "tiny")
    return number_node(float(value))
