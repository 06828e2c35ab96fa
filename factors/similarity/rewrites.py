"""Approximate rewrite rules for outlines: bring formulas that hardly differ to one spelling.

The canonical form keeps every value, NaN included. Here a few cells may differ (the logarithm of a product of two
losses, a change over a price that is zero), since a formula is not new for that.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from ..language.canonical import OPPOSITE
from ..language.node import Node, call_node, field_node, number_node
from ..operators import OPERATORS
from .signs import (
    SIGN_NOT_BELOW,
    find_difference_sign,
    find_truth,
    negate_tree,
    simplify_abs,
    simplify_power,
    simplify_sign,
    simplify_signed_power,
)

NodeRewrite = Callable[[Node], Node]


@functools.lru_cache(maxsize=4096)
def rewrite_tree(node: Node) -> Node:
    """Return a canonical tree in the one spelling; it need not be canonical any more."""
    if node.is_leaf:
        return node
    args = tuple([rewrite_tree(arg) for arg in node.args])
    node = _pull_out_delay(node if args == node.args else node.with_args(*args))
    rule = REWRITE_RULES.get(node.op)
    return rule(node) if rule else node


def _pull_out_delay(node: Node) -> Node:
    """Move a delay that all arguments share outside: the mean of earlier values is the earlier mean."""
    first = node.args[0] if node.args else node
    if first.op != "delay" or OPERATORS[node.op].family == "cross-section":
        return node
    if node.op == "delay":
        return call_node("delay", first.args[0], window=node.window + first.window)
    if any(arg.op != "delay" or arg.window != first.window for arg in node.args if arg.op != "number"):
        return node
    inner = node.with_args(*(arg if arg.op == "number" else arg.args[0] for arg in node.args))
    return first.with_args(rewrite_tree(inner))


def _product(factors: Sequence[Node]) -> Node:
    return factors[0] if len(factors) == 1 else call_node("mul", *factors) if factors else number_node(1)


def list_factors(node: Node) -> list[Node]:
    """Return the factors of a product, or the tree itself."""
    return list(node.args) if node.op == "mul" else [node]


# Sums.


def _sum(node: Node) -> Node:
    """Gather the logarithms of a sum into one, and distances from the mean of the day."""
    logs = [arg.args[0] for arg in node.args if arg.op == "log"]
    minus = [arg.args[0].args[0] for arg in node.args if arg.op == "neg" and arg.args[0].op == "log"]
    if len(logs) + len(minus) < 2:
        return _factor_out(_difference(_spread(_rewrite_mirror(_distance(_rewrite_growth(node))))))
    ratio = call_node("div", _product(logs), _product(minus)) if minus else _product(logs)
    rest = [arg for arg in node.args if arg.op != "log" and not (arg.op == "neg" and arg.args[0].op == "log")]
    whole = _growth(call_node("log", _ratio(ratio) if ratio.op == "div" else ratio))
    return call_node("add", *rest, whole) if rest else whole


def _rewrite_growth(node: Node) -> Node:
    """Write ``x / delay(x, n) - 1`` as the return that it is."""
    if len(node.args) != 2 or node.args[1] != number_node(-1) or node.args[0].op != "div":
        return node
    above, below = node.args[0].args
    return (
        _return(call_node("ts_returns", above, window=below.window))
        if below == call_node("delay", above, window=below.window)
        else node
    )


def _distance(node: Node) -> Node:
    """Write ``x - mean_across(x)`` as one step."""
    if len(node.args) != 2:
        return node
    for x, other in (node.args, node.args[::-1]):
        if other == call_node("neg", call_node("mean_across", x)):
            return call_node("demean", x)
        if other.op == "neg" and x == call_node("mean_across", other.args[0]):
            return negate_tree(call_node("demean", other.args[0]))
    return node


def _rewrite_mirror(node: Node) -> Node:
    """Write ``1 - rank(x)`` as ``rank(-x)``, and ``rank(x) - 1`` as ``-rank(-x)``: they differ by one place."""
    if node.op != "add" or len(node.args) != 2 or node.args[1].op != "number" or abs(node.args[1].value or 0.0) != 1:
        return node
    minus = node.args[0].op == "neg"
    rank = node.args[0].args[0] if minus else node.args[0]
    if rank.op != "rank" or (node.args[1].value == 1) is not minus:
        return node
    turned = rank.with_args(negate_tree(rank.args[0]))
    return turned if minus else negate_tree(turned)


def _spread(node: Node) -> Node:
    """Write ``mean(x ** 2) - mean(x) ** 2`` as the variance that it is."""
    if node.op != "add" or [arg.op for arg in node.args].count("neg") != 1 or len(node.args) != 2:
        return node
    bare = [arg.args[0] if arg.op == "neg" else arg for arg in node.args]
    for at, (square, other) in enumerate((bare, bare[::-1])):
        mean = other.args[0] if other.op == "power" and other.args[1] == number_node(2) else other
        if (
            {square.op, mean.op} == {"ts_mean"}
            and mean is not other
            and square.window == mean.window
            and square.args[0] == call_node("power", mean.args[0], number_node(2))
        ):
            variance = _variance(Node("ts_std", mean.args, (("window", float(mean.window)),)))
            return negate_tree(variance) if node.args[at].op == "neg" else variance
    return node


def _difference(node: Node) -> Node:
    """Write ``x - delay(x, n)`` as the change that it is."""
    if node.op != "add" or len(node.args) != 2:
        return node
    for x, other in (node.args, node.args[::-1]):
        before = call_node("neg", other.args[0].args[0]) if other.op == "neg" and other.args[0].op == "delay" else None
        late = other.args[0] if other.op == "neg" else other  # a delay may stand within the sign or around it
        before = before or (other.args[0] if other.op == "delay" else None)
        if before is not None and before == negate_tree(x):
            plain = x.args[0] if x.op == "neg" else x
            change = _change(call_node("delta", plain, window=late.window))
            return negate_tree(change) if x.op == "neg" else change
    return node


def _factor_out(node: Node) -> Node:
    """Take a factor or divisor that every term has out of a sum: ``x * y + x * z`` is ``x * (y + z)``."""
    if node.op != "add":
        return node
    bare = [arg.args[0] if arg.op == "neg" else arg for arg in node.args]
    if all(term.op == "div" and term.args[1] == bare[0].args[1] for term in bare):
        above = [
            negate_tree(term.args[0]) if arg.op == "neg" else term.args[0]
            for arg, term in zip(node.args, bare, strict=True)
        ]
        return _ratio(call_node("div", _sum(call_node("add", *above)), bare[0].args[1]))
    bodies = [list_factors(arg.args[0] if arg.op == "neg" else arg) for arg in node.args]
    shared = next((each for each in bodies[0] if all(each in body for body in bodies)), None)
    if shared is None or shared.op == "number":
        return node
    for body in bodies:
        body.remove(shared)
    terms = [
        negate_tree(_product(body)) if arg.op == "neg" else _product(body)
        for arg, body in zip(node.args, bodies, strict=True)
    ]
    return call_node("mul", shared, _factor_out(call_node("add", *terms)))


# Ratios and products.


def _ratio(node: Node) -> Node:
    """Write a distance from the mean over the spread as a z-score, a covariance over both spreads as a correlation."""
    above, below = list_factors(node.args[0]), list_factors(node.args[1])
    if twice := next((each for each in above if each in below and each.op != "number"), None):
        above.remove(twice)
        below.remove(twice)
        return _ratio(call_node("div", _product(above), _product(below))) if below else _product(above)
    if node.args[1] in (number_node(1), number_node(-1)):
        return node.args[0] if node.args[1] == number_node(1) else negate_tree(node.args[0])
    for place, each in enumerate(above):
        for name in SCORES:
            score = SCORES[name](each, below)
            if score is None:
                continue
            short, used = score
            for spread in used:
                below.remove(spread)
            upper = _move_signs_out(_product([*above[:place], short, *above[place + 1 :]]))
            return call_node("div", upper, _product(below)) if below else upper
    return node


def _move_signs_out(product: Node) -> Node:
    """Move the signs of factors to the front."""
    bare = [factor.args[0] if factor.op == "neg" else factor for factor in list_factors(product)]
    odd = sum(factor.op == "neg" for factor in list_factors(product)) % 2
    return call_node("neg", _product(bare)) if odd else _product(bare)


Score = tuple[Node, list[Node]] | None
"""The short spelling, and the factors below the line that go into it."""


def _day_score(above: Node, below: Sequence[Node]) -> Score:
    inner = above.args[0] if above.op == "neg" else above
    if inner.op != "demean":
        return None
    spread = call_node("std_across", *inner.args)
    short = call_node("zscore", *inner.args)
    return (negate_tree(short) if inner is not above else short, [spread]) if spread in below else None


def _window_score(above: Node, below: Sequence[Node]) -> Score:
    if above.op != "add" or len(above.args) != 2:
        return None
    for spread in (each for each in below if each.op == "ts_std"):
        x = spread.args[0]
        mean = Node("ts_mean", (x,), (("window", float(spread.window)),))
        short = Node("ts_zscore", (x,), (("window", float(spread.window)),))
        if set(above.args) == {x, call_node("neg", mean)}:
            return short, [spread]
        if set(above.args) == {mean, call_node("neg", x)}:
            return call_node("neg", short), [spread]
    return None


def _correlation(above: Node, below: Sequence[Node]) -> Score:
    if above.op != "ts_cov":
        return None
    spreads = [Node("ts_std", (x,), (("window", float(above.window)),)) for x in above.args]
    return (Node("ts_corr", above.args, above.params), spreads) if all(each in below for each in spreads) else None


def _match_return(above: Node, below: Sequence[Node]) -> Score:
    """Write a change over the earlier value as a return."""
    if above.op != "delta":
        return None
    before = call_node("delay", *above.args, window=above.window)
    return (_return(call_node("ts_returns", *above.args, window=above.window)), [before]) if before in below else None


SCORES: Mapping[str, Callable[[Node, Sequence[Node]], Score]] = MappingProxyType(
    {"zscore": _day_score, "ts_zscore": _window_score, "ts_corr": _correlation, "ts_returns": _match_return}
)


def _rewrite_product(node: Node) -> Node:
    """Write ``sign(x) * abs(x)`` as x; leave out factors of 1, such as the sign of a positive value."""
    args = [arg for arg in node.args if not (arg == number_node(1) or find_truth(arg))]
    for sign in [arg for arg in args if arg.op == "sign"]:
        size = call_node("abs", *sign.args)
        if size in args:
            args.remove(sign)
            args[args.index(size)] = sign.args[0]
    return node if len(args) == len(node.args) else _product(args)


# Choices.


def _rewrite_choice(node: Node) -> Node:
    """Write a choice as the maximum, minimum, size or product that it is."""
    condition, x, y = node.args
    holds = find_truth(condition)
    if x == y or holds is not None:
        return y if holds is False else x
    if number_node(0.0) in (x, y):
        return (
            call_node("mul", condition, x)
            if y == number_node(0.0)
            else call_node("mul", _negate_condition(condition), y)
        )
    if condition.op not in ("lt", "gt"):
        return node
    less, more = condition.args if condition.op == "lt" else condition.args[::-1]
    if (x, y) == (more, less):
        return call_node("max", x, y)
    if (x, y) == (less, more):
        return call_node("min", x, y)
    if number_node(0.0) in (less, more) and negate_tree(x) == y:
        tested = more if less == number_node(0.0) else less
        size = call_node("abs", tested)
        if tested in (x, y):
            return size if (tested == x) == (tested is more) else negate_tree(size)
    return node


def _negate_condition(condition: Node) -> Node:
    """Return where a condition does not hold."""
    opposite = OPPOSITE.get(condition.op)
    return call_node(opposite, *condition.args) if opposite else call_node("not", condition)


def _extreme(node: Node) -> Node:
    """Write ``max(x, -x)`` as ``abs(x)``; leave out arguments that never decide, as 0 beside a volume."""
    if len(node.args) == 2 and negate_tree(node.args[0]) == node.args[1]:
        x = next(arg for arg in node.args if arg.op != "neg")
        return simplify_abs(call_node("abs", x)) if node.op == "max" else negate_tree(simplify_abs(call_node("abs", x)))
    turn = 1 if node.op == "max" else -1
    remaining = [
        arg
        for arg in node.args
        if not any(other != arg and turn * find_difference_sign(other, arg) >= SIGN_NOT_BELOW for other in node.args)
    ]
    return (
        node
        if len(remaining) in (0, len(node.args))
        else remaining[0]
        if len(remaining) == 1
        else node.with_args(*remaining)
    )


def _rewrite_clip(node: Node) -> Node:
    """Write a clipped value as the minimum of a maximum."""
    low, high = node.param("low", -math.inf), node.param("high", math.inf)
    return call_node("min", call_node("max", node.args[0], number_node(low)), number_node(high))


# Single steps.


def _drop_single_row(node: Node) -> Node:
    """Drop a window of one row."""
    return node.args[0] if node.window == 1 else node


def _return(node: Node) -> Node:
    """Write the return of one row of the close as the field that it is."""
    return field_node("returns") if node.window == 1 and node.args[0] == field_node("close") else node


def _growth(node: Node) -> Node:
    """Write the logarithm of how a value has grown as its return."""
    ratio = node.args[0]
    if ratio.op != "div" or ratio.args[1].op != "delay" or ratio.args[1].args[0] != ratio.args[0]:
        return node
    return _return(call_node("ts_returns", ratio.args[0], window=ratio.args[1].window))


def _variance(node: Node) -> Node:
    return call_node("power", Node("ts_std", node.args, node.params), number_node(2))


def _root(node: Node) -> Node:
    inner = node.args[0]
    if inner.op != "power" or inner.args[1].op != "number":
        return node
    if inner.args[1] == number_node(2):
        return simplify_abs(call_node("abs", inner.args[0]))
    return simplify_power(call_node("power", inner, number_node(0.5)))


def _change(node: Node) -> Node:
    """Write the change of a logarithm as the logarithm of the ratio."""
    inner = node.args[0]
    if inner.op != "log":
        return node
    return _growth(
        call_node("log", call_node("div", inner.args[0], call_node("delay", inner.args[0], window=node.window)))
    )


def _drop_inverse(node: Node) -> Node:
    """Drop a logarithm of an exponential, and the other way round."""
    inner = node.args[0]
    if {node.op, inner.op} == {"exp", "log"}:
        return inner.args[0]
    return _growth(node) if node.op == "log" else node


SINGLE_ROW_STEPS = ("decay_linear", "ema", "ts_last", "ts_max", "ts_mean", "ts_median", "ts_min", "ts_product")
"""Steps over time that change nothing in a window of one row."""

REWRITE_RULES: Mapping[str, NodeRewrite] = MappingProxyType(
    {
        **dict.fromkeys(("exp", "log"), _drop_inverse),
        **dict.fromkeys(("max", "min"), _extreme),
        **dict.fromkeys(SINGLE_ROW_STEPS, _drop_single_row),
        "abs": simplify_abs,
        "add": _sum,
        "clip": _rewrite_clip,
        "delta": _change,
        "div": _ratio,
        "mul": _rewrite_product,
        "neg": lambda node: negate_tree(node.args[0]),
        "power": simplify_power,
        "sign": simplify_sign,
        "signed_power": simplify_signed_power,
        "sqrt": _root,
        "ts_returns": _return,
        "ts_var": _variance,
        "where": _rewrite_choice,
    }
)
