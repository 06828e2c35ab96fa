"""Bring what can be spelled in several ways to one spelling, for outlines: what hardly differs need not be equal.

The canonical form keeps every value, NaN included. Here a few cells may differ (the logarithm of a product of two losses, a
change over a price that is zero), since a formula is not new for that.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from ..canonical.canonical import OPPOSITE
from ..language.node import Node, call, field_node, number
from ..operators import OPERATORS
from .signs import NOT_BELOW, difference, negated, raised, signed_power, signum, sized, truth

Rule = Callable[[Node], Node]


@functools.lru_cache(maxsize=4096)
def respelled(node: Node) -> Node:
    """Return a canonical tree in the one spelling; it need not be canonical any more."""
    if node.is_leaf:
        return node
    args = tuple([respelled(arg) for arg in node.args])
    node = _earlier(node if args == node.args else node.with_args(*args))
    rule = RULES.get(node.op)
    return rule(node) if rule else node


def _earlier(node: Node) -> Node:
    """Move what every argument is delayed by outside: the mean of earlier values is the earlier mean."""
    first = node.args[0] if node.args else node
    if first.op != "delay" or OPERATORS[node.op].family == "cross-section":
        return node
    if node.op == "delay":
        return call("delay", first.args[0], window=node.window + first.window)
    if any(arg.op != "delay" or arg.window != first.window for arg in node.args if arg.op != "number"):
        return node
    inner = node.with_args(*(arg if arg.op == "number" else arg.args[0] for arg in node.args))
    return first.with_args(respelled(inner))


def _product(factors: Sequence[Node]) -> Node:
    return factors[0] if len(factors) == 1 else call("mul", *factors) if factors else number(1)


def factors_of(node: Node) -> list[Node]:
    """Return the factors of a product, or the tree itself."""
    return list(node.args) if node.op == "mul" else [node]


# Sums.


def _sum(node: Node) -> Node:
    """Gather the logarithms of a sum into one, and distances from the mean of the day."""
    logs = [arg.args[0] for arg in node.args if arg.op == "log"]
    minus = [arg.args[0].args[0] for arg in node.args if arg.op == "neg" and arg.args[0].op == "log"]
    if len(logs) + len(minus) < 2:
        return _common(_difference(_spread(_mirrored(_distance(_grown(node))))))
    ratio = call("div", _product(logs), _product(minus)) if minus else _product(logs)
    rest = [arg for arg in node.args if arg.op != "log" and not (arg.op == "neg" and arg.args[0].op == "log")]
    whole = _growth(call("log", _ratio(ratio) if ratio.op == "div" else ratio))
    return call("add", *rest, whole) if rest else whole


def _grown(node: Node) -> Node:
    """Write ``x / delay(x, n) - 1`` as the return that it is."""
    if len(node.args) != 2 or node.args[1] != number(-1) or node.args[0].op != "div":
        return node
    above, below = node.args[0].args
    return (
        _return(call("ts_returns", above, window=below.window))
        if below == call("delay", above, window=below.window)
        else node
    )


def _distance(node: Node) -> Node:
    """Write ``x - mean_across(x)`` as one step."""
    if len(node.args) != 2:
        return node
    for x, other in (node.args, node.args[::-1]):
        if other == call("neg", call("mean_across", x)):
            return call("demean", x)
        if other.op == "neg" and x == call("mean_across", other.args[0]):
            return negated(call("demean", other.args[0]))
    return node


def _mirrored(node: Node) -> Node:
    """Write ``1 - rank(x)`` as ``rank(-x)``, and ``rank(x) - 1`` as ``-rank(-x)``: they differ by one place."""
    if node.op != "add" or len(node.args) != 2 or node.args[1].op != "number" or abs(node.args[1].value or 0.0) != 1:
        return node
    minus = node.args[0].op == "neg"
    rank = node.args[0].args[0] if minus else node.args[0]
    if rank.op != "rank" or (node.args[1].value == 1) is not minus:
        return node
    turned = rank.with_args(negated(rank.args[0]))
    return turned if minus else negated(turned)


def _spread(node: Node) -> Node:
    """Write ``mean(x ** 2) - mean(x) ** 2`` as the variance that it is."""
    if node.op != "add" or [arg.op for arg in node.args].count("neg") != 1 or len(node.args) != 2:
        return node
    bare = [arg.args[0] if arg.op == "neg" else arg for arg in node.args]
    for at, (square, other) in enumerate((bare, bare[::-1])):
        mean = other.args[0] if other.op == "power" and other.args[1] == number(2) else other
        if {square.op, mean.op} == {"ts_mean"} and mean is not other and square.window == mean.window \
                and square.args[0] == call("power", mean.args[0], number(2)):  # fmt: skip
            variance = _variance(Node("ts_std", mean.args, (("window", float(mean.window)),)))
            return negated(variance) if node.args[at].op == "neg" else variance
    return node


def _difference(node: Node) -> Node:
    """Write ``x - delay(x, n)`` as the change that it is."""
    if node.op != "add" or len(node.args) != 2:
        return node
    for x, other in (node.args, node.args[::-1]):
        before = call("neg", other.args[0].args[0]) if other.op == "neg" and other.args[0].op == "delay" else None
        late = other.args[0] if other.op == "neg" else other  # a delay may stand within the sign or around it
        before = before or (other.args[0] if other.op == "delay" else None)
        if before is not None and before == negated(x):
            plain = x.args[0] if x.op == "neg" else x
            change = _change(call("delta", plain, window=late.window))
            return negated(change) if x.op == "neg" else change
    return node


def _common(node: Node) -> Node:
    """Take a factor that every term has out of a sum: ``x * y + x * z`` is ``x * (y + z)``; likewise a common divisor."""
    if node.op != "add":
        return node
    bare = [arg.args[0] if arg.op == "neg" else arg for arg in node.args]
    if all(term.op == "div" and term.args[1] == bare[0].args[1] for term in bare):
        above = [
            negated(term.args[0]) if arg.op == "neg" else term.args[0]
            for arg, term in zip(node.args, bare, strict=True)
        ]
        return _ratio(call("div", _sum(call("add", *above)), bare[0].args[1]))
    bodies = [factors_of(arg.args[0] if arg.op == "neg" else arg) for arg in node.args]
    shared = next((each for each in bodies[0] if all(each in body for body in bodies)), None)
    if shared is None or shared.op == "number":
        return node
    for body in bodies:
        body.remove(shared)
    terms = [negated(_product(body)) if arg.op == "neg" else _product(body)
             for arg, body in zip(node.args, bodies, strict=True)]  # fmt: skip
    return call("mul", shared, _common(call("add", *terms)))


# Ratios and products.


def _ratio(node: Node) -> Node:
    """Write a distance from the mean over the spread as a z-score, a covariance over both spreads as a correlation, ..."""
    above, below = factors_of(node.args[0]), factors_of(node.args[1])
    if twice := next((each for each in above if each in below and each.op != "number"), None):
        above.remove(twice)
        below.remove(twice)
        return _ratio(call("div", _product(above), _product(below))) if below else _product(above)
    if node.args[1] in (number(1), number(-1)):
        return node.args[0] if node.args[1] == number(1) else negated(node.args[0])
    for place, each in enumerate(above):
        for name in SCORES:
            score = SCORES[name](each, below)
            if score is None:
                continue
            short, used = score
            for spread in used:
                below.remove(spread)
            upper = _signed(_product([*above[:place], short, *above[place + 1 :]]))
            return call("div", upper, _product(below)) if below else upper
    return node


def _signed(product: Node) -> Node:
    """Move the signs of factors to the front."""
    bare = [factor.args[0] if factor.op == "neg" else factor for factor in factors_of(product)]
    odd = sum(factor.op == "neg" for factor in factors_of(product)) % 2
    return call("neg", _product(bare)) if odd else _product(bare)


Score = tuple[Node, list[Node]] | None
"""The short spelling, and the factors below the line that go into it."""


def _day_score(above: Node, below: Sequence[Node]) -> Score:
    inner = above.args[0] if above.op == "neg" else above
    if inner.op != "demean":
        return None
    spread = call("std_across", *inner.args)
    short = call("zscore", *inner.args)
    return (negated(short) if inner is not above else short, [spread]) if spread in below else None


def _window_score(above: Node, below: Sequence[Node]) -> Score:
    if above.op != "add" or len(above.args) != 2:
        return None
    for spread in (each for each in below if each.op == "ts_std"):
        x = spread.args[0]
        mean = Node("ts_mean", (x,), (("window", float(spread.window)),))
        short = Node("ts_zscore", (x,), (("window", float(spread.window)),))
        if set(above.args) == {x, call("neg", mean)}:
            return short, [spread]
        if set(above.args) == {mean, call("neg", x)}:
            return call("neg", short), [spread]
    return None


def _correlation(above: Node, below: Sequence[Node]) -> Score:
    if above.op != "ts_cov":
        return None
    spreads = [Node("ts_std", (x,), (("window", float(above.window)),)) for x in above.args]
    return (Node("ts_corr", above.args, above.params), spreads) if all(each in below for each in spreads) else None


def _relative(above: Node, below: Sequence[Node]) -> Score:
    """Write a change over what it was before as a return."""
    if above.op != "delta":
        return None
    before = call("delay", *above.args, window=above.window)
    return (_return(call("ts_returns", *above.args, window=above.window)), [before]) if before in below else None


SCORES: Mapping[str, Callable[[Node, Sequence[Node]], Score]] = MappingProxyType(
    {"zscore": _day_score, "ts_zscore": _window_score, "ts_corr": _correlation, "ts_returns": _relative}
)


def _times(node: Node) -> Node:
    """Write ``sign(x) * abs(x)`` as x; leave out what is 1: a condition that always holds, the sign of what is above 0."""
    args = [arg for arg in node.args if not (arg == number(1) or truth(arg))]
    for sign in [arg for arg in args if arg.op == "sign"]:
        size = call("abs", *sign.args)
        if size in args:
            args.remove(sign)
            args[args.index(size)] = sign.args[0]
    return node if len(args) == len(node.args) else _product(args)


# Choices.


def _chosen(node: Node) -> Node:
    """Write a choice as the maximum, minimum, size or product that it is."""
    condition, x, y = node.args
    held = truth(condition)
    if x == y or held is not None:
        return y if held is False else x
    if number(0.0) in (x, y):
        return call("mul", condition, x) if y == number(0.0) else call("mul", _opposite(condition), y)
    if condition.op not in ("lt", "gt"):
        return node
    less, more = condition.args if condition.op == "lt" else condition.args[::-1]
    if (x, y) == (more, less):
        return call("max", x, y)
    if (x, y) == (less, more):
        return call("min", x, y)
    if number(0.0) in (less, more) and negated(x) == y:
        tested = more if less == number(0.0) else less
        size = call("abs", tested)
        if tested in (x, y):
            return size if (tested == x) == (tested is more) else negated(size)
    return node


def _opposite(condition: Node) -> Node:
    """Return where a condition does not hold."""
    opposite = OPPOSITE.get(condition.op)
    return call(opposite, *condition.args) if opposite else call("not", condition)


def _extreme(node: Node) -> Node:
    """Write ``max(x, -x)`` as the size of x; leave out what never decides: 0 beside a volume, the close beside the high."""
    if len(node.args) == 2 and negated(node.args[0]) == node.args[1]:
        x = next(arg for arg in node.args if arg.op != "neg")
        return sized(call("abs", x)) if node.op == "max" else negated(sized(call("abs", x)))
    turn = 1 if node.op == "max" else -1
    kept = [arg for arg in node.args
            if not any(other != arg and turn * difference(other, arg) >= NOT_BELOW for other in node.args)]  # fmt: skip
    return node if len(kept) in (0, len(node.args)) else kept[0] if len(kept) == 1 else node.with_args(*kept)


def _clipped(node: Node) -> Node:
    """Write what is held between two numbers as the minimum of a maximum."""
    low, high = node.param("low", -math.inf), node.param("high", math.inf)
    return call("min", call("max", node.args[0], number(low)), number(high))


# Single steps.


def _single(node: Node) -> Node:
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
    return _return(call("ts_returns", ratio.args[0], window=ratio.args[1].window))


def _variance(node: Node) -> Node:
    return call("power", Node("ts_std", node.args, node.params), number(2))


def _root(node: Node) -> Node:
    inner = node.args[0]
    if inner.op != "power" or inner.args[1].op != "number":
        return node
    if inner.args[1] == number(2):
        return sized(call("abs", inner.args[0]))
    return raised(call("power", inner, number(0.5)))


def _change(node: Node) -> Node:
    """Write the change of a logarithm as the logarithm of the ratio."""
    inner = node.args[0]
    if inner.op != "log":
        return node
    return _growth(call("log", call("div", inner.args[0], call("delay", inner.args[0], window=node.window))))


def _undone(node: Node) -> Node:
    """Drop a logarithm of an exponential, and the other way round."""
    inner = node.args[0]
    if {node.op, inner.op} == {"exp", "log"}:
        return inner.args[0]
    return _growth(node) if node.op == "log" else node


SINGLE = ("decay_linear", "ema", "ts_last", "ts_max", "ts_mean", "ts_median", "ts_min", "ts_product")
"""Steps over time that change nothing in a window of one row."""

RULES: Mapping[str, Rule] = MappingProxyType(
    {
        **dict.fromkeys(("exp", "log"), _undone),
        **dict.fromkeys(("max", "min"), _extreme),
        **dict.fromkeys(SINGLE, _single),
        "abs": sized,
        "add": _sum,
        "clip": _clipped,
        "delta": _change,
        "div": _ratio,
        "mul": _times,
        "neg": lambda node: negated(node.args[0]),
        "power": raised,
        "sign": signum,
        "signed_power": signed_power,
        "sqrt": _root,
        "ts_returns": _return,
        "ts_var": _variance,
        "where": _chosen,
    }
)
