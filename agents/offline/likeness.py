"""Whether a formula is an instance of a mechanism: one of its skeletons, with the sign that the mechanism implies.

The windows of slots may vary, by a factor of two around their values, as long as short ones stay shorter than long
ones. A smoothing, a delay of a few days, a cross-sectional rank or a neutralisation around a skeleton change nothing.
An inner change does: the same parts in another operator measure another quantity.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import permutations, product

from ...factors import Expression, FactorError, Node, parse
from .mechanisms import SLOT, SLOT_WINDOWS, Mechanism, find_mechanism, list_slot_values

AVERAGES = frozenset({"ts_mean", "ts_sum", "ema", "decay_linear"})
NEUTRAL = frozenset({"rank", "zscore", "scale", "demean", "winsorize", "group_rank", "group_demean", "group_zscore"})
"""Operators across names that keep what a formula measures."""
MAX_SMOOTHING, MAX_DELAY = 20, 5
"""Longest average and delay, in days, around a skeleton."""
MIRRORS = frozenset({"rank", "ts_rank", "group_rank"})
"""Operators that mirror their values where the sign of their argument changes."""
COMMUTATIVE = frozenset({"add", "mul", "max", "min", "and", "or"})
MAX_PERMUTED = 4
SLACK = 2.0
"""Factor by which a window may leave the range of its slot."""
MARKS = {"lag": (11, 12), "short": (13, 16), "mid": (33, 34), "long": (111, 112), "any": (36, 37)}
"""Windows that mark a slot in a pattern: no skeleton has them as literals."""
RANGES = {
    float(mark): (float(min(SLOT_WINDOWS[kind])), float(max(SLOT_WINDOWS[kind])))
    for kind, marks in MARKS.items()
    for mark in marks
}

Names = tuple[str, ...]
WindowPairs = tuple[tuple[float, float], ...]
"""The windows of a pattern, each with the one in its place in a formula."""


def fits_mechanism(text: str, name: str, direction: int, fields: Names, groups: Names) -> bool | None:
    """Return whether a formula measures the mechanism `name` with its direction; None if the name is not known.

    Parameters
    ----------
    direction
        1 or -1: whether a higher value of the formula is claimed to mean a higher or a lower return.
    """
    mechanism = find_mechanism(name)
    if mechanism is None or mechanism.survey:
        return None
    try:
        expression = parse(text, fields=fields, groups=groups)
    except FactorError:
        return False
    return is_instance(expression, mechanism, direction, fields, groups)


def is_instance(expression: Expression, mechanism: Mechanism, direction: int, fields: Names, groups: Names) -> bool:
    """Return whether a formula is a skeleton's quantity, signed so that `direction` is what the mechanism says of it.

    Python code is none: its meaning is known from its text alone, which has no skeleton.
    """
    if expression.code or not expression.fields <= {*mechanism.fields, *groups}:
        return False
    return is_quantity(expression.canonical, mechanism, direction, fields, groups)


def is_quantity(canonical: Node, mechanism: Mechanism, direction: int, fields: Names, groups: Names) -> bool:
    """Return whether a canonical tree is a skeleton's quantity with the sign of `direction`; see `is_instance`."""
    sign = direction * mechanism.direction
    patterns = _index_patterns(mechanism, fields, groups).get(_list_fields(canonical), ())
    return any(
        sign == peel_sign * own and _is_ordered(pairs)
        for peel_sign, node in _peel(canonical)
        for pattern in patterns
        for own, pairs in _align(pattern, node)
    )


def _peel(node: Node) -> Iterator[tuple[int, Node]]:
    """Yield a tree and the parts that wrappers leave of it, each with the sign that the wrappers took away."""
    sign = 1
    while True:
        own, node = _split_sign(node)
        sign *= own
        yield sign, node
        averaged = node.op in AVERAGES and node.window <= MAX_SMOOTHING
        if not (node.op in NEUTRAL or averaged or (node.op == "delay" and node.window <= MAX_DELAY)):
            return
        node = node.args[0]


@lru_cache(maxsize=4096)
def _split_sign(node: Node) -> tuple[int, Node]:
    """Return the sign of a tree, and the tree without it and without a constant factor."""
    if node.op == "neg":
        sign, inner = _split_sign(node.args[0])
        return -sign, inner
    if node.op == "mul":
        sign = -1 if sum((arg.value or 0.0) < 0 for arg in node.args) % 2 else 1
        rest = tuple(arg for arg in node.args if arg.op != "number")
        return sign, rest[0] if len(rest) == 1 else Node("mul", rest)
    return 1, node


