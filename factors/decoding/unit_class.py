"""Sort units into few classes, and find the classes that an operator accepts and returns.

There is no table of operators here: each operator is tried on examples of every class, by the unit rules of `types`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator

from ..describe.render import render_number
from ..language.canonical import canonicalise
from ..language.definitions import expand_operator
from ..language.linear import BadConstant, split_coefficient
from ..language.node import Node, call_node, field_node, group_node, number_node
from ..language.operator import Operator
from ..language.types import BOOL_UNIT, FIELD_UNITS, Unit, UnitMismatch, find_unit
from ..operators import OPERATORS

PURE_CLASS, MIXED_CLASS, CONDITION_CLASS, GROUP_CLASS, ANY_CLASS = "pure", "mixed", "condition", "group", "any"
"""Dimensionless; a unit that is not tracked further; true or false; a grouping; any unit."""

DIMENSIONS: dict[str, Unit] = {unit.name: unit for unit in FIELD_UNITS.values() if not unit.is_pure}
"""The classes of units that are tracked: those of the standard fields."""
PANEL_CLASSES = (*DIMENSIONS, PURE_CLASS, MIXED_CLASS)
PLAIN_NUMBERS = (-1.0, 0.0, 0.5, 1.0, 2.0)
"""Numbers that may be an argument beside a formula: ``1 - x``, ``max(x, 0)``, ``-1 * x``."""
EXPONENTS = (0.5, 2.0, 3.0)

Params = tuple[tuple[str, float], ...]
Taken = tuple[str, ...]
"""For each subtree a class, or a choice of numbers as words after a space (see `is_words`)."""


def classify_unit(unit: Unit) -> str:
    """Return the class of a unit."""
    if unit == BOOL_UNIT:
        return CONDITION_CLASS
    if unit.is_pure:
        return PURE_CLASS
    return next((name for name, class_unit in DIMENSIONS.items() if class_unit == unit), MIXED_CLASS)


def is_words(operand: str) -> bool:
    """Return whether an operand is a choice of numbers, not a class."""
    return operand.startswith(" ")


@functools.cache
def find_operand_classes(operator: Operator, params: Params) -> tuple[tuple[Taken, str], ...]:
    """Return the combinations of argument classes that an operator accepts, and the class of each result.

    Parameters
    ----------
    operator : Operator
        From the table.
    params : tuple of (str, float)
        Its numbers.

    Returns
    -------
    tuple of (taken, class)
        Combinations that the unit rules accept for all formulas of the classes. At most one place is a number, or all
        places except conditions.
    """
    panels = [place for place, argument in enumerate(operator.nodes) if argument.kind == "panel"]
    results: dict[Taken, str] = {}
    for chosen in itertools.product(*(_list_classes(argument.kind) for argument in operator.nodes)):
        if result := _find_result(operator, params, [_build_examples(unit_class) for unit_class in chosen]):
            results[chosen] = result
    results = _merge_mixed(results, len(panels))
    for place in panels if len(panels) > 1 else ():
        results |= _find_number_classes(operator, params, place)
    if len(panels) > 1 and any(argument.kind == "condition" for argument in operator.nodes):
        results |= _find_choice_classes(operator, params)
    return tuple(_merge_any(results).items())


def _find_number_classes(operator: Operator, params: Params, place: int) -> dict[Taken, str]:
    """Return the accepted combinations with a number in one place."""
    results: dict[Taken, str] = {}
    kinds = [(" ",) if at == place else _list_classes(argument.kind) for at, argument in enumerate(operator.nodes)]
    for chosen in itertools.product(*kinds):
        by_result: dict[str, list[str]] = {}
        for value in EXPONENTS if operator.unit == "power" else PLAIN_NUMBERS:
            examples = [(number_node(value),) if is_words(operand) else _build_examples(operand) for operand in chosen]
            result = _find_result(operator, params, examples)
            if result and _is_worth_writing(operator, params, place, value):
                by_result.setdefault(result, []).append(render_number(value))
        for result, words in by_result.items():
            results[(*chosen[:place], " " + " ".join(words), *chosen[place + 1 :])] = result
    return results


def _find_choice_classes(operator: Operator, params: Params) -> dict[Taken, str]:
    """Return the accepted combinations of a condition with numbers in all other places: ``where(c, 1, -1)``."""
    values = tuple(map(number_node, PLAIN_NUMBERS))
    words = " " + " ".join(map(render_number, PLAIN_NUMBERS))
    chosen = tuple(
        words if argument.kind == "panel" else _list_classes(argument.kind)[0] for argument in operator.nodes
    )
    result = _find_result(
        operator, params, [values if is_words(argument) else _build_examples(argument) for argument in chosen]
    )
    return {chosen: result} if result else {}


def _list_classes(kind: str) -> tuple[str, ...]:
    return {"condition": (CONDITION_CLASS,), "group": (GROUP_CLASS,)}.get(kind, PANEL_CLASSES)


@functools.cache
def _build_examples(name: str) -> tuple[Node, ...]:
    """Return example formulas of a class: one of each dimensionless kind, and several units for `MIXED_CLASS`."""
    fields = {classify_unit(unit): field_node(field) for field, unit in FIELD_UNITS.items()}
    if name == GROUP_CLASS:
        return (group_node("sector"),)
    if name == CONDITION_CLASS:
        return (call_node("lt", fields["price"], field_node("open")),)
    if name in DIMENSIONS:
        return (fields[name],)
    pure = (
        fields[PURE_CLASS],
        field_node("own"),
        call_node("rank", fields[PURE_CLASS]),
        call_node("sign", fields[PURE_CLASS]),
    )
    if name == PURE_CLASS:
        return pure
    odd = (call_node("mul", *[fields["price"]] * 3), call_node("div", fields["volume"], fields["price"]))
    return (*odd, *(fields[dimension] for dimension in DIMENSIONS), pure[0], pure[-1])


def _find_result(operator: Operator, params: Params, examples: list[tuple[Node, ...]]) -> str:
    """Return the class of an operator's results over all examples; empty if an example is refused."""
    results = set()
    for args in itertools.product(*examples):
        try:
            results.add(classify_unit(find_unit(Node(operator.name, args, params))))
        except UnitMismatch:
            return ""
    if CONDITION_CLASS in results:
        return CONDITION_CLASS if len(results) == 1 else ""
    return results.pop() if len(results) == 1 else MIXED_CLASS


