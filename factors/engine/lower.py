"""Lower a tree to the steps that the engine computes: definitions expanded, long sums as chains, cheap powers.

Rewrites keep the values, except for rounding in long products: a sum with a negative term becomes a difference, a
square a product. The canonical form gathers the factors above and below the line; float32 cannot hold ``amount * amount
* cap * cap``, so ratios are computed factor by factor, one above and one below the line in turn.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from itertools import zip_longest

from ..language.definitions import expand_operator
from ..language.node import Node, call_node, number_node
from ..operators import OPERATORS

HALF_NODE, TWO_NODE = number_node(0.5), number_node(2)
LARGEST_POWER = 16
"""Largest exponent of a power that is treated as a product; as in the canonical form."""


@functools.lru_cache(maxsize=4096)
def lower_tree(node: Node) -> Node:
    """Return the tree as the engine computes it; equal subtrees of different trees stay equal."""
    node = expand_operator(node)
    if node.is_leaf:
        return node
    if node.op in ("mul", "div", "power") and (ratio := _multiply_in_turn(list(_iter_factors(node, 1)))):
        return ratio
    args = tuple(lower_tree(arg) for arg in node.args)
    if len(args) > 2 and OPERATORS[node.op].many and OPERATORS[node.op].family in ("elementwise", "logic"):
        chain = args[0]
        for arg in args[1:]:
            chain = _cheapen(Node(node.op, (chain, arg)))
        return chain
    return _cheapen(node if args == node.args else node.with_args(*args))


def _iter_factors(node: Node, power: int) -> Iterator[tuple[Node, int]]:
    """Yield the factors of a product with their exponents; a ratio or negative power below the line is one factor."""
    node = expand_operator(node)
    if node.op == "mul":
        for arg in node.args:
            yield from _iter_factors(arg, power)
    elif node.op == "div" and power > 0:
        yield from _iter_factors(node.args[0], power)
        yield from _iter_factors(node.args[1], -power)
    elif node.op == "power" and (whole := _whole_exponent(node.args[1])):
        yield from _iter_factors(node.args[0], power * whole)
    else:
        yield node, power


def _whole_exponent(exponent: Node) -> int:
    """Return an exponent that is a whole number from 2 to `LARGEST_POWER`; 0 for any other."""
    value = exponent.value or 0.0
    return int(value) if exponent.op == "number" and value == int(value) and 2 <= value <= LARGEST_POWER else 0


def _multiply_in_turn(factors: list[tuple[Node, int]]) -> Node | None:
    """Multiply and divide in turn, constants first; None where the original tree is as safe from overflow."""
    powers = [abs(power) for _, power in factors]
    constants = any(node.op == "number" for node, _ in factors)
    below = any(power < 0 for _, power in factors)
    if sum(powers) <= 2 or not (below or (constants and max(powers) > 1)):
        return None
    whole = 1 if constants else math.gcd(*powers)
    factors = sorted(((node, power // whole) for node, power in factors), key=lambda factor: factor[0].op != "number")
    above = [node for node, power in factors for _ in range(power)]
    under = [node for node, power in factors for _ in range(-power)]
    if whole > 1 and len(above) + len(under) == 1:
        return None
    while len(above) > 1 and above[0].op == "number":
        above[:2] = [Node("mul", (lower_tree(above[0]), lower_tree(above[1])))]
    chain = None
    for over, low in zip_longest(above, under):
        if over is not None:
            chain = lower_tree(over) if chain is None else Node("mul", (chain, lower_tree(over)))
        if low is not None:
            chain = Node("div", (chain or number_node(1), lower_tree(low)))
    assert chain is not None
    return chain if whole == 1 else _cheapen(call_node("power", chain, number_node(whole)))


def _cheapen(node: Node) -> Node:
    """Return a step, or a cheaper one with the same values."""
    if node.op == "add" and node.args[1].op == "neg":
        return Node("sub", (node.args[0], node.args[1].args[0]))
    if node.op == "add" and node.args[0].op == "neg":
        return Node("sub", (node.args[1], node.args[0].args[0]))
    if node.op in ("power", "signed_power") and node.args[1] in (HALF_NODE, TWO_NODE):
        base, squared = node.args[0], node.args[1] == TWO_NODE
        if node.op == "power":
            return call_node("mul", base, base) if squared else call_node("sqrt", base)
        size = call_node("abs", base)
        return (
            call_node("mul", base, size)
            if squared
            else call_node("mul", call_node("sign", base), call_node("sqrt", size))
        )
    return node
