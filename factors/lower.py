"""Bring a tree to the steps that the engine computes: definitions written out, long sums as chains, powers made cheap.

Every rewriting gives the same bits: a sum with a negative term is a difference, and a square is a product.
"""

from __future__ import annotations

import functools

from .definitions import expanded
from .node import Node, call, number
from .operators import OPERATORS

HALF, TWO = number(0.5), number(2)


@functools.lru_cache(maxsize=16384)
def lowered(node: Node) -> Node:
    """Return the tree as the engine computes it; equal subtrees of different trees stay equal."""
    node = expanded(node)
    if node.is_leaf:
        return node
    args = tuple(lowered(arg) for arg in node.args)
    if len(args) > 2 and OPERATORS[node.op].many and OPERATORS[node.op].family in ("elementwise", "logic"):
        chain = args[0]
        for arg in args[1:]:
            chain = _step(Node(node.op, (chain, arg)))
        return chain
    return _step(node if args == node.args else node.with_args(*args))


def _step(node: Node) -> Node:
    """Return a step, or a cheaper one with the same values."""
    if node.op == "add" and node.args[1].op == "neg":
        return Node("sub", (node.args[0], node.args[1].args[0]))
    if node.op == "add" and node.args[0].op == "neg":
        return Node("sub", (node.args[1], node.args[0].args[0]))
    if node.op in ("power", "signed_power") and node.args[1] in (HALF, TWO):
        base, squared = node.args[0], node.args[1] == TWO
        if node.op == "power":
            return call("mul", base, base) if squared else call("sqrt", base)
        size = call("abs", base)
        return call("mul", base, size) if squared else call("mul", call("sign", base), call("sqrt", size))
    return node