def _align(pattern: Node, node: Node) -> Iterator[tuple[int, WindowPairs]]:
    """Yield the signs with which a tree equals a pattern, each with the pairs of windows; nothing if it does not."""
    pattern_sign, pattern = _split_sign(pattern)
    sign, node = _split_sign(node)
    sign *= pattern_sign
    if pattern.op in ("field", "group", "number"):
        if pattern == node:
            yield sign, ()
        return
    if not _has_same_operator(pattern, node):
        return
    own = ((pattern.window, node.window),) if pattern.window else ()
    orders = permutations(node.args) if _is_permuted(node) else [node.args]
    for args in orders:
        for parts in product(*(list(_align(*pair)) for pair in zip(pattern.args, args, strict=True))):
            joint = _join_signs(node.op, [part[0] for part in parts])
            if joint:
                yield sign * joint, (*own, *(pair for part in parts for pair in part[1]))


def _is_permuted(node: Node) -> bool:
    return node.op in COMMUTATIVE and len(node.args) <= MAX_PERMUTED


def _has_same_operator(pattern: Node, node: Node) -> bool:
    """Return whether two steps are of one kind: an average counts as any other, and windows are compared later."""
    same = pattern.op == node.op or {pattern.op, node.op} <= AVERAGES
    mine, theirs = ({key: number for key, number in part.params if key != "window"} for part in (pattern, node))
    return same and len(pattern.args) == len(node.args) and mine == theirs and _is_near(pattern.window, node.window)


def _is_near(mark: float, window: float) -> bool:
    low, high = RANGES.get(mark, (0.0, 0.0))
    return low / SLACK <= window <= high * SLACK if mark in RANGES else mark == window


def _join_signs(op: str, signs: list[int]) -> int:
    """Return the sign of a step whose arguments have these signs; 0 where they disagree or the step is no mirror."""
    if op in ("mul", "div"):
        return -1 if signs.count(-1) % 2 else 1
    if op == "add" or op in MIRRORS:
        return signs[0] if op != "add" or len({*signs}) == 1 else 0
    return 1 if -1 not in signs else 0


def _is_ordered(pairs: WindowPairs) -> bool:
    """Return whether windows of slots of different lengths keep their order."""
    spans = [(RANGES.get(mark, (mark, mark)), window) for mark, window in pairs]
    return all(one < other for (_, high), one in spans for (low, _), other in spans if high < low)


@cache
def _list_patterns(mechanism: Mechanism, fields: Names, groups: Names) -> tuple[Node, ...]:
    """Return the trees of a mechanism's skeletons over all fields that their slots may read; windows are marks."""
    names = [name for name in mechanism.fields if name in fields]
    patterns = []
    for skeleton in mechanism.skeletons:
        for text in _fill_fields(skeleton, names):
            try:
                patterns.append(_drop_rank(parse(text, fields=fields, groups=groups).canonical))
            except FactorError:  # the market lacks a field of this skeleton
                continue
    return tuple(dict.fromkeys(patterns))


@cache
def _index_patterns(mechanism: Mechanism, fields: Names, groups: Names) -> dict[Names, tuple[Node, ...]]:
    """Return the patterns of a mechanism by the fields that they read: no other formula can equal one of them."""
    index: dict[Names, tuple[Node, ...]] = {}
    for pattern in _list_patterns(mechanism, fields, groups):
        read = _list_fields(pattern)
        index[read] = (*index.get(read, ()), pattern)
    return index


def _list_fields(node: Node) -> Names:
    """Return the fields of a tree, sorted, each as often as it is read."""
    return (
        (node.name,) if node.op == "field" else tuple(sorted(name for arg in node.args for name in _list_fields(arg)))
    )


def _drop_rank(node: Node) -> Node:
    """Return a skeleton without an outermost rank: it orders the names as the rest does."""
    return node.args[0] if node.op == "rank" else node


def _fill_fields(skeleton: str, names: list[str]) -> Iterator[str]:
    """Yield a skeleton with marks for windows, once for each choice of its fields."""
    slots = {match.group(0): (match.group(1), match.group(2)) for match in SLOT.finditer(skeleton)}
    choices = [
        [str(MARKS[kind][bool(digit)])] if kind in MARKS else list_slot_values(kind, names)
        for kind, digit in slots.values()
    ]
    for values in product(*choices):
        filled = dict(zip(slots, values, strict=True))
        yield SLOT.sub(lambda match, filled=filled: filled[match.group(0)], skeleton)  # type: ignore[misc]