def _is_worth_writing(operator: Operator, params: Params, place: int, value: float) -> bool:
    """Return whether a number beside a formula is valid and has an effect: not ``x / 0``, ``x * 1`` or ``x ** 1``."""
    if not _is_usual(operator, place, value):
        return False
    args = _replace_argument(_build_distinct_examples(operator), place, number_node(value))
    try:
        own = canonicalise(Node(operator.name, args, params))
        for second in _list_panels(operator):
            if second != place:
                canonicalise(Node(operator.name, _replace_argument(args, second, _build_zero("x")), params))
    except BadConstant:
        return False
    return own not in args and split_coefficient(own)[0] != 0 and split_coefficient(own)[1] is not None


def _is_usual(operator: Operator, place: int, value: float) -> bool:
    """Return whether a number is usual in that place: only products begin with -1, and only powers end in a number."""
    if operator.unit == "power":
        return place == 1
    if operator.infix and operator.family == "elementwise":
        return value > 0 or (value < 0 and operator.unit == "product")
    return value >= 0 and not (operator.symmetric and not operator.infix and place == 0)


def _merge_mixed(results: dict[Taken, str], panels: int) -> dict[Taken, str]:
    """Merge the entries that return `MIXED_CLASS` into one, if no class is refused.

    Any result may be called mixed.
    """
    mixed = [classes for classes, result in results.items() if result == MIXED_CLASS]
    if len(mixed) < 2 or len(results) < len(PANEL_CLASSES) ** panels:
        return results
    unmixed = {classes: result for classes, result in results.items() if result != MIXED_CLASS}
    return unmixed | {
        tuple(ANY_CLASS if unit_class in PANEL_CLASSES else unit_class for unit_class in mixed[0]): MIXED_CLASS
    }


