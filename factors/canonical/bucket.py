"""Move windows to a few lengths, for originality: formulas that differ by a day or two usually meet."""

from __future__ import annotations

import math

from ..definitions import expand_operator
from ..language.node import Node
from .canonical import canonical_form

BUCKET_ROWS = (1, 2, 3, 5, 10, 20, 40, 60, 120, 250)
"""The lengths, in rows."""


def bucket_windows(node: Node) -> Node:
    """Return the canonical form with each window moved to the nearest of `BUCKET_ROWS`, by ratio.

    A long average (`ema` with a `span`) is moved by its span, and its window in proportion.
    """
    return canonical_form(_move_windows(node))


def _move_windows(node: Node) -> Node:
    node = expand_operator(node)
    args = tuple(map(_move_windows, node.args))
    moved = node.with_args(*args) if args else node
    if not node.window:
        return moved
    params = {name: value for name, value in moved.params if name != "min_periods"}
    if span := params.get("span"):
        params |= {"span": _nearest(span), "window": float(round(node.window / span * _nearest(span)))}
    else:
        params["window"] = _nearest(node.window)
    return Node(node.op, args, tuple(params.items()))


def _nearest(rows: float) -> float:
    """Return the nearest bucket, by ratio."""
    return float(min(BUCKET_ROWS, key=lambda bucket: abs(math.log(bucket / rows))))
