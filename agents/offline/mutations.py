"""Typed changes of formulas: small steps, wraps, crossings, and the directed changes that a critique asks for.

Every change takes a tree and returns a tree or None; the parser checks whether its units are still valid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ...factors import OPERATORS, Node, parse, replace_node, walk
from ...factors.space import ACTIVITY, CORE, DRAWN_PRICES, PAIR_OPERATORS
from ..memory.operator_outcomes import ANY_WEAKNESS, MUTATION_PREFIX, NO_WEAKNESS

LADDER = (2, 3, 5, 8, 10, 15, 20, 30, 40, 60, 90, 120, 180, 250)

DELAY_LAGS, STRETCHES = (1, 2, 3, 5, 10, 20), (0.25, 0.5, 2.0, 4.0)
"""Days by which a formula is delayed, and factors that scale all its windows."""

SMOOTHERS = ("ts_mean", "decay_linear", "ema")

CROSS_SECTION_OPERATORS = ("rank", "zscore", "demean")

NodePath = tuple[int, ...]

OTHER_WEAKNESS_WEIGHT, MAX_OTHER_WEAKNESS_TRIES = 0.2, 8.0
"""Weight of a try on parents with other weaknesses, and the most that all of these count: they are a first guess."""

MAX_EFFECTIVE_TRIES = 40.0
"""Largest number of tries behind an estimate: useful changes vary during a search, and an operator may win again."""

MAX_PLAIN_NODES = 7
"""Nodes of a plain formula, without the wrappers of the last step."""

MAX_LOOKBACK_DEPTH = 2
"""Nested operators over time."""

OUTER_WRAPPERS = ("neg", "rank", "zscore", "scale")


@dataclass(frozen=True)
class ChangeMaterial:
    """The material of changes: the fields and groups of the market, and other formulas to cross with."""

    fields: tuple[str, ...]
    groups: tuple[str, ...]
    mates: tuple[Node, ...] = ()


Change = Callable[[Node, ChangeMaterial, np.random.Generator], Node | None]


def draw_name(rng: np.random.Generator, items: Sequence[str]) -> str:
    """Return one of the names at random."""
    return items[int(rng.integers(len(items)))]


def _draw_place(node: Node, rng: np.random.Generator, fits: Callable[[Node], bool]) -> tuple[NodePath, Node] | None:
    """Return a random matching place in the tree with its path, or None."""
    places = [(path, part) for path, part in walk(node) if fits(part)]
    return places[int(rng.integers(len(places)))] if places else None


def _draw_window(rng: np.random.Generator, short: bool = False) -> float:
    ladder = LADDER[1:6] if short else LADDER[1:-2]
    return float(ladder[int(rng.integers(len(ladder)))])


def _step_window(node: Node, rng: np.random.Generator, ways: Sequence[int]) -> Node | None:
    match = _draw_place(node, rng, lambda part: part.window > 0)
    if match is None:
        return None
    path, part = match
    return replace_node(node, path, part.with_params(window=_step_on_ladder(part.window, int(rng.choice(list(ways))))))


def _step_on_ladder(window: float, steps: int) -> float:
    """Return the window `steps` rungs away from the rung nearest to this one."""
    at = _find_rung(window)
    return float(LADDER[min(max(at + steps, 0), len(LADDER) - 1)])


@lru_cache(maxsize=512)
def _find_rung(window: float) -> int:
    """Return the place of the nearest rung, by ratio; the lower one of two."""
    return int(np.argmin([abs(np.log(rung / window)) for rung in LADDER]))


def nudge_window(node: Node, _material: ChangeMaterial, rng: np.random.Generator) -> Node | None:
    """Move one window a step or two up or down."""
    return _step_window(node, rng, (-2, -1, 1, 2))


def retune(node: Node, _material: ChangeMaterial, rng: np.random.Generator) -> Node | None:
    """Move every window by some steps, each independently: single steps do not reach a change of three windows."""
    places = [path for path, part in walk(node) if part.window > 0]
    for path in places:
        part = dict(walk(node))[path]
        node = replace_node(node, path, part.with_params(window=_step_on_ladder(part.window, int(rng.integers(-3, 4)))))
    return node if len(places) > 1 else None


def shorten(node: Node, _material: ChangeMaterial, rng: np.random.Generator) -> Node | None:
    """Shorten one window."""
    return _step_window(node, rng, (-3, -2, -1))


def lengthen(node: Node, _material: ChangeMaterial, rng: np.random.Generator) -> Node | None:
    """Lengthen one window."""
    return _step_window(node, rng, (1, 2, 3))


def swap_field(node: Node, material: ChangeMaterial, rng: np.random.Generator) -> Node | None:
    """Read another field, mostly one of the same kind."""
    match = _draw_place(node, rng, lambda part: part.op == "field")
    if match is None:
        return None
    path, part = match
    kind = next((kind for kind in (DRAWN_PRICES, ACTIVITY) if part.name in kind), ())
    near = [name for name in kind if name in material.fields and name != part.name]
    others = [name for name in material.fields if name != part.name]
    choices = near if near and rng.random() < 0.7 else others
    return replace_node(node, path, part.__class__("field", name=draw_name(rng, choices))) if choices else None


def swap_operator(node: Node, _material: ChangeMaterial, rng: np.random.Generator) -> Node | None:
    """Replace one operator by another of the same shape."""
    shapes = (CORE, CROSS_SECTION_OPERATORS, ("add", "sub", "mul", "div"), PAIR_OPERATORS, ("max", "min"))
    match = _draw_place(node, rng, lambda part: any(part.op in shape for shape in shapes) and len(part.args) <= 2)
    if match is None:
        return None
    path, part = match
    shape = next(shape for shape in shapes if part.op in shape)
    window = {"window": part.param("window", 0.0)} if part.window else {}
    other = Node(draw_name(rng, [name for name in shape if name != part.op]), part.args, tuple(window.items()))
    return replace_node(node, path, other)


def wrap(node: Node, _material: ChangeMaterial, rng: np.random.Generator) -> Node | None:
    """Add one step around a part: over time, across stocks, or against its own past."""
    match = _draw_place(node, rng, lambda part: part.op not in ("number", "group"))
    if match is None:
        return None
    path, part = match
    kind = rng.random()
    if kind < 0.5:
        outer = Node(draw_name(rng, CORE), (part,), (("window", _draw_window(rng)),))
    elif kind < 0.7:
        outer = Node("rank", (part,))
    elif kind < 0.85:
        mean = Node(draw_name(rng, SMOOTHERS), (part,), (("window", _draw_window(rng)),))
        outer = Node(draw_name(rng, ("div", "sub")), (part, mean))
    else:
        outer = Node(draw_name(rng, ("abs", "sign", "log")), (part,))
    return replace_node(node, path, outer)


def hoist(node: Node, _material: ChangeMaterial, rng: np.random.Generator) -> Node | None:
    """Drop one step: a part replaces the step around it."""
    match = _draw_place(node, rng, lambda part: any(arg.op not in ("number", "group") for arg in part.args))
    if match is None:
        return None
    path, part = match
    inner = [arg for arg in part.args if arg.op not in ("number", "group")]
    return replace_node(node, path, inner[int(rng.integers(len(inner)))])


def graft(node: Node, material: ChangeMaterial, rng: np.random.Generator) -> Node | None:
    """Replace a part by a part of another formula, or by a fresh block."""
    match = _draw_place(node, rng, lambda part: part.op not in ("number", "group"))
    return replace_node(node, match[0], _draw_donor(material, rng)) if match else None


def attach(node: Node, material: ChangeMaterial, rng: np.random.Generator) -> Node | None:
    """Join the formula, or a part of it, with a block."""
    match = _draw_place(node, rng, lambda part: part.op not in ("number", "group"))
    if match is None:
        return None
    path, part = match
    block = _draw_donor(material, rng)
    kind = rng.random()
    if kind < 0.4:
        joined = Node(draw_name(rng, ("mul", "add", "sub")), (Node("rank", (part,)), Node("rank", (block,))))
    elif kind < 0.75:
        joined = Node(draw_name(rng, ("div", "mul", "sub", "add")), (part, block))
    else:
        joined = Node(draw_name(rng, PAIR_OPERATORS), (part, block), (("window", _draw_window(rng)),))
    return replace_node(node, path, joined)


def _draw_donor(material: ChangeMaterial, rng: np.random.Generator) -> Node:
    """Return a part of a mate, or a block of one field."""
    if material.mates and rng.random() < 0.35:
        mate = material.mates[int(rng.integers(len(material.mates)))]
        match = _draw_place(mate, rng, lambda part: part.op not in ("number", "group") and part.size <= 6)
        if match:
            return match[1]
    leaf = Node("field", name=draw_name(rng, material.fields))
    return leaf if rng.random() < 0.3 else Node(draw_name(rng, CORE), (leaf,), (("window", _draw_window(rng)),))


def smooth(node: Node, _material: ChangeMaterial, rng: np.random.Generator) -> Node | None:
    """Average the formula, or a part of it, over some days."""
    path: NodePath = ()
    if rng.random() < 0.3:
        match = _draw_place(node, rng, lambda part: part.op not in ("number", "group"))
        path = match[0] if match else ()
    part = dict(walk(node))[path]
    return replace_node(
        node, path, Node(draw_name(rng, SMOOTHERS), (part,), (("window", _draw_window(rng, short=True)),))
    )


def neutralise(node: Node, material: ChangeMaterial, rng: np.random.Generator) -> Node | None:
    """Compare within groups if there are any; else combine the formula's ranks with those of a likely exposure."""
    if material.groups and rng.random() < 0.6:
        by = Node("group", name=draw_name(rng, material.groups))
        return Node(draw_name(rng, ("group_rank", "group_demean", "group_zscore")), (node, by))
    hidden = parse(draw_name(rng, ("ts_std(returns, 60)", "ts_mean(close * volume, 60)", "ts_mean(returns, 120)"))).root
    ranks = Node("rank", (node,)), Node("rank", (hidden,))
    return Node(draw_name(rng, ("sub", "add", "mul")), ranks)


