"""Lay out a batch of expressions as stages of steps, in which every distinct subtree stands once.

A stage is either some steps that work on a tile of columns, one after the other while the tile is in the cache, or one
step that compares the names of a day. What a later stage reads, or the cache should keep, is stored; all other values
live and die within their tile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ..language.definitions import expand_operator
from ..language.node import Node
from ..language.operator import Compute
from ..operators import OPERATORS
from .lower import lower_tree

MIN_KEPT_COST_NS = 2.0
"""Nanoseconds a cell from which on an operator's values are kept for later batches: cheaper ones are computed again."""
MAX_CHEAP_COST_NS = 0.8
"""Nanoseconds a cell up to which a whole subtree is computed again by a later stage: storing and reading it costs as much."""


@dataclass(frozen=True)
class TileSteps:
    """Steps on a tile.

    Attributes
    ----------
    steps : list of Node
        Arguments before what reads them.
    results : dict of Node to list of int
        Which values are results, and their places in the batch.
    """

    steps: list[Node]
    results: dict[Node, list[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class RowStep:
    """One step on whole rows, and the places of its values among the results."""

    step: Node
    results: list[int]


Stage = TileSteps | RowStep


@dataclass(frozen=True)
class EvaluationPlan:
    """The order of computing for a batch.

    Attributes
    ----------
    stages : list of Stage
        In the order of computing.
    stored : dict of int to set of Node
        For each stage the operator nodes whose values outlive their tile: read by a later stage, or worth keeping.
    known : list of Node
        Operator nodes whose values are at hand.
    leaves : list of Node
        Columns, numbers and groupings that are read.
    done_with : dict of int to list of Node
        The stored nodes that nobody reads after a stage.
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
    """Estimate the time to compute a subtree, in nanoseconds a cell."""
    node = expand_operator(node)
    return 0.0 if node.is_leaf else find_compute(node).cost + sum(estimate_subtree_cost(arg) for arg in node.args)


def lay_out(trees: Sequence[Node], at_hand: Callable[[Node], bool], *, keeps: bool = False) -> EvaluationPlan:
    """Order the distinct subtrees of a batch; nodes below one whose values are cached are left out.

    With `keeps` the values of dear steps are stored, so that the cache may have them.
    """
    roots = [lower_tree(tree) for tree in trees]
    walked = _SubtreeWalk(at_hand)
    for root in roots:
        walked.visit(root)
    stages = _repeat_cheap_steps(list(_stages(walked, roots)))
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
        """Put down a tree."""
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


def _stages(walked: _SubtreeWalk, roots: Sequence[Node]) -> Iterator[Stage]:
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
    made: set[Node] = set()
    for stage in stages:
        if isinstance(stage, RowStep):
            made.add(stage.step)
            continue
        steps: dict[Node, None] = {}
        for node in stage.steps:
            _add_cheap_arguments(node.args, made, steps)
            steps[node] = None
        made.update(stage.steps)
        stage.steps[:] = steps
    return stages


def _add_cheap_arguments(args: Sequence[Node], made: set[Node], steps: dict[Node, None]) -> None:
    """Put down those arguments of a step that an earlier stage made and that are cheap to make again."""
    for arg in args:
        if (
            arg in made
            and arg not in steps
            and not find_compute(arg).across
            and estimate_subtree_cost(arg) <= MAX_CHEAP_COST_NS
        ):
            _add_cheap_arguments(arg.args, made, steps)
            steps[arg] = None


def _plan_lifetimes(walked: _SubtreeWalk, stages: list[Stage], keeps: bool) -> EvaluationPlan:
    """Find which values outlive their stage, and until when; a value made twice has two lives."""
    made: dict[Node, int] = dict.fromkeys(walked.known, -1)
    last: dict[tuple[Node, int], int] = {}
    for at, stage in enumerate(stages):
        steps = stage.steps if isinstance(stage, TileSteps) else [stage.step]
        results = stage.results if isinstance(stage, TileSteps) else {}
        made.update(dict.fromkeys(steps, at))
        read = [*(arg for node in steps for arg in node.args), *results]
        last.update({(node, made[node]): at for node in read if node in made and made[node] != at})
        if keeps:
            for node in steps:
                if find_compute(node).cost >= MIN_KEPT_COST_NS:
                    last.setdefault((node, at), at)
    stored: dict[int, set[Node]] = {}
    done_with: dict[int, list[Node]] = {}
    for (node, born), at in last.items():
        stored.setdefault(born, set()).add(node)
        done_with.setdefault(at, []).append(node)
    return EvaluationPlan(stages, stored, walked.known, walked.leaves, done_with)
