"""Lay out a batch of expressions as stages of steps, in which every distinct subtree occurs once.

A stage is either some steps on a tile of columns, computed one after the other while the tile is in the processor's
cache, or one step that compares the names of a day. Values that a later stage reads, or that are worth caching, are
stored; all others exist within their tile only.

Rewrites keep the values, except for rounding in long products: a sum with a negative term becomes a difference, a
square a product. The canonical form gathers the factors above and below the line; float32 cannot hold ``amount * amount
* cap * cap``, so ratios are computed factor by factor, one above and one below the line in turn.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from ..language.definitions import expand_operator
from ..language.node import Node, call_node, number_node
from ..language.operator import Compute
from ..operators import OPERATORS

MIN_KEPT_COST_NS = 2.0
"""Nanoseconds per cell from which on an operator's values are cached for later batches; cheaper ones are recomputed."""
MAX_CHEAP_COST_NS = 0.8
"""Nanoseconds per cell up to which a later stage recomputes a whole subtree: storing and reading it costs as much."""
HALF_NODE, TWO_NODE = number_node(0.5), number_node(2)
LARGEST_POWER = 16
"""Largest exponent of a power that is treated as a product; as in the canonical form."""


@dataclass(frozen=True)
class TileSteps:
    """Steps on a tile.

    Attributes
    ----------
    steps : list of Node
        In order of computation: arguments before the steps that read them.
    results : dict of Node to list of int
        The values that are results, with their places in the batch.
    """

    steps: list[Node]
    results: dict[Node, list[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class RowStep:
    """One step on whole rows, with the places of its values among the results."""

    step: Node
    results: list[int]


Stage = TileSteps | RowStep


@dataclass(frozen=True)
class EvaluationPlan:
    """The order of computation for a batch.

    Attributes
    ----------
    stages : list of Stage
        In the order of computation.
    stored : dict of int to set of Node
        For each stage, the operator nodes whose values outlive their tile: read by a later stage, or worth caching.
    known : list of Node
        Operator nodes whose values are cached.
    leaves : list of Node
        Columns, numbers and groupings that are read.
    done_with : dict of int to list of Node
        For each stage, the stored nodes that no later stage reads.
    """

    stages: list[Stage]
    stored: dict[int, set[Node]]
    known: list[Node]
    leaves: list[Node]
    done_with: dict[int, list[Node]]


def find_compute(node: Node) -> Compute:
    """Return how a step is computed."""
    compute = OPERATORS[node.op].compute
    assert compute is not None, f"{node.op} has neither a kernel nor a definition"
    return compute


def estimate_subtree_cost(node: Node) -> float:
    """Estimate the time to compute a subtree, in nanoseconds per cell."""
    node = expand_operator(node)
    return 0.0 if node.is_leaf else find_compute(node).cost + sum(estimate_subtree_cost(arg) for arg in node.args)


def lay_out(trees: Sequence[Node], at_hand: Callable[[Node], bool], *, keeps: bool = False) -> EvaluationPlan:
    """Order the distinct subtrees of a batch; nodes below a node whose values are cached are left out.

    With `keeps`, the values of expensive steps are stored for the cache.
    """
    roots = [lower_tree(tree) for tree in trees]
    walked = _SubtreeWalk(at_hand)
    for root in roots:
        walked.visit(root)
    stages = _repeat_cheap_steps(list(_iter_stages(walked, roots)))
    return _plan_lifetimes(walked, stages, keeps)


class _SubtreeWalk:
    """The distinct subtrees of a batch, arguments before the steps that read them."""

    def __init__(self, at_hand: Callable[[Node], bool]) -> None:
        self.steps: list[Node] = []
        self.known: list[Node] = []
        self.leaves: list[Node] = []
        self._at_hand = at_hand
        self._seen: set[Node] = set()

    def visit(self, node: Node) -> None:
        """Add the subtrees of a tree, arguments first."""
        if node in self._seen:
            return
        self._seen.add(node)
        if node.is_leaf:
            self.leaves.append(node)
        elif self._at_hand(node):
            self.known.append(node)
        else:
            for arg in node.args:
                self.visit(arg)
            self.steps.append(node)


def _iter_stages(walked: _SubtreeWalk, roots: Sequence[Node]) -> Iterator[Stage]:
    """Yield the stages: a run of steps on tiles ends where one needs whole rows."""
    places: dict[Node, list[int]] = {}
    for place, root in enumerate(roots):
        places.setdefault(root, []).append(place)
    at_once = {node: places[node] for node in (*walked.leaves, *walked.known) if node in places}
    stage = TileSteps([], at_once)
    for node in walked.steps:
        if find_compute(node).across:
            if stage.steps or stage.results:
                yield stage
            yield RowStep(node, places.get(node, []))
            stage = TileSteps([])
            continue
        stage.steps.append(node)
        if node in places:
            stage.results[node] = places[node]
    if stage.steps or stage.results:
        yield stage


def _repeat_cheap_steps(stages: list[Stage]) -> list[Stage]:
    """Let each stage on tiles recompute cheap steps of earlier stages."""
    computed: set[Node] = set()
    for stage in stages:
        if isinstance(stage, RowStep):
            computed.add(stage.step)
            continue
        steps: dict[Node, None] = {}
        for node in stage.steps:
            _add_cheap_arguments(node.args, computed, steps)
            steps[node] = None
        computed.update(stage.steps)
        stage.steps[:] = steps
    return stages


def _add_cheap_arguments(args: Sequence[Node], computed: set[Node], steps: dict[Node, None]) -> None:
    """Add the arguments of a step that an earlier stage computed and that are cheap to recompute."""
    for arg in args:
        if (
            arg in computed
            and arg not in steps
            and not find_compute(arg).across
            and estimate_subtree_cost(arg) <= MAX_CHEAP_COST_NS
        ):
            _add_cheap_arguments(arg.args, computed, steps)
            steps[arg] = None


def _plan_lifetimes(walked: _SubtreeWalk, stages: list[Stage], keeps: bool) -> EvaluationPlan:
    """Find the values that outlive their stage, and their last reader; a value computed twice has two lifetimes."""
    computed_at: dict[Node, int] = dict.fromkeys(walked.known, -1)
    last: dict[tuple[Node, int], int] = {}
    for at, stage in enumerate(stages):
        steps = stage.steps if isinstance(stage, TileSteps) else [stage.step]
        results = stage.results if isinstance(stage, TileSteps) else {}
        computed_at.update(dict.fromkeys(steps, at))
        readings = [*(arg for node in steps for arg in node.args), *results]
        last.update(
            {(node, computed_at[node]): at for node in readings if node in computed_at and computed_at[node] != at}
        )
        kept = [node for node in steps if keeps and find_compute(node).cost >= MIN_KEPT_COST_NS]
        for node in kept:
            last.setdefault((node, at), at)
    stored: dict[int, set[Node]] = {}
    done_with: dict[int, list[Node]] = {}
    for (node, born), at in last.items():
        stored.setdefault(born, set()).add(node)
        done_with.setdefault(at, []).append(node)
    return EvaluationPlan(stages, stored, walked.known, walked.leaves, done_with)


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