def retime(node: Node, _material: ChangeMaterial, rng: np.random.Generator) -> Node | None:
    """Delay the formula, or a part of it, by some days, or stretch all its windows by one factor."""
    if rng.random() < 0.5:
        path, part = _draw_place(node, rng, lambda part: part.op not in ("number", "group")) or ((), node)
        return replace_node(node, path, Node("delay", (part,), (("window", float(rng.choice(DELAY_LAGS))),)))
    windowed = [(path, part) for path, part in walk(node) if part.window > 0]
    factor = float(rng.choice(STRETCHES))
    for path, _ in windowed:
        part = dict(walk(node))[path]
        window = min(max(round(factor * part.window), LADDER[0]), LADDER[-1])
        node = replace_node(node, path, part.with_params(window=float(window)))
    return node if windowed else None


def condition(node: Node, _material: ChangeMaterial, rng: np.random.Generator) -> Node | None:
    """Weigh the formula by how active its mechanism is."""
    texts = ("ts_zscore(volume, 20)", "ts_std(returns, 20)", "ts_mean(high / low, 10)", "ts_rank(volume, 60)")
    active = Node("rank", (parse(draw_name(rng, texts)).root,))
    return Node("mul", (Node("sub", (Node("rank", (node,)), Node("number", value=0.5))), active))


