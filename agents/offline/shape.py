"""What a formula of the offline researcher looks like: one idea, said once.

A formula that blends two ideas scores above either, hides both, and is worth less than the two side by side: factors are
combined when they have been found. So what the researcher writes holds one look back inside another at most, adds and
takes away nothing but fields, and multiplies by nothing that looks back on both sides.
"""

from __future__ import annotations

from ...factors import OPERATORS, Node, walk

__all__ = ["CORE", "FIELD_STEPS", "LARGEST", "PAIRS", "RAW", "WINDOWS", "bare", "is_plain"]

LARGEST = 7
"""Nodes, the wrappers of the last step not counted."""
DEEPEST = 2
"""Operators over time that stand inside each other."""

CORE = (
    "decay_linear", "delay", "delta", "ema", "ts_argmax", "ts_argmin", "ts_kurt", "ts_mad", "ts_max", "ts_mean", "ts_median",
    "ts_min", "ts_rank", "ts_returns", "ts_rsquare", "ts_skew", "ts_slope", "ts_std", "ts_sum", "ts_zscore",
)  # fmt: skip
"""Operators of one series and one window that stand for each other: its level, spread, shape, path and change."""
PAIRS = ("ts_corr", "ts_cov", "ts_beta")
"""Operators of two series and one window."""
FIELD_STEPS = ("abs", "add", "div", "log", "max", "min", "mul", "rank", "sub", "zscore")
"""What is done to fields and to what looks back, day by day."""
RAW = ("amount", "close", "high", "low", "open", "returns", "volume", "vwap")
"""Fields that fresh formulas are drawn from, where the market has them."""
WINDOWS = (3, 4, 5, 6, 8, 10, 12, 15, 18, 21, 25, 30, 35, 40, 45, 50, 55, 60)
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
