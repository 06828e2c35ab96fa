"""Alphaloom's own engine behind the same questions that are put to its rivals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from alphaloom.factors import Engine, Node, parse, render

from ..rivals.wire import Array, Tree, load, serve
from .prices import panel


def tree_of(node: Node) -> Tree:
    """Return a node as a rival reads it: every number of the operator by name, but those left at their default."""
    if node.op == "number":
        return ["number", node.value]
    if node.op in ("field", "group"):
        return [node.op, node.name]
    return [node.op, dict(node.params), *(tree_of(arg) for arg in node.args)]


def text_of(tree: Tree) -> str:
    """Return the formula of a tree that `tree_of` made."""
    return render(_node_of(tree))


def _node_of(tree: Tree) -> Node:
    if tree[0] == "number":
        return Node("number", value=tree[1])
    if tree[0] in ("field", "group"):
        return Node(tree[0], name=tree[1])
    return Node(tree[0], tuple(_node_of(child) for child in tree[2:]), tuple(tree[1].items()))


class Own:
    """The engine over the columns of a folder.

    Parameters
    ----------
    data : Path
        The folder of the columns.
    settings : dict
        `threads`, `cache_bytes`, and `stream`: results are dropped as soon as they come.
    """

    def __init__(self, data: Path, settings: dict[str, Any]) -> None:
        self.engine = Engine(
            panel(load(data)), threads=int(settings.get("threads", 1)), cache_bytes=int(settings.get("cache_bytes", 0))
        )
        self.stream = bool(settings.get("stream", False))
        self.ready: dict[str, list[Node]] = {}
        self.room: list[Array] = []
        """Where results are written, made once and used by every run: KunQuant does the same."""

    def unable(self, tree: Tree) -> str:
        """Say nothing: the formulas are its own."""
        return ""

    def prepare(self, key: str, trees: Sequence[Tree]) -> Any:
        """Read the formulas, as a search does that is given text."""
        self.ready[key] = [parse(text_of(tree)).canonical for tree in trees]
        if not self.stream:
            lacking = range(len(trees) - len(self.room))
            self.room += [np.empty(self.engine.panel.universe.shape, np.float32) for _ in lacking]

    def run(self, key: str) -> list[Array]:
        """Compute them."""
        if self.stream:
            for _ in self.engine.stream([parse(render(tree)) for tree in self.ready[key]]):
                continue
            return []
        return self.engine.compute(self.ready[key], out=self.room[: len(self.ready[key])])


if __name__ == "__main__":
    serve(Own)
