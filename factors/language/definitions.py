"""Expand operators that are defined in the language itself: ``rsi(x, 14)`` is a formula of sums and differences."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType

from ..describe.render import render_number, render_parameter
from ..operators import OPERATORS, fill_parameters
from .build import Builder
from .node import STANDARD_FIELDS, Node, walk
from .operator import Operator
from .syntax import Syntax, read_syntax


@functools.lru_cache(maxsize=4096)
def expand_operator(node: Node) -> Node:
    """Return the definition of an operator with its arguments filled in; other nodes unchanged."""
    operator = OPERATORS.get(node.op)
    while operator is not None and operator.definition:
        arguments = {argument.name: arg for argument, arg in zip(operator.nodes, node.args, strict=True)}
        node = _substitute_arguments(_template(operator.name, tuple(fill_parameters(node).items())), arguments)
        operator = OPERATORS.get(node.op)
    return node


@functools.lru_cache(maxsize=4096)
def expand_tree(node: Node) -> Node:
    """Return the tree with every defined operator written out."""
    node = expand_operator(node)
    args = tuple(expand_tree(arg) for arg in node.args)
    return node if args == node.args else node.with_args(*args)


@functools.lru_cache(maxsize=4096)
def count_expanded_nodes(node: Node) -> int:
    """Count the nodes of the tree with every definition written out, without writing it out.

    A definition may name its argument twice, so that a nest of twenty of them would have a million nodes.
    """
    if node.is_leaf or not OPERATORS[node.op].definition:
        return 1 + sum(count_expanded_nodes(arg) for arg in node.args)
    sizes = {
        each.name: count_expanded_nodes(arg) for each, arg in zip(OPERATORS[node.op].nodes, node.args, strict=False)
    }
    template = expand_tree(_template(node.op, tuple(fill_parameters(node).items())))
    return sum(sizes.get(each.name, 1) if each.is_leaf else 1 for _, each in walk(template))


@functools.lru_cache(maxsize=4096)
def _template(name: str, numbers: tuple[tuple[str, float], ...]) -> Node:
    """Return the tree of a definition with its numbers in place; its panel arguments are leaves of their names."""
    operator = OPERATORS[name]
    words = {key: _format_number(operator, key, value) for key, value in numbers}
    names = {argument.name for argument in operator.nodes}
    builder = Builder(operator.definition, frozenset({*STANDARD_FIELDS, *names}), frozenset(names))
    return builder.whole(_substitute_numbers(read_syntax(operator.definition), words))


def _format_number(operator: Operator, name: str, value: float) -> str:
    return render_parameter(next(argument for argument in operator.numbers if argument.name == name), value)


def _substitute_numbers(piece: Syntax, words: dict[str, str]) -> Syntax:
    """Substitute the numbers and words of a call for their names, and fold arithmetic that is then all numbers."""
    if piece.kind == "name" and piece.text in words:
        word = words[piece.text]
        return replace(piece, kind="name" if word[0].isalpha() else "number", text=word)
    args = tuple(_substitute_numbers(arg, words) for arg in piece.args)
    if not piece.infix:  # arithmetic within arithmetic is left to the canonical form, which keeps fractions
        args = tuple(_fold_arithmetic(arg) for arg in args)
    return replace(piece, args=args)


FRACTION_ARITHMETIC: Mapping[str, Callable[..., Fraction]] = MappingProxyType(
    {
        "add": lambda *terms: sum(terms, Fraction(0)),
        "sub": lambda x, y: x - y,
        "mul": lambda *factors: math.prod(factors, start=Fraction(1)),
        "div": lambda x, y: x / y,
        "neg": lambda x: -x,
    }
)


def _fold_arithmetic(piece: Syntax) -> Syntax:
    """Return a number in the place of arithmetic on numbers: ``2 * 14 - 1`` is 27."""
    value = _value(piece) if piece.infix else None
    return piece if value is None else replace(piece, kind="number", text=render_number(float(value)), args=())


def _value(piece: Syntax) -> Fraction | None:
    """Evaluate arithmetic on numbers; None where it contains anything else."""
    if piece.kind == "number":
        return Fraction(piece.text)
    values = [_value(arg) for arg in piece.args]
    if not piece.infix or piece.text not in FRACTION_ARITHMETIC or None in values:
        return None
    return FRACTION_ARITHMETIC[piece.text](*values)


def _substitute_arguments(node: Node, arguments: dict[str, Node]) -> Node:
    """Substitute the arguments of a call for their names."""
    if node.op in ("field", "group") and node.name in arguments:
        return arguments[node.name]
    args = tuple(_substitute_arguments(arg, arguments) for arg in node.args)
    return node if args == node.args else node.with_args(*args)
