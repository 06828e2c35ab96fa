"""Lay out a batch of expressions as one list of steps in which every distinct subtree stands once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .definitions import expanded
from .node import Node
from .operators import OPERATORS
from .signature import Compute


@dataclass(frozen=True)
class Plan:
    """What a batch takes.

    Attributes
    ----------
    steps : list of Node
        Operator nodes to compute, arguments before what reads them.
    known : list of Node
        Operator nodes whose values are at hand.
    leaves : list of Node
        Columns, numbers and groupings that are read.
    uses : Counter
        How often each node's values are read, by steps and as results.
    """

    steps: list[Node] = field(default_factory=list)
    known: list[Node] = field(default_factory=list)
    leaves: list[Node] = field(default_factory=list)
    uses: Counter[Node] = field(default_factory=Counter)


def binary(node: Node) -> Node:
    """Return the tree with definitions written out, and sums, products and other long lists as chains of two.

    The chain runs from the left, so that expressions that begin alike share a part of it.
    """
    node = expanded(node)
    if node.is_leaf:
        return node
    args = tuple(binary(arg) for arg in node.args)
    if len(args) > 2 and how(node).by_rows and not how(node).across and OPERATORS[node.op].takes_many:
        chain = args[0]
        for arg in args[1:]:
            chain = Node(node.op, (chain, arg))
        return chain
    return node if args == node.args else node.with_args(*args)


def lay_out(roots: Sequence[Node], at_hand: Callable[[Node], bool]) -> Plan:
    """Order the distinct subtrees of a batch; what is below a node that is at hand is left out."""
    plan = Plan()
    plan.uses.update(roots)
    seen: set[Node] = set()

    def visit(node: Node) -> None:
        if node in seen:
            return
        seen.add(node)
        if node.is_leaf:
            plan.leaves.append(node)
        elif at_hand(node):
            plan.known.append(node)
        else:
            for arg in node.args:
                visit(arg)
            plan.uses.update(node.args)
            plan.steps.append(node)

    for root in roots:
        visit(root)
    return plan


def how(node: Node) -> Compute:
    """Return how a step is computed."""
    compute = OPERATORS[node.op].compute
    assert compute is not None, f"{node.op} has neither a kernel nor a definition"
    return compute


def cost(node: Node) -> float:
    """Return about what a subtree takes to compute, in nanoseconds a cell."""
    return 0.0 if node.is_leaf else how(node).cost + sum(cost(arg) for arg in node.args)
