"""Drive each operator's own slow reference over a panel, window by window and day by day.

Values are float64; `evaluate` rounds each step to float32, as the engine stores them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from alphaloom.factors.language.definitions import expand_operator
from alphaloom.factors.language.node import Node
from alphaloom.factors.language.operator import Operator
from alphaloom.factors.operators import OPERATORS, fill_parameters
from alphaloom.market import Panel

Values = NDArray[np.float64]


def rolling(operator: Operator, series: list[Values], numbers: dict[str, float]) -> Values:
    """Apply an operator to each window of each name; fewer rows than the window at the start are a window too."""
    out = np.full(series[0].shape, np.nan)
    for day, j in np.ndindex(*out.shape):
        windows = [x[max(0, day - int(numbers["window"]) + 1) : day + 1, j] for x in series]
        there = sum((~np.isnan(sum(windows))).tolist())
        if there >= numbers["min_periods"]:
            out[day, j] = operator.reference(*windows, **numbers)  # type: ignore[misc]
    return out


def lagged(operator: Operator, x: Values, numbers: dict[str, float]) -> Values:
    """Apply an operator to today's row and the one `window` rows ago."""
    out, back = np.full(x.shape, np.nan), int(numbers["window"])
    for day, j in np.ndindex(*x.shape):
        if day >= back:
            out[day, j] = operator.reference(x[day - back : day + 1, j], **numbers)  # type: ignore[misc]
    return out


def across(operator: Operator, args: list[Any], inside: NDArray[np.bool_], numbers: dict[str, float]) -> Values:
    """Apply an operator to the present names of each day."""
    out = np.full(inside.shape, np.nan)
    for day in range(len(out)):
        there = inside[day] & ~np.isnan(sum(x[day] for x in args))
        if there.any():
            out[day, there] = operator.reference(*(x[day, there] for x in args), **numbers)  # type: ignore[misc]
    return out


def by_group(operator: Operator, args: list[Any], codes: Any, panel: Panel, numbers: dict[str, float]) -> Values:
    """Apply an operator to each group by itself."""
    out = np.full(panel.universe.shape, np.nan)
    for code in set(codes[codes >= 0]):
        inside = panel.universe & (codes == code)
        found = across(operator, args, inside, numbers)
        out[inside] = found[inside]
    return out


def apply(node: Node, args: list[Any], panel: Panel) -> Values:
    """Apply an operator to the values of its arguments; not finite is missing."""
    operator, numbers = OPERATORS[node.op], fill_parameters(node)
    grouped = any(argument.kind == "group" for argument in operator.nodes)
    with np.errstate(all="ignore"):
        if operator.interval in ("lag", "shift"):
            out = lagged(operator, args[0], numbers)
        elif operator.family == "time series":
            out = rolling(operator, args, numbers)
        elif operator.family == "cross-section" and grouped:
            out = by_group(operator, args[:-1], args[-1], panel, numbers)
        elif operator.family == "cross-section":
            out = across(operator, args, panel.universe, numbers)
        else:
            out = operator.reference(*args, **numbers)  # type: ignore[misc]
        return np.where(np.abs(out) <= np.finfo(np.float32).max, out, np.nan)


def leaf(node: Node, panel: Panel) -> Any:
    """Return a column, a number on every cell, or the groups."""
    if node.op == "group":
        return panel.groups[node.name]
    if node.op == "number":
        return np.full(panel.universe.shape, np.float32(node.value), np.float64)
    return narrow(panel.fields[node.name])


def narrow(values: Values) -> Values:
    return values.astype(np.float32).astype(np.float64)


def evaluate(node: Node, panel: Panel) -> Any:
    """Compute a tree, one step after the other, each rounded to float32."""
    node = expand_operator(node)
    if node.is_leaf:
        return leaf(node, panel)
    args = [evaluate(arg, panel) for arg in node.args]
    if len(args) > 2 and OPERATORS[node.op].family in ("elementwise", "logic") and OPERATORS[node.op].many:
        total = args[0]
        for arg in args[1:]:
            total = narrow(apply(node, [total, arg], panel))
        return total
    return narrow(apply(node, args, panel))
