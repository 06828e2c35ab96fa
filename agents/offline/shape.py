"""What a formula of the offline researcher looks like: one idea, said once.

A formula that blends two ideas scores above either, hides both, and is worth less than the two side by side: factors are
combined when they have been found. So what the researcher writes holds one look back inside another at most, adds and
takes away nothing but fields, and multiplies by nothing that looks back on both sides.
"""

from __future__ import annotations

from ...factors import OPERATORS, Node, walk

__all__ = ["LARGEST", "bare", "is_plain"]

LARGEST = 7
"""Nodes, the wrappers of the last step not counted."""
DEEPEST = 2
"""Operators over time that stand inside each other."""

WRAPPERS = ("neg", "rank", "zscore", "scale")


def bare(node: Node) -> Node:
    """Return a formula without the wrappers of its last step."""
    while node.op in WRAPPERS:
        node = node.args[0]
    return node


def is_plain(node: Node) -> bool:
    """Tell whether a formula says one thing."""
    core = bare(node)
    return core.size <= LARGEST and _looks_back(core) <= DEEPEST and not any(_blends(part) for _, part in walk(core))


def _looks_back(node: Node) -> int:
    own = not node.is_leaf and OPERATORS[node.op].family == "time series"
    return own + max((_looks_back(arg) for arg in node.args), default=0)


def _blends(node: Node) -> bool:
    """Tell whether one step joins two things that look back, or adds what is no field."""
    if node.op in ("add", "sub"):
        return any((arg.args[0] if arg.op == "neg" else arg).op not in ("field", "number") for arg in node.args)
    if node.op == "mul":
        said = [arg for arg in node.args if _looks_back(arg) or arg.op in WRAPPERS]
        return len(said) > 1 or len(node.args) > 2
    return False
