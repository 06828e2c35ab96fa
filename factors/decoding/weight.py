"""Bound the size of a formula's canonical form, so that no sentence of a grammar exceeds the limits of `parse`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ..describe.render import render_number, render_parameter
from ..language.canonical import canonicalise
from ..language.definitions import expand_operator
from ..language.linear import split_coefficient, to_fraction
from ..language.node import Node, field_node, group_node
from ..language.operator import Operator
from ..language.parse import MAX_NODES
from ..language.syntax import MAX_FORMULA_CHARS, MAX_FORMULA_DEPTH
from ..operators import OPERATORS

CANONICAL_GROWTH = 3
"""The canonical form may turn each node into three: a factor and its product, or an exponent and its power."""
COEFFICIENT_CHARS = 23
"""Characters of a coefficient of 12 digits in the canonical form, with its sign, exponent and parentheses."""
OPERATOR_CHARS = 80
"""Characters reserved for an operator around two arguments of the level below."""
PUNCTUATION_CHARS = 3
"""Characters around an operator or an argument: parentheses, commas, spaces, a minus."""
NUMBER_SLACK_CHARS = 6
"""Characters that a number of a call may need beyond its largest value, with its comma."""
FULL_LEVEL = 6
"""The level from which on the room no longer grows."""
MAX_NUMERATOR_BITS, MAX_DENOMINATOR_BITS = 33, 16
"""Limits on the bits of a coefficient (see `Weight`).

Constants are between 1e-15 and 1e15, which is 49.8 bits either way, and a sum is written with its coefficients over
that of its first term: at most ``2 ** (MAX_NUMERATOR_BITS + MAX_DENOMINATOR_BITS)``.
"""


@dataclass(frozen=True, slots=True)
class Weight:
    """Upper bounds on a formula with its definitions expanded.

    Attributes
    ----------
    nodes, levels, chars : int
        Its size, depth and characters.
    above, below : float
        A coefficient that can be moved out of it is a fraction of at most ``2 ** above``, whose denominator is at most
        ``2 ** below``; so it is 0 or at least ``2 ** -below``.
    """

    nodes: int = 0
    levels: int = 0
    chars: int = 0
    above: float = 0.0
    below: float = 0.0

    def join(self, other: Weight) -> Weight:
        """Return the larger of both bounds, one by one."""
        return Weight(
            max(self.nodes, other.nodes),
            max(self.levels, other.levels),
            max(self.chars, other.chars),
            max(self.above, other.above),
            max(self.below, other.below),
        )

    @property
    def holds_back(self) -> bool:
        """Return whether no coefficient can be moved out."""
        return self.above == self.below == 0


@dataclass(frozen=True, slots=True)
class LevelRoom:
    """Limits of the formulas at each level of a grammar.

    A level has twice the room of the one below, so that any two arguments of the level below fit; the last level has
    all of it.

    Attributes
    ----------
    depth : int
        Number of levels.
    """

    depth: int

    def holds(self, weight: Weight, level: int, bits: int = 0) -> bool:
        """Return whether a formula of a weight fits a level, 1 for leaves, with coefficients of level `bits`."""
        share, bit_share = (2.0 ** min(rank - min(self.depth, FULL_LEVEL), 0) for rank in (level, bits or level))
        return (
            weight.nodes <= min(2**level - 1, MAX_NODES // CANONICAL_GROWTH)
            and weight.levels <= MAX_FORMULA_DEPTH // CANONICAL_GROWTH
            and weight.chars <= (MAX_FORMULA_CHARS + OPERATOR_CHARS) * share - OPERATOR_CHARS
            and weight.above <= (MAX_NUMERATOR_BITS + 1) * bit_share - 1
            and weight.below <= MAX_DENOMINATOR_BITS * bit_share
        )


def weigh_leaf(node: Node) -> Weight:
    """Return the weight of a column, a grouping or a number."""
    if node.op != "number":
        return Weight(1, 1, len(node.name))
    value = abs(to_fraction(node.value or 0.0)) or Fraction(1)
    return Weight(
        1, 1, len(render_number(node.value or 0.0)) + 1, math.log2(value.numerator), math.log2(value.denominator)
    )


def weigh_tree(node: Node, weights: Mapping[str, Weight]) -> Weight:
    """Return the weight of an expanded tree; leaves named in `weights` represent formulas of that weight."""
    node = expand_operator(node)
    if node.op == "field" and node.name in weights:
        return weights[node.name]
    if node.is_leaf:
        return weigh_leaf(node)
    args = [weigh_tree(arg, weights) for arg in node.args]
    above, below = _bound_bits(node, args)
    return Weight(
        1 + sum(arg.nodes for arg in args),
        1 + max((arg.levels for arg in args), default=0),
        _count_overhead(node, args) + sum(arg.chars for arg in args),
        above,
        below,
    )


def weigh_call(node: Node, args: Sequence[Weight | Node]) -> Weight:
    """Return the weight of an operator's node on other arguments: leaves, or formulas with known weights."""
    weights = {f"{place}": arg for place, arg in enumerate(args) if isinstance(arg, Weight)}
    nodes = [arg if isinstance(arg, Node) else field_node(f"{place}") for place, arg in enumerate(args)]
    return weigh_tree(node.with_args(*nodes), weights)


