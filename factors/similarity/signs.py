"""Which values of a formula cannot be negative, so that a step that only sets a sign is seen to do nothing.

It reads the canonical tree alone: prices, volumes, ranks and spreads are not below 0, a high is not below a low. As in
`rewrites`, a few cells may differ: a volume of 0, a day on which high and low are equal.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from ..language.node import Node, call_node, number_node

POSITIVE: Final = frozenset({"amount", "cap", "close", "close_raw", "high", "low", "open", "volume", "vwap"})
"""Columns that are nowhere below 0."""
INNER_PRICES: Final = frozenset({"open", "close", "vwap"})
"""Prices that lie between the low and the high of their day."""
SIGN_ABOVE, SIGN_NOT_BELOW, SIGN_UNKNOWN = 2, 1, 0
"""Above 0 nearly everywhere; never below 0; either. The opposites are negative."""
SHARE_STEPS: Final = frozenset({"rank", "ts_rank", "group_rank", "sigmoid"})
"""Steps whose values lie between 0 and 1."""
NONNEGATIVE_STEPS: Final = frozenset({
    "abs", "is_missing", "holds", "ts_count", "ts_argmax", "ts_argmin", "ts_days_since", "ts_rsquare", "ts_drawdown",
    "count_across", "group_count", "quantile_bucket", "and", "or", "not", "minmax", "eq", "ne", "lt", "le", "gt", "ge",
})  # fmt: skip  # a table
"""Steps whose values are not below 0."""
POSITIVE_STEPS: Final = frozenset(
    {"exp", "ts_std", "ts_var", "ts_mad", "std_across", "group_std", "atr", "true_range", *SHARE_STEPS}
)
"""Steps whose values are above 0 nearly everywhere."""
SIGN_KEEPING_STEPS: Final = frozenset({
    "decay_linear", "delay", "ema", "group_mean", "group_sum", "mean_across", "median_across", "scale", "sma", "sqrt",
    "sum_across", "ts_last", "ts_max", "ts_mean", "ts_median", "ts_min", "ts_quantile", "ts_sum", "wilder", "winsorize",
    "wma", "arctan", "tanh", "sign", "slog1p", "signed_power", "ceil",
})  # fmt: skip  # a table
"""Steps that keep the sign of what they are given, where it is the same on all days and names."""


@functools.lru_cache(maxsize=4096)
def find_sign(node: Node) -> int:
    """Return the proven sign of a formula's values: ABOVE, NOT_BELOW, UNKNOWN, or one of their opposites."""
    if node.op == "field":
        return SIGN_ABOVE if node.name in POSITIVE else SIGN_UNKNOWN
    if node.op == "number":
        value = node.value or 0.0
        return SIGN_ABOVE if value > 0 else -SIGN_ABOVE if value < 0 else SIGN_NOT_BELOW
    if node.op in POSITIVE_STEPS:
        return SIGN_ABOVE
    if node.op in NONNEGATIVE_STEPS:
        return SIGN_NOT_BELOW
    return (
        find_sign(node.args[0])
        if node.op in SIGN_KEEPING_STEPS
        else SIGN_RULES[node.op](node)
        if node.op in SIGN_RULES
        else SIGN_UNKNOWN
    )


def find_truth(condition: Node) -> bool | None:
    """Return whether a condition holds wherever it is defined, or nowhere; None where it depends."""
    op, args = condition.op, condition.args
    if op == "not":
        inner = find_truth(args[0])
        return None if inner is None else not inner
    if op in ("and", "or"):
        return _combine_truths(op, [find_truth(arg) for arg in args])
    if op == "is_missing":
        return False if args[0].op == "field" and args[0].name in POSITIVE else None
    if op in ("eq", "ne"):
        return op == "eq" if args[0] == args[1] else None
    if op in ("gt", "ge"):
        return find_truth(call_node({"gt": "lt", "ge": "le"}[op], *args[::-1]))
    return _compare_sides(op, *args) if op in ("lt", "le") else None


def _combine_truths(op: str, truths: list[bool | None]) -> bool | None:
    decides = op == "or"
    return decides if decides in truths else None if None in truths else not decides


def _compare_sides(op: str, less: Node, more: Node) -> bool | None:
    """Return whether one formula is below another everywhere, or nowhere."""
    if less == more:
        return op == "le"
    sign = find_difference_sign(more, less)
    strict = SIGN_ABOVE if op == "lt" else SIGN_NOT_BELOW
    if sign >= strict:
        return True
    return False if sign <= (-SIGN_NOT_BELOW if op == "lt" else -SIGN_ABOVE) else None


def find_difference_sign(more: Node, less: Node) -> int:
    """Return the sign of one formula less another."""
    for one, other, turned in ((more, less, 1), (less, more, -1)):
        if one.op == "number" and not one.value:
            return -turned * find_sign(other)
    return _sum(call_node("add", more, less.args[0] if less.op == "neg" else call_node("neg", less)))


def negate_tree(node: Node) -> Node:
    """Return the opposite of a tree."""
    return node.args[0] if node.op == "neg" else call_node("neg", node)


def simplify_abs(node: Node) -> Node:
    """Drop the absolute value of a formula whose sign is known."""
    sign = find_sign(node.args[0])
    return node.args[0] if sign > 0 else negate_tree(node.args[0]) if sign < 0 else node


