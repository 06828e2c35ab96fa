"""Draw the outline of a formula: its tree without numbers, and the numbers beside it.

Two formulas are similar if their outlines share a subtree whose numbers are near each other. A window of 8 for 7, an
average with other weights or another threshold makes no new formula. Nearness is a distance of logarithms, not a
bucket, so there is no edge to step over. Outlines leave out what changes the order of a day's symbols hardly or not at
all: constant factors and negligible terms anywhere, the options of an operator (`min_periods`, `ddof`, `ties`), and
monotone steps at the end and under a rank. Arguments whose order does not matter are sorted by outline, so that no
window decides.

The text of an outline is the tree from its root down, `(ts_mean#.close;)`: operators with their arguments in
parentheses, `.field;`, `:group;`, and `#` for each number, in order. The text of a subtree occurs in it, and no other
part equals it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b, sha256
from operator import sub
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from ..language import canonical, definitions, linear
from ..language.canonical import DAY_WRAPPERS, SCALING, find_core
from ..language.linear import split_coefficient
from ..language.node import Node, call_node, number_node
from ..operators import OPERATORS
from . import rewrites, signs
from .rewrites import rewrite_tree
from .signs import negate_tree, strip_power

Numbers = tuple[float, ...]
NumberCodes = tuple[int, ...]
"""What nearness is measured on, one for each number; see `encode_number`."""

CODE_SCALE = 100.0
MAX_CODE_DISTANCE = 52
"""Two numbers are near if their logarithms, in hundredths, differ by no more: up to two thirds more, as 5 is to 3."""
OFFSET = 4000
"""Added to every size, so that the logarithm of a small number is above 0 and a sign can stand before it."""
MAX_CODED_NUMBER, MIN_CODED_NUMBER = 1e15, 1e-9

NEGLIGIBLE_TERM, NEGLIGIBLE_CONSTANT, NEGLIGIBLE_BOUNDED = 1e-9, 1e-3, 1e-2
"""Shares of the largest term below which a term, an added constant, or one of several bounded terms is negligible."""
BOUNDED_STEPS = frozenset({"group_rank", "minmax", "rank", "rank_gauss", "ts_corr", "ts_rank", "ts_zscore", "zscore"})


class Outline(NamedTuple):
    """The outline of a tree and of its subtrees.

    Attributes
    ----------
    text : str
        The tree without its numbers.
    numbers : tuple of float
        The numbers, in the order of the `#` of the text.
    codes : tuple of int
        What nearness is measured on: logarithms of the numbers in hundredths, with their signs.
    size : int
        Operators, fields, groups and constants; windows and weights are not counted.
    digest : bytes
        Eight bytes that depend on the text alone, made from those of the subtrees: equal in every process and machine.
    parts : tuple of Outline
        The subtrees one level below.
    node : Node
        The canonical tree that it was drawn from.
    """

    text: str
    numbers: Numbers
    codes: NumberCodes
    size: int
    digest: bytes
    parts: tuple[Outline, ...]
    node: Node

    @property
    def names_a_field(self) -> bool:
        """Return whether it reads a field; shared constants and groups are no similarity."""
        return bool(self.parts) or self.text[0] == "."


WeightedOutline = tuple[float, Outline]
"""A constant factor and the outline that it multiplies."""


@functools.lru_cache(maxsize=4096)
def draw_outline(tree: Node) -> Outline:
    """Return the outline of a canonical tree, its sign and its last monotone steps set aside."""
    return _draw_tree(_strip_order_steps(rewrite_tree(find_core(tree)), ORDER_STEPS)[1])[1]


def list_subtrees(whole: Outline) -> list[Outline]:
    """Return the distinct subtrees that read a field, the largest first."""
    distinct: dict[tuple[str, NumberCodes], Outline] = {}
    waiting = [whole]
    while waiting:
        part = waiting.pop()
        waiting += part.parts
        if part.names_a_field:
            distinct[part.text, part.codes] = part
    return sorted(distinct.values(), key=_size_key)


def _size_key(part: Outline) -> int:
    return -part.size


MONOTONE = frozenset({"arctan", "exp", "log", "sigmoid", "slog1p", "sqrt", "tanh"})
"""Steps on single cells that keep their order; a logarithm or root of what is below zero aside."""
ORDER_STEPS = DAY_WRAPPERS | MONOTONE | {"minmax", "rank_gauss", "winsorize", "winsorize_mad"}
"""Steps that keep the order of the names of a day, or nearly."""
IGNORED_UNDER: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        **dict.fromkeys(("rank", "rank_gauss", "group_rank"), ORDER_STEPS),
        **dict.fromkeys(("ts_rank", "ts_argmax", "ts_argmin"), MONOTONE),
    }
)
"""For an operator, the steps right under it that make no difference to it."""


def _strip_order_steps(tree: Node, steps: frozenset[str]) -> tuple[bool, Node]:
    """Return a tree without the steps that keep order, and whether it orders in reverse.

    Of a ratio and its inverse one is chosen; they order in reverse where both parts are positive.
    """
    reverse = False
    while True:
        factor, body = split_coefficient(tree)
        if body is None:
            return False, tree
        reverse, tree = reverse ^ (factor < 0), body
        bare = _strip_step(tree, steps)
        if bare is None:
            break
        tree = bare
    if tree.op == "div" and _is_inverse_chosen(tree):
        return not reverse, call_node("div", *tree.args[::-1])
    return reverse, tree


def _strip_step(tree: Node, steps: frozenset[str]) -> Node | None:
    """Take one step off that keeps order, or None where the last one does not."""
    first = tree.args[0] if tree.args else tree
    if bare := first if tree.op in steps else strip_power(tree):
        return bare
    if tree.op == "add" and tree.args[-1].op == "number":
        return first if len(tree.args) == 2 else tree.with_args(*tree.args[:-1])
    if tree.op == "ts_returns":
        return call_node("div", first, call_node("delay", first, window=tree.window))
    if tree.op == "div" and first.op == "add" and len(first.args) == 2:
        rest = [arg for arg in first.args if arg not in (tree.args[1], negate_tree(tree.args[1]))]
        return call_node("div", rest[0], tree.args[1]) if len(rest) == 1 else None
    return None


def _is_inverse_chosen(ratio: Node) -> bool:
    """Return whether the inverse of a ratio is the one that is chosen."""
    above, below = ratio.args
    return "number" not in (above.op, below.op) and _draw_tree(above)[1].digest > _draw_tree(below)[1].digest


@functools.lru_cache(maxsize=4096)
def _draw_tree(node: Node) -> WeightedOutline:
    """Return the outline of a tree and the factor before it."""
    return DRAWING.get(node.op, _call)(node)


def _leaf(node: Node) -> WeightedOutline:
    text = f".{node.name};" if node.op == "field" else f":{node.name};"
    return 1.0, Outline(text, (), (), 1, _hash_outline(text, ()), (), node)


def _number(node: Node) -> WeightedOutline:
    return node.value or 0.0, UNIT_OUTLINE


def _negative(node: Node) -> WeightedOutline:
    factor, body = _draw_tree(node.args[0])
    return -factor, body


def _hash_outline(head: str, parts: tuple[Outline, ...]) -> bytes:
    return blake2b(head.encode() + b"".join([part.digest for part in parts]), digest_size=8).digest()


UNIT_OUTLINE = Outline("=1;", (), (), 1, _hash_outline("=1;", ()), (), number_node(1))
"""A constant: what it amounts to is the factor before it."""


def _clamp_factor(value: float) -> float:
    """Clamp a factor to the range of constants in formulas; powers of powers can exceed it."""
    return math.copysign(min(max(abs(value), 1.0 / MAX_CODED_NUMBER), MAX_CODED_NUMBER), value)


Slot = float | str
"""What stands before an argument: a weight, or a sign without a number."""


def _write_outline(node: Node, op: str, numbers: Numbers, parts: list[Outline], slots: list[Slot]) -> Outline:
    """Write an operator with its numbers, and each argument behind its slot."""
    text, values, codes = [f"({op}", "#" * len(numbers)], [*numbers], [encode_number(value) for value in numbers]
    marks = []
    for slot, part in zip(slots, parts, strict=True):
        mark = slot if isinstance(slot, str) else "#"
        if not isinstance(slot, str):
            values.append(slot)
            codes.append(encode_number(slot))
        marks.append(mark)
        text += (mark, part.text)
        values += part.numbers
        codes += part.codes
    text.append(")")
    inner = tuple(parts)
    head = f"({op}{'#' * len(numbers)} {' '.join(marks)}"
    size = 1 + sum([part.size for part in parts])
    return Outline("".join(text), tuple(values), tuple(codes), size, _hash_outline(head, inner), inner, node)


def _place(weighted: WeightedOutline) -> tuple[bool, bytes, NumberCodes, str, float]:
    """Return the sort key of an argument: constants last, then by outline, and only then by numbers."""
    factor, body = weighted
    return body is UNIT_OUTLINE, body.digest, body.codes, body.text, factor


# Sums, products and powers.


def _terms(node: Node, factor: float) -> Iterator[WeightedOutline]:
    """Yield the terms of a sum, sums within it taken apart."""
    if node.op == "add":
        for arg in node.args:
            yield from _terms(arg, factor)
    elif node.op == "sub":
        yield from _terms(node.args[0], factor)
        yield from _terms(node.args[1], -factor)
    elif node.op == "neg":
        yield from _terms(node.args[0], -factor)
    else:
        own, body = _draw_tree(node)
        yield factor * own, body


def _sum(node: Node) -> WeightedOutline:
    """Draw a sum: weights are relative to that of the first term, and negligible terms are left out."""
    terms = sorted(_terms(node, 1.0), key=_place)
    most = max((abs(own) for own, part in terms if part is not UNIT_OUTLINE), default=0.0)
    firm = all(_is_bounded(part.node) for own, part in terms if abs(own) == most and part is not UNIT_OUTLINE)
    relevant = [(own, part) for own, part in terms if abs(own) > most * _negligible_share(part, firm)]
    if len(relevant) < 2:
        return relevant[0] if relevant else (0.0, terms[0][1])
    pivot = relevant[0][0]
    slots: list[Slot] = ["", *(own / pivot for own, _ in relevant[1:])]
    return pivot, _write_outline(node, "add", (), [part for _, part in relevant], slots)


def _negligible_share(part: Outline, firm: bool) -> float:
    """Return the share of the largest term below which a term is negligible; `firm`: the largest is bounded."""
    return (
        NEGLIGIBLE_CONSTANT
        if part is UNIT_OUTLINE
        else NEGLIGIBLE_BOUNDED
        if firm and _is_bounded(part.node)
        else NEGLIGIBLE_TERM
    )


def _is_bounded(node: Node) -> bool:
    """Return whether values stay within a few units: ranks, scores, correlations, and their products."""
    return node.op in BOUNDED_STEPS or (node.op in ("mul", "neg") and all(map(_is_bounded, node.args)))


def _factors(node: Node, above: bool = True) -> Iterator[tuple[bool, WeightedOutline]]:
    """Yield the factors of a product or ratio, each with True for the numerator."""
    if node.op in ("mul", "div"):
        for place, arg in enumerate(node.args):
            yield from _factors(arg, above ^ (node.op == "div" and place == 1))
    elif node.op == "neg":
        yield above, (-1.0, UNIT_OUTLINE)
        yield from _factors(node.args[0], above)
    else:
        yield above, _draw_tree(node)


def _product(node: Node) -> WeightedOutline:
    """Draw a product or ratio: all factors of the numerator over all of the denominator."""
    total = 1.0
    sides: tuple[list[WeightedOutline], list[WeightedOutline]] = ([], [])
    for above, weighted in _factors(node):
        total = _clamp_factor(total * weighted[0] if above else total / (weighted[0] or 1.0))
        if weighted[1] is not UNIT_OUTLINE:
            sides[not above].append(weighted)
    upper, lower = (_draw_factors(side) for side in sides)
    if lower is UNIT_OUTLINE:
        return total, upper
    return total, _write_outline(call_node("div", upper.node, lower.node), "div", (), [upper, lower], ["", ""])


def _draw_factors(weighted: list[WeightedOutline]) -> Outline:
    parts = [part for _, part in sorted(weighted, key=_place)]
    if len(parts) < 2:
        return parts[0] if parts else UNIT_OUTLINE
    return _write_outline(call_node("mul", *(part.node for part in parts)), "mul", (), parts, [""] * len(parts))


def _power(node: Node) -> WeightedOutline:
    """Draw a power: one by a whole number is an operator of its own, since 2 and 3 are not near."""
    exponent = node.args[1].value if node.args[1].op == "number" else None
    factor, base = _draw_tree(node.args[0])
    if exponent is None or exponent != int(exponent):
        return _call(node)
    return _clamp_factor(factor) ** int(exponent) if factor else 0.0, _write_outline(
        node, f"{node.op}{int(exponent)}", (), [base], [""]
    )


def _draw_rolling_sum(node: Node) -> WeightedOutline:
    """Draw a rolling sum as its length times the mean."""
    factor, body = _draw_tree(Node("ts_mean", node.args, node.params))
    return factor * node.window, body


# Choices and comparisons.


def _extreme(node: Node) -> WeightedOutline:
    """Draw a maximum or minimum with its first argument made 1 times something."""
    weighted = sorted(map(_draw_tree, node.args), key=_place)
    pivot = weighted[0][0] or 1.0
    op = node.op if pivot > 0 else OPERATORS[node.op].mirror
    slots: list[Slot] = ["", *(factor / pivot for factor, _ in weighted[1:])]
    return pivot, _write_outline(node, op, (), [part for _, part in weighted], slots)


MIRRORED_COMPARISONS: Mapping[str, str] = MappingProxyType(
    {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
)


def _comparison(node: Node) -> WeightedOutline:
    """Draw a comparison as the sign of a difference: ``x > y`` is ``x - y > 0``."""
    factor, difference = _draw_tree(call_node("sub", *node.args))
    op = node.op if factor >= 0 else MIRRORED_COMPARISONS[node.op]
    return 1.0, _write_outline(node, op, (), [difference], [""])


def _choice(node: Node) -> WeightedOutline:
    """Draw a choice: the factors of both branches are relative to the first one that is not 0."""
    _, condition = _draw_tree(node.args[0])
    branches = [_draw_tree(arg) for arg in node.args[1:]]
    pivot = next((factor for factor, _ in branches if factor), 1.0)
    slots: list[Slot] = ["", *(factor / pivot for factor, _ in branches)]
    return pivot, _write_outline(node, "where", (), [condition, *(part for _, part in branches)], slots)


# Everything else.


def _call(node: Node) -> WeightedOutline:
    """Draw an operator: constant factors move out as far as its scaling allows, else stand before their argument."""
    args = _relevant_arguments(node)
    operator, (numbers, kinds, sorted_from) = OPERATORS[node.op], _shape(node.op)
    rules = operator.scaling or ("none",)
    total, op = 1.0, node.op
    parts: list[tuple[float, Outline, Slot]] = []
    for place, arg in enumerate(args):
        factor, part = _draw_tree(arg)
        rule = rules[place] if place < len(rules) else "none"
        if kinds[min(place, len(kinds) - 1)] != "panel":
            parts.append((factor, part, ""))
        elif part is UNIT_OUTLINE or not factor or rule == "none":
            parts.append((factor, part, factor))
        elif factor == 1.0:  # mostly: there is nothing to move
            parts.append((1.0, part, ""))
        else:
            # the rules are typed for fractions; they hold for floats as well
            outside, inside = map(float, SCALING[rule](factor))  # type: ignore[arg-type]
            if inside < 0 and operator.mirror:
                op, inside = operator.mirror, 1.0
                outside = -outside if rule == "mirror" else outside
            total *= outside
            parts.append((1.0, part, "-" if inside < 0 else ""))
    head, tail = parts[:sorted_from], parts[sorted_from:]
    parts = [*head, *sorted(tail, key=lambda each: (_place(each[:2]), str(each[2])))] if len(tail) > 1 else parts
    values = tuple([node.param(name, node.window if default is None else default) for name, default in numbers])
    return total, _write_outline(node, op, values, [part for _, part, _ in parts], [slot for _, _, slot in parts])


def _relevant_arguments(node: Node) -> tuple[Node, ...]:
    """Return the arguments without the steps that make no difference to the operator."""
    if node.op not in IGNORED_UNDER:
        return node.args
    reverse, first = _strip_order_steps(node.args[0], IGNORED_UNDER[node.op])
    return (call_node("neg", first) if reverse else first, *node.args[1:])


@functools.cache
def _shape(op: str) -> tuple[tuple[tuple[str, float | None], ...], tuple[str, ...], int]:
    """Return the numbers of an operator that are kept, the kinds of its arguments, and from where these are sorted."""
    operator = OPERATORS[op]
    kept = tuple(
        (argument.name, argument.default)
        for argument in operator.numbers
        if not argument.keyword or argument.name == "span"
    )
    kinds = tuple(argument.kind for argument in operator.nodes)
    if operator.symmetric or op in ("and", "or"):
        return kept, kinds, 0
    return kept, kinds, 1 if operator.takes_many else len(kinds)


DRAWING: Mapping[str, Callable[[Node], WeightedOutline]] = MappingProxyType(
    {
        **dict.fromkeys(("add", "sub"), _sum),
        **dict.fromkeys(("div", "mul"), _product),
        **dict.fromkeys(("field", "group"), _leaf),
        **dict.fromkeys(("max", "min"), _extreme),
        **dict.fromkeys(MIRRORED_COMPARISONS, _comparison),
        "neg": _negative,
        "number": _number,
        "power": _power,
        "ts_sum": _draw_rolling_sum,
        "where": _choice,
    }
)


@functools.cache
def hash_outline_code() -> str:
    """Return a hash of the code that draws outlines: an index that another form of it drew is not to be trusted."""
    modules = (
        Path(__file__),
        *(Path(str(one.__file__)) for one in (signs, rewrites, canonical, linear, definitions)),
    )
    return sha256(b"".join(module.read_bytes() for module in modules)).hexdigest()


@functools.lru_cache(maxsize=4096)
def encode_number(value: float) -> int:
    """Return the logarithm of a number in hundredths, with its sign; 0 for numbers near zero."""
    size = abs(value)
    if size <= MIN_CODED_NUMBER:
        return 0
    steps = OFFSET + round(CODE_SCALE * math.log(min(size, MAX_CODED_NUMBER)))
    return steps if value > 0 else -steps


def is_near(a: NumberCodes, b: NumberCodes) -> bool:
    """Return whether two lists of number codes are equally long and near each other, one by one."""
    return len(a) == len(b) and max(map(abs, map(sub, a, b)), default=0) <= MAX_CODE_DISTANCE