def combine(node: Node, material: ChangeMaterial, rng: np.random.Generator) -> Node | None:
    """Replace a part by a part of a mate: the crossover of two formulas."""
    if not material.mates:
        return None
    mate = material.mates[int(rng.integers(len(material.mates)))]
    match = _draw_place(node, rng, lambda part: part.op not in ("number", "group"))
    donor = _draw_place(mate, rng, lambda part: not part.is_leaf)
    return replace_node(node, match[0], donor[1]) if match and donor else None


def invert(node: Node, _material: ChangeMaterial, _rng: np.random.Generator) -> Node | None:
    """Change the sign."""
    return node.args[0] if node.op == "neg" else Node("neg", (node,))


LOCAL_CHANGES: tuple[tuple[Change, float], ...] = (
    (nudge_window, 2.0),
    (retune, 2.0),
    (swap_field, 1.5),
    (swap_operator, 2.0),
    (wrap, 1.5),
    (hoist, 1.5),
    (graft, 1.5),
    (attach, 1.5),
)
"""Undirected changes with their weights."""


DIRECTED_CHANGES: dict[str, Change] = {
    "smooth": smooth,
    "neutralise": neutralise,
    "shorten": shorten,
    "lengthen": lengthen,
    "retime": retime,
    "condition": condition,
    "swap_field": swap_field,
    "combine": combine,
    "invert": invert,
    "simplify": hoist,
}
"""The change for each operator of a critique."""