def simplify_sign(node: Node) -> Node:
    """Write the sign of a positive or negative formula as a number."""
    sign = find_sign(node.args[0])
    return number_node(math.copysign(1, sign)) if abs(sign) == SIGN_ABOVE else node


def simplify_power(node: Node) -> Node:
    """Write a power of a power of a non-negative formula as one; drop a power of 1."""
    base, exponent = node.args
    if exponent.op != "number" or not exponent.value:
        return node
    if base.op == "power" and base.args[1].op == "number" and find_sign(base.args[0]) > 0:
        return simplify_power(
            call_node("power", base.args[0], number_node(exponent.value * (base.args[1].value or 0.0)))
        )
    if base.op == "sqrt":
        return simplify_power(call_node("power", base.args[0], number_node(exponent.value / 2)))
    return base if exponent.value == 1 else node


def simplify_signed_power(node: Node) -> Node:
    """Write a signed power of a non-negative formula as a plain one; drop a power of 1."""
    if node.args[1] == number_node(1):
        return node.args[0]
    return simplify_power(call_node("power", *node.args)) if find_sign(node.args[0]) > 0 else node


def strip_power(tree: Node) -> Node | None:
    """Strip a power that keeps or reverses order: odd ones of any formula, ``x ** 2`` of a non-negative one."""
    if tree.op == "signed_power":
        return tree.args[0] if (tree.args[1].value or 0.0) > 0 else None
    if tree.op == "div":
        return _strip_ratio(*tree.args)
    exponent = tree.args[1].value if tree.op == "power" and tree.args[1].op == "number" else None
    if not exponent or not (find_sign(tree.args[0]) > 0 or exponent % 2 == 1):
        return None
    return tree.args[0] if exponent > 0 else negate_tree(tree.args[0])


def _strip_ratio(above: Node, below: Node) -> Node | None:
    """Return the divisor of a number in reverse, and a ratio of equal powers as that of their bases."""
    if above.op == "number":
        return negate_tree(below) if find_sign(below) > 0 and (above.value or 0.0) > 0 else None
    if above.op == below.op == "power" and above.args[1] == below.args[1]:
        return strip_power(call_node("power", call_node("div", above.args[0], below.args[0]), above.args[1]))
    return None


def _price_difference_sign(more: str, less: str) -> int:
    """Return the sign of one price of a day less another."""
    if (more, less) == ("high", "low"):
        return SIGN_ABOVE
    return (
        SIGN_NOT_BELOW
        if (more == "high" and less in INNER_PRICES) or (more in INNER_PRICES and less == "low")
        else SIGN_UNKNOWN
    )


def _sum(node: Node) -> int:
    if len(node.args) == 2:
        for one, other in (node.args, node.args[::-1]):
            if other.op == "neg" and one.op == other.args[0].op == "field":
                names = one.name, other.args[0].name
                return _price_difference_sign(*names) - _price_difference_sign(*names[::-1])
            if other.op == "number" and (shifted := _shifted_share_sign(one, other.value or 0.0)):
                return shifted
    signs = [find_sign(arg) for arg in node.args]
    return max(signs, key=abs) if all(sign > 0 for sign in signs) or all(sign < 0 for sign in signs) else SIGN_UNKNOWN


def _shifted_share_sign(node: Node, by: float) -> int:
    """Return the sign of a share, or of its opposite, plus a number."""
    minus = node.op == "neg"
    if (node.args[0] if minus else node).op not in SHARE_STEPS:
        return SIGN_UNKNOWN
    if minus:
        return SIGN_NOT_BELOW if by >= 1 else SIGN_UNKNOWN
    return -SIGN_NOT_BELOW if by <= -1 else SIGN_UNKNOWN


def _product(node: Node) -> int:
    signs = [find_sign(arg) for arg in node.args]
    odd = sum(sign < 0 for sign in signs) % 2
    return min(map(abs, signs)) * (-1 if odd else 1)


def _power(node: Node) -> int:
    base, exponent = find_sign(node.args[0]), node.args[1].value if node.args[1].op == "number" else None
    if base > 0:
        return base
    return SIGN_NOT_BELOW if exponent is not None and exponent % 2 == 0 else SIGN_UNKNOWN


def _maximum_sign(node: Node) -> int:
    signs = [find_sign(arg) for arg in node.args]
    return max(signs) if max(signs) > 0 or max(signs) < 0 else SIGN_UNKNOWN


def _minimum_sign(node: Node) -> int:
    signs = [find_sign(arg) for arg in node.args]
    return min(signs) if min(signs) != 0 else SIGN_UNKNOWN


def _branches(node: Node) -> int:
    one, other = map(find_sign, node.args[1:])
    return 0 if one * other <= 0 else min(one, other, key=abs)


SIGN_RULES: Mapping[str, Callable[[Node], int]] = MappingProxyType(
    {
        "add": _sum,
        "div": _product,
        "max": _maximum_sign,
        "min": _minimum_sign,
        "mul": _product,
        "neg": lambda node: -find_sign(node.args[0]),
        "power": _power,
        "ts_product": lambda node: max(find_sign(node.args[0]), SIGN_UNKNOWN),
        "where": _branches,
    }
)
