"""List the ways to write each operator: its name or sign, and the class or words of each argument."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from ..describe.render import BIND_POWER, BINDING, render_number
from ..errors import ParseError
from ..language.build import Builder
from ..language.definitions import expand_tree
from ..language.node import Node, walk
from ..language.operator import Argument, Operator
from ..language.syntax import Syntax
from .unit_class import (
    GROUP_CLASS,
    Params,
    Taken,
    find_fragile_places,
    find_operand_classes,
    is_refused_alike,
    is_words,
    may_vanish,
)

NUMBER_CHOICES = (0.1, 0.2, 0.25, 0.5, 0.75, 0.8, 0.9, 1.0, 2.0, 3.0, 5.0, 10.0)
"""Choices for a number that is no window, within its bounds."""
UNBOUNDED_NUMBERS = (0.1, 0.5, 1.0, 2.0, 3.0)
"""Choices for a number without bounds, with both signs."""


@dataclass(frozen=True, slots=True)
class ProductionPart:
    """One argument of a call, or one side of a sign.

    Attributes
    ----------
    unit : str
        The class of a formula (see `unit_class`); empty for a choice of words.
    words : tuple of str
        The words.
    must_stay : bool
        Whether a formula that is 0 by algebra is refused here.
    """

    unit: str = ""
    words: tuple[str, ...] = ()
    must_stay: bool = False


@dataclass(frozen=True, slots=True)
class Production:
    """One way to write an operator.

    Attributes
    ----------
    node : Node
        The operator with its largest numbers, without arguments.
    head : str
        Its sign between or before the parts, or its name.
    parts : tuple of ProductionPart
        Its arguments, in order.
    places : tuple of int
        For each subtree of the node, its place among the parts.
    result : str
        The class of its result.
    binding : int
        How tightly its sign binds, as in `render`; 0 for a call.
    vanishes : bool
        Whether a call may be 0 by algebra.
    """

    node: Node
    head: str
    parts: tuple[ProductionPart, ...]
    places: tuple[int, ...]
    result: str
    binding: int
    vanishes: bool

    @property
    def subtrees(self) -> tuple[ProductionPart, ...]:
        """Return the parts that are formulas."""
        return tuple(part for part in self.parts if part.unit)


@dataclass(frozen=True)
class Vocabulary:
    """The columns, groupings and windows that a grammar may use.

    Attributes
    ----------
    fields : tuple of str
        Columns.
    groups : tuple of str
        Groupings; if empty, no operator by group may be written.
    windows : tuple of int
        Windows.
    """

    fields: tuple[str, ...]
    groups: tuple[str, ...]
    windows: tuple[int, ...]


def list_productions(operator: Operator, vocabulary: Vocabulary) -> Iterator[Production]:
    """Yield every way to write an operator; none where it cannot be used with the vocabulary."""
    numbers = [argument for argument in operator.positional if not argument.is_node]
    choices = [_list_words(argument, vocabulary) for argument in numbers]
    valid = _list_valid(operator, tuple(choices))
    if not valid or (not vocabulary.groups and any(argument.kind == "group" for argument in operator.nodes)):
        return
    params = [tuple(zip((argument.name for argument in numbers), map(float, chosen), strict=True)) for chosen in valid]
    probes = tuple(dict.fromkeys((params[0], params[len(params) // 2], params[-1])))
    if any(is_refused_alike(operator, probe) or _reads_more(operator, probe, vocabulary.fields) for probe in probes):
        return
    number_parts = _build_number_parts(valid, choices)
    for classes, result in find_operand_classes(operator, params[-1]):
        yield _build_production(operator, params[-1], probes, number_parts, (classes, result), vocabulary)


def _build_production(
    operator: Operator,
    params: Params,
    probes: tuple[Params, ...],
    number_parts: list[ProductionPart],
    typed: tuple[Taken, str],
    vocabulary: Vocabulary,
) -> Production:
    classes, result = typed
    fragile = frozenset[int]().union(*(find_fragile_places(operator, probe) for probe in probes))
    binding = BINDING.get(operator.name, BIND_POWER) if operator.infix else 0
    subtrees = iter(_build_part(probe, place in fragile, vocabulary) for place, probe in enumerate(classes))
    numbers = iter(number_parts)
    parts: list[ProductionPart] = []
    places: list[int] = []
    for argument in operator.positional:
        if argument.is_node:
            places.append(len(parts))
            parts.append(next(subtrees))
        elif (part := next(numbers, None)) is not None:
            parts.append(part)
    vanishes = any(may_vanish(operator, probe) for probe in probes)
    head = operator.infix or operator.name
    node = Node(operator.name, (), params)
    return Production(node, head, tuple(parts), tuple(places), result, binding, vanishes)


def _build_part(operand: str, is_fragile: bool, vocabulary: Vocabulary) -> ProductionPart:
    if is_words(operand):
        return ProductionPart(words=tuple(operand.split()))
    return (
        ProductionPart(words=vocabulary.groups)
        if operand == GROUP_CLASS
        else ProductionPart(operand, must_stay=is_fragile)
    )


def _list_words(argument: Argument, vocabulary: Vocabulary) -> tuple[str, ...]:
    """Return the texts of a number within its bounds; windows are those of the vocabulary."""
    if argument.choices:
        return argument.choices
    if argument.kind == "window":
        values: Collection[float] = vocabulary.windows
    elif argument.low == float("-inf"):
        values = (*(-number for number in reversed(UNBOUNDED_NUMBERS)), *UNBOUNDED_NUMBERS)
    else:
        values = NUMBER_CHOICES
    fitting = [number for number in values if argument.low <= number <= argument.high]
    return tuple(render_number(number) for number in fitting if not argument.whole or number == int(number))


@functools.cache
def _list_valid(operator: Operator, choices: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
    """Return the combinations of numbers that the parser accepts: ``low`` may not exceed ``high``."""
    every = itertools.product(*choices)
    return tuple(chosen for chosen in every if len(chosen) < 2 or _is_accepted(operator, chosen))


def _is_accepted(operator: Operator, chosen: tuple[str, ...]) -> bool:
    numbers = iter(chosen)
    words = ["x" if argument.is_node else next(numbers) for argument in operator.positional]
    args = tuple(Syntax("name" if word[0].isalpha() else "number", word, 0, 0) for word in words)
    try:
        Builder("", frozenset("x"), frozenset("x")).whole(Syntax("call", operator.name, 0, 0, args))
    except ParseError:
        return False
    return True


def _build_number_parts(valid: tuple[tuple[str, ...], ...], choices: list[tuple[str, ...]]) -> list[ProductionPart]:
    """Return one part for each number; one part for all numbers if not every combination is valid."""
    count = 1
    for words in choices:
        count *= len(words)
    if len(valid) == count:
        return [ProductionPart(words=words) for words in choices]
    return [ProductionPart(words=tuple(", ".join(chosen) for chosen in valid))]


def _reads_more(operator: Operator, params: Params, fields: tuple[str, ...]) -> bool:
    """Return whether the definition of an operator reads a column that may not be read."""
    marks: Mapping[str, str] = {"panel": "field", "condition": "field", "group": "group"}
    args = tuple(Node(marks[argument.kind], name="?") for argument in operator.nodes)
    leaves = walk(expand_tree(Node(operator.name, args, params)))
    return any(node.op == "field" and node.name not in (*fields, "?") for _, node in leaves)