CHANGE_WEIGHTS = {MUTATION_PREFIX + change.__name__: weight for change, weight in LOCAL_CHANGES}
"""The weights of undirected changes, by the intent that names them."""


CHANGES: dict[str, Change] = {
    **DIRECTED_CHANGES,
    **{MUTATION_PREFIX + change.__name__: change for change, _ in LOCAL_CHANGES},
}
"""All changes, by the intent that names them."""


@dataclass(frozen=True)
class Bandit:
    """Choose operators by their outcomes.

    `seen` holds `(tried, better)` by operator and weakness; `any` stands for all weaknesses together.
    """

    seen: Mapping[tuple[str, str], tuple[float, float]]

    @classmethod
    def parse(cls, rows: Sequence[Any]) -> Bandit:
        """Return the bandit from a prompt's rows `{operator, where, tried, better}`; other rows are skipped."""
        valid = [row for row in rows if isinstance(row, dict) and {"operator", "where", "tried", "better"} <= {*row}]
        return cls({(row["operator"], row["where"]): (float(row["tried"]), float(row["better"])) for row in valid})

    def choose(self, weights: Mapping[str, float], where: str, rng: np.random.Generator) -> str:
        """Return one operator with a weight above 0, for a parent with this weakness (Thompson sampling)."""
        draws = {}
        for name, weight in weights.items():
            tried, better = self.evidence(name, where)
            draws[name] = rng.beta(weight + better, 1.0 + tried - better)
        return max(draws, key=lambda name: draws[name])

    def evidence(self, operator: str, where: str = NO_WEAKNESS) -> tuple[float, float]:
        """Return the effective tries and successes of an operator."""
        tried, better = self.seen.get((operator, where), (0.0, 0.0))
        all_tried, all_better = self.seen.get((operator, ANY_WEAKNESS), (tried, better))
        other_tries, share = all_tried - tried, _try_weight(all_tried - tried)
        tried, better = tried + share * other_tries, better + share * (all_better - better)
        scale = min(1.0, MAX_EFFECTIVE_TRIES / tried) if tried else 1.0
        return scale * tried, scale * better


def _try_weight(tried: float) -> float:
    """Return the weight of each of so many tries on parents with other weaknesses."""
    return min(OTHER_WEAKNESS_WEIGHT, MAX_OTHER_WEAKNESS_TRIES / tried) if tried else 0.0


def strip_wrappers(node: Node) -> Node:
    """Return a formula without the wrappers of its last step."""
    while node.op in OUTER_WRAPPERS:
        node = node.args[0]
    return node


def is_plain(node: Node) -> bool:
    """Return whether a formula expresses one idea."""
    core = strip_wrappers(node)
    return (
        core.size <= MAX_PLAIN_NODES
        and _measure_lookback_depth(core) <= MAX_LOOKBACK_DEPTH
        and not any(_is_blend(part) for _, part in walk(core))
    )


def _measure_lookback_depth(node: Node) -> int:
    own = not node.is_leaf and OPERATORS[node.op].family == "time series"
    return own + max((_measure_lookback_depth(arg) for arg in node.args), default=0)


def _is_blend(node: Node) -> bool:
    """Return whether one step joins two parts that look back, or adds parts that are not fields."""
    if node.op in ("add", "sub"):
        return any((arg.args[0] if arg.op == "neg" else arg).op not in ("field", "number") for arg in node.args)
    if node.op == "mul":
        factors = [arg for arg in node.args if _measure_lookback_depth(arg) or arg.op in OUTER_WRAPPERS]
        return len(factors) > 1 or len(node.args) > 2
    return False
