"""Render a tree as the formula that parses back to it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType

from ..language.node import Node
from ..language.operator import Argument
from ..language.syntax import Syntax
from ..operators import OPERATORS

BIND_COMPARISON, BIND_EITHER, BIND_BOTH, BIND_SUM, BIND_PRODUCT, BIND_SIGNED, BIND_POWER, BIND_ATOM = range(3, 11)
"""How tightly each kind of formula binds, loosest first, as in Python."""

BINDING: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(("lt", "le", "gt", "ge", "eq", "ne"), BIND_COMPARISON),
        "or": BIND_EITHER,
        "and": BIND_BOTH,
        "add": BIND_SUM,
        "sub": BIND_SUM,
        "mul": BIND_PRODUCT,
        "div": BIND_PRODUCT,
        "neg": BIND_SIGNED,
        "not": BIND_SIGNED,
    }
)


def render(node: Node) -> str:
    """Return the formula of a tree, with as few parentheses as it needs."""
    return _render(node)[0]


def render_number(value: float) -> str:
    """Return a number as people write it: 20, 0.5, 1e-06."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def render_parameter(argument: Argument, value: float) -> str:
    """Return a window, number or choice as it is written in a formula."""
    return argument.choices[int(value)] if argument.choices else render_number(value)


def as_syntax(node: Node) -> Syntax:
    """Return the syntax of a tree, with windows and numbers as keywords and all places 0."""
    if node.op == "number":
        return Syntax("number", render_number(node.value or 0.0), 0, 0)
    if node.is_leaf:
        return Syntax("name", node.name, 0, 0)
    values = dict(node.params)
    keywords = [
        Syntax("keyword", argument.name, 0, 0, (_build_number(argument, values[argument.name]),))
        for argument in OPERATORS[node.op].numbers
        if argument.name in values
    ]
    return Syntax("call", node.op, 0, 0, (*map(as_syntax, node.args), *keywords))


def _build_number(argument: Argument, value: float) -> Syntax:
    return Syntax("name" if argument.choices else "number", render_parameter(argument, value), 0, 0)


@functools.lru_cache(maxsize=4096)
def _render(node: Node) -> tuple[str, int]:
    """Return the formula and how tightly it binds; cached, because sorting renders the same subtrees often."""
    if node.op in ("field", "group"):
        return node.name, BIND_ATOM
    if node.op == "number":
        value = node.value or 0.0
        return render_number(value), BIND_ATOM if value >= 0 else BIND_SIGNED
    if node.op not in OPERATORS:  # a step of Python code that the language does not have
        return f"{node.op}({', '.join(map(render, node.args))})", BIND_ATOM
    binding = BINDING.get(node.op, BIND_ATOM)
    if binding == BIND_ATOM:
        return f"{node.op}({', '.join(_render_arguments(node))})", BIND_ATOM
    symbol = OPERATORS[node.op].infix
    if binding == BIND_SIGNED:
        return f"{symbol}{_parenthesise_looser(node.args[0], BIND_SIGNED)}", BIND_SIGNED
    return (
        _render_chain(node, symbol, binding)
        if node.op in ("add", "and", "or", "mul")
        else _render_pair(node, symbol, binding)
    ), binding


def _parenthesise_looser(node: Node, binding: int) -> str:
    """Return the formula of an argument, in parentheses where it binds less tightly than `binding`."""
    text, own = _render(node)
    return text if own >= binding else f"({text})"


def _render_pair(node: Node, symbol: str, binding: int) -> str:
    first, second = node.args
    looser = binding if binding != BIND_COMPARISON else binding + 1
    return f"{_parenthesise_looser(first, looser)} {symbol} {_parenthesise_looser(second, binding + 1)}"


def _render_chain(node: Node, symbol: str, binding: int) -> str:
    """Join two or more arguments; a negative one of a sum is subtracted."""
    text = _parenthesise_looser(node.args[0], binding)
    for arg in node.args[1:]:
        positive = _strip_minus(arg) if node.op == "add" else None
        sign, term = (symbol, arg) if positive is None else ("-", positive)
        text += f" {sign} {_parenthesise_looser(term, binding + 1)}"
    return text


def _strip_minus(node: Node) -> Node | None:
    """Return the node without its leading minus, or None where it has none."""
    if node.op == "neg":
        return node.args[0]
    if node.op == "number" and (node.value or 0.0) < 0:
        return Node("number", value=-(node.value or 0.0))
    if node.op in ("mul", "div") and (rest := _strip_minus(node.args[0])) is not None:
        return node.with_args(rest, *node.args[1:])
    return None


def _render_arguments(node: Node) -> list[str]:
    """Return the arguments of a call in the order of its signature."""
    nodes = iter(node.args)
    values = dict(node.params)
    texts: list[str] = []
    for argument in OPERATORS[node.op].arguments:
        if argument.is_node:
            texts.append(render(next(nodes)))
        elif argument.name in values:
            text = render_parameter(argument, values[argument.name])
            texts.append(f"{argument.name}={text}" if argument.keyword else text)
    return texts + [render(node) for node in nodes]