def _count_overhead(node: Node, args: Sequence[Weight]) -> int:
    """Return the characters of an operator without its arguments, plus those of the arguments' coefficients."""
    operator = OPERATORS[node.op]
    numbers = {argument.name: argument for argument in operator.numbers}
    keywords = sum(len(name) + 1 for name, _ in node.params if numbers[name].keyword)
    words = sum(len(render_parameter(numbers[name], value)) + NUMBER_SLACK_CHARS for name, value in node.params)
    carriers = sum(not arg.holds_back for arg in args)
    if operator.unit == "common" and carriers:
        carriers = len(args)
    return len(operator.name) + words + keywords + PUNCTUATION_CHARS * (1 + len(args)) + COEFFICIENT_CHARS * carriers


def _bound_bits(node: Node, args: Sequence[Weight]) -> tuple[float, float]:
    """Return the bits of the coefficient that a node can release, by `Operator.scaling` or by arithmetic."""
    operator = OPERATORS[node.op]
    if operator.unit == "common":
        return 1 + max(arg.above for arg in args), sum(arg.below for arg in args)
    above, below = _bound_own_bits(node.with_args(*_build_leaves(operator)))
    for rule, arg in zip(_list_scaling(operator, node), args, strict=False):
        up, down = (arg.below, arg.above + arg.below) if rule == "inverse" else (arg.above, arg.below)
        times = rule if isinstance(rule, int) else SCALING_POWERS.get(rule, 0)
        above, below = above + times * up, below + times * down
    return above, below


SCALING_POWERS = {"linear": 1, "absolute": 1, "mirror": 1, "inverse": 1, "square": 2}
"""The power of an argument's factor that an operator releases; see `Operator.scaling`."""


def _list_scaling(operator: Operator, node: Node) -> tuple[str | int, ...]:
    """Return the scaling rule of each argument; arithmetic has its own rules."""
    if operator.family != "elementwise" or not operator.infix:
        return operator.scaling
    if operator.unit == "power":
        exponent = node.args[1]
        return (math.ceil(abs(exponent.value or 0.0)) if exponent.op == "number" else 0,)
    return {"quotient": ("linear", "inverse")}.get(operator.unit, ("linear",) * len(operator.nodes))


def _build_leaves(operator: Operator) -> list[Node]:
    """Return one column for each panel argument."""
    condition = Node("lt", (field_node("open"), field_node("close")))
    return [
        group_node("sector")
        if argument.kind == "group"
        else condition
        if argument.kind == "condition"
        else field_node(f"x{place}")
        for place, argument in enumerate(operator.nodes)
    ]


def _bound_own_bits(node: Node) -> tuple[float, float]:
    """Return the bits of the coefficient that an operator adds itself: a sum is the window times a mean."""
    if OPERATORS[node.op].infix:
        return 0.0, 0.0
    coefficient = abs(split_coefficient(canonicalise(node))[0]) or Fraction(1)
    return math.log2(coefficient.numerator), math.log2(coefficient.denominator)
