"""What a formula of the offline researcher looks like: one idea, said once.

A formula that blends two ideas scores above either, hides both, and is worth less than the two side by side: factors are
combined when they have been found. So what the researcher writes holds one look back inside another at most, adds and
takes away nothing but fields, and multiplies by nothing that looks back on both sides.
"""

from __future__ import annotations

from ...factors import OPERATORS, Node, walk

__all__ = ["MAX_PLAIN_NODES", "is_plain", "strip_wrappers"]

MAX_PLAIN_NODES = 7
"""Nodes, the wrappers of the last step not counted."""
MAX_LOOKBACK_DEPTH = 2
"""Operators over time that stand inside each other."""

OUTER_WRAPPERS = ("neg", "rank", "zscore", "scale")


def strip_wrappers(node: Node) -> Node:
    """Return a formula without the wrappers of its last step."""
    while node.op in OUTER_WRAPPERS:
        node = node.args[0]
    return node


def is_plain(node: Node) -> bool:
    """Tell whether a formula says one thing."""
    core = strip_wrappers(node)
    return (
        core.size <= MAX_PLAIN_NODES
        and _lookback_depth(core) <= MAX_LOOKBACK_DEPTH
        and not any(_is_blend(part) for _, part in walk(core))
    )


def _lookback_depth(node: Node) -> int:
    own = not node.is_leaf and OPERATORS[node.op].family == "time series"
    return own + max((_lookback_depth(arg) for arg in node.args), default=0)


def _is_blend(node: Node) -> bool:
    """Tell whether one step joins two things that look back, or adds what is no field."""
    if node.op in ("add", "sub"):
        return any((arg.args[0] if arg.op == "neg" else arg).op not in ("field", "number") for arg in node.args)
    if node.op == "mul":
        said = [arg for arg in node.args if _lookback_depth(arg) or arg.op in OUTER_WRAPPERS]
        return len(said) > 1 or len(node.args) > 2
    return False