def _merge_any(results: dict[Taken, str]) -> dict[Taken, str]:
    """Merge entries that differ in one place only and have every class there into one entry with `ANY_CLASS`."""
    for place in range(max(map(len, results), default=0)):
        by_rest: dict[tuple[Taken, Taken, str], set[str]] = {}
        for operands, result in results.items():
            by_rest.setdefault((operands[:place], operands[place + 1 :], result), set()).add(operands[place])
        complete = [rest for rest, classes in by_rest.items() if classes >= set(PANEL_CLASSES)]
        for before, after, result in complete:
            for unit_class in PANEL_CLASSES:
                del results[(*before, unit_class, *after)]
            results[(*before, ANY_CLASS, *after)] = result
    return results


def _list_panels(operator: Operator) -> list[int]:
    return [place for place, argument in enumerate(operator.nodes) if argument.kind == "panel"]


def _build_distinct_examples(operator: Operator) -> tuple[Node, ...]:
    """Return an example for each place; panels are different columns."""
    kinds = {"condition": _build_examples(CONDITION_CLASS)[0], "group": _build_examples(GROUP_CLASS)[0]}
    return tuple(kinds.get(argument.kind, field_node(f"x{place}")) for place, argument in enumerate(operator.nodes))


def _replace_argument(args: tuple[Node, ...] | list[Node], place: int, new: Node) -> tuple[Node, ...]:
    return (*args[:place], new, *args[place + 1 :])


def _build_zero(name: str) -> Node:
    """Return a formula that is 0 by algebra."""
    return call_node("sub", field_node(name), field_node(name))


def _divides_by_zero(node: Node) -> bool:
    try:
        canonicalise(node)
    except BadConstant:
        return True
    return False


@functools.cache
def find_fragile_places(operator: Operator, params: Params) -> frozenset[int]:
    """Return the places, such as a divisor, where a formula that is 0 by algebra is refused."""
    args = _build_distinct_examples(operator)
    return frozenset(
        place
        for place in _list_panels(operator)
        if _divides_by_zero(Node(operator.name, _replace_argument(args, place, _build_zero("x")), params))
    )


@functools.cache
def may_vanish(operator: Operator, params: Params) -> bool:
    """Return whether a call can be 0 by algebra, as a difference of its arguments can."""
    node = Node(operator.name, _build_distinct_examples(operator), params)
    if operator.definition and _is_loose(expand_operator(node)):
        return True
    return any(
        _divides_by_zero(call_node("div", field_node("y"), call)) for call in _iter_equal_calls(operator, params)
    )


def _is_loose(node: Node) -> bool:
    """Return whether a formula is a sum, or a product with a sum as a factor: only those can vanish."""
    if node.is_leaf:
        return node.name.startswith("x")
    operator = OPERATORS[node.op]
    if operator.family != "elementwise" or not operator.infix:
        return False
    return operator.unit == "common" or any(_is_loose(arg) for arg in node.args)


@functools.cache
def is_refused_alike(operator: Operator, params: Params) -> bool:
    """Return whether an operator divides by zero when its arguments are equal, which a grammar cannot forbid."""
    return any(_divides_by_zero(node) for node in _iter_equal_calls(operator, params))


def _iter_equal_calls(operator: Operator, params: Params) -> Iterator[Node]:
    """Yield calls whose panels are all one column, or all one call of an operator on it."""
    args, panels = _build_distinct_examples(operator), _list_panels(operator)
    single = [
        operand for operand in OPERATORS.values() if [argument.kind for argument in operand.positional] == ["panel"]
    ]
    for inner in (field_node("x"), *(Node(operand.name, (field_node("x"),)) for operand in single)):
        same = tuple(inner if place in panels else arg for place, arg in enumerate(args))
        yield Node(operator.name, same, params)
