"""The case of a search: children of the sixty formulas, each seen for the first time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from alphaloom.factors import Expression, Node, ParseError, parse, render, replace_node, sample, walk

from ..rivals.wire import Tree
from .environments import OWN, Contender
from .measure import Lab
from .own import tree_of

BATCH = 20
SINGLES = 3
"""Children that a compiling engine is given one by one; each costs it about a second."""
CACHE = 1 << 28
"""Bytes of subtrees that alphaloom may keep, its default: the dearest of the parents'."""
SMALL = 8


@dataclass(frozen=True)
class Brood:
    """Children of one kind.

    Attributes
    ----------
    kind : str
        ``mutation`` or ``crossover``.
    children : tuple of Expression
        Formulas.
    known : float
        The share of their operator nodes that their parents have, in canonical form.
    """

    kind: str
    children: tuple[Expression, ...]
    known: float


def broods(
    parents: Sequence[Expression], number: int, seed: int, fields: Sequence[str], groups: Sequence[str]
) -> list[Brood]:
    """Breed children by one-subtree mutation and by crossover; operators are those of the parents.

    Parameters
    ----------
    parents : sequence of Expression
        Who is bred from.
    number : int
        Children of each kind.
    seed : int
        The only source of chance.
    fields, groups : sequence of str
        Columns and groupings that a new subtree may read.
    """
    rng = np.random.default_rng(seed)
    usable = {node.op for parent in parents for _, node in walk(parent.root)}

    def fresh(_: Node) -> Node:
        while True:
            drawn = sample(rng, fields=fields, max_size=SMALL).root
            nodes = [node for _, node in walk(drawn)]
            named = {node.name for node in nodes if node.op == "group"}
            if not drawn.is_leaf and {node.op for node in nodes} <= usable and named <= set(groups):
                return drawn

    def borrowed(_: Node) -> Node:
        return _pick(rng, parents[int(rng.integers(len(parents)))].root)[1]

    stock = {node for parent in parents for _, node in walk(parent.canonical) if not node.is_leaf}
    return [
        _brood(kind, tuple(_children(rng, parents, graft, number)), stock)
        for kind, graft in (("mutation", fresh), ("crossover", borrowed))
    ]


def _brood(kind: str, children: tuple[Expression, ...], stock: set[Node]) -> Brood:
    nodes = [node for child in children for node in {n for _, n in walk(child.canonical) if not n.is_leaf}]
    return Brood(kind, children, sum(node in stock for node in nodes) / len(nodes))


def _pick(rng: np.random.Generator, tree: Node) -> tuple[tuple[int, ...], Node]:
    """Choose an operator node of a tree."""
    places = [(path, node) for path, node in walk(tree) if not node.is_leaf]
    return places[int(rng.integers(len(places)))]


def _children(
    rng: np.random.Generator, parents: Sequence[Expression], graft: Callable[[Node], Node], number: int
) -> list[Expression]:
    """Replace one subtree of a parent each time, and keep what parses and is new."""
    found: dict[str, Expression] = {expression.id: expression for expression in parents}
    while len(found) < len(parents) + number:
        parent = parents[int(rng.integers(len(parents)))].root
        path, old = _pick(rng, parent)
        try:
            child = parse(render(replace_node(parent, path, graft(old))))
        except ParseError:
            continue
        found.setdefault(child.id, child)
    return list(found.values())[len(parents) :]


@dataclass(frozen=True)
class SearchCost:
    """CPU milliseconds a child.

    Attributes
    ----------
    kind : str
        How the children were bred.
    known : float
        The share of their nodes that the parents have.
    own : dict
        ``single``, ``batch`` and ``cached`` (batches, parents' subtrees kept).
    rival : dict
        ``single`` and ``batch``, each as milliseconds (compile, run).
    """

    kind: str
    known: float
    own: dict[str, float]
    rival: dict[str, tuple[float, float]]

    @property
    def ratio(self) -> float:
        """Return the rival's batch, compiling included, over alphaloom's with its default cache."""
        return sum(self.rival["batch"]) / self.own["cached"]


def search_cost(lab: Lab, brood: Brood, parents: Sequence[Expression], rival: Contender | None) -> SearchCost:
    """Measure what a child costs."""
    children = [tree_of(child.root) for child in brood.children]
    older = [tree_of(parent.root) for parent in parents]
    own = {
        "single": _own(lab, children, 1, older, cache=0),
        "batch": _own(lab, children, BATCH, older, cache=0),
        "cached": _own(lab, children, BATCH, older, cache=CACHE),
    }
    costs = {} if rival is None else _rival(lab, rival, children, brood.kind)
    return SearchCost(brood.kind, brood.known, own, costs)


def _batches(children: Sequence[Tree], size: int) -> list[Sequence[Tree]]:
    return [children[start : start + size] for start in range(0, len(children), size)]


def _own(lab: Lab, children: Sequence[Tree], size: int, parents: Sequence[Tree], cache: int) -> float:
    """Return CPU milliseconds a child, reading the formulas included; the parents were computed before."""
    spent = 0.0
    with lab.open(OWN, cache_bytes=cache) as process:
        process.prepare("warm", parents)
        process.run("warm")
        for place, batch in enumerate(_batches(children, size)):
            spent += process.prepare(f"b{place}", batch)["cpu"] + process.run(f"b{place}")["cpu"]
    return 1e3 * spent / len(children)


def _rival(lab: Lab, rival: Contender, children: Sequence[Tree], kind: str) -> dict[str, tuple[float, float]]:
    costs: dict[str, tuple[float, float]] = {}
    for name, size, given in (("single", 1, children[:SINGLES]), ("batch", BATCH, children)):
        compiled = ran = 0.0
        with lab.open(rival) as process:
            for place, batch in enumerate(_batches(given, size)):
                key = f"{kind}_{name}{place}"
                compiled += process.prepare(key, batch)["cpu"]
                ran += process.run(key)["cpu"]
        costs[name] = (1e3 * compiled / len(given), 1e3 * ran / len(given))
    return costs
