"""Bring formulas that are equal by algebra to one tree, the canonical form; its hash is the id of a factor.

Every step keeps the values, NaN included, up to rounding: sums and products are flattened and sorted, constants folded,
like terms and equal factors collected, signs and constant factors moved outwards as far as each operator lets them
(`Operator.scaling`), symmetric arguments sorted, and the few identities of `_contract` applied. Nothing cancels: x / x
and 0 * x are NaN where x is. The overall sign and factor are part of the id; `strip_sign` and `find_core` take them
off.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType

from ..describe.render import render
from ..operators import OPERATORS
from .definitions import expand_operator
from .linear import (
    FRACTION_ONE,
    FRACTION_ZERO,
    BadConstant,
    Linear,
    Product,
    apply_coefficient,
    check_constant,
    join_product,
    round_to_float,
    sort_bodies,
    split_coefficient,
    split_product,
    to_fraction,
)
from .node import Node, call_node, number_node

DAY_WRAPPERS = frozenset({"demean", "rank", "scale", "zscore"})
"""Steps that keep the order of the names of a day."""
LARGEST_POWER = 16

BUCKET_ROWS = (1, 2, 3, 5, 10, 20, 40, 60, 120, 250)
"""The lengths, in rows."""

Scaled = tuple[Fraction, Node | None]
"""A coefficient and the body that it multiplies; no body for a constant."""


def canonicalise(node: Node) -> Node:
    """Return the canonical form of a tree."""
    return apply_coefficient(*_normalise_sum(_linearise_tree(node)))


def strip_sign(node: Node) -> Node:
    """Return a canonical tree without its overall sign: equal for a factor and its opposite."""
    coefficient, body = split_coefficient(node)
    return apply_coefficient(abs(coefficient), body)


def find_core(node: Node) -> Node:
    """Return a canonical tree without sign, factor, added constant, and outermost rank, z-score, scale or demean.

    Formulas with equal cores order the names of a day alike, or in opposite order.
    """
    while True:
        bare = _drop_constants(node)
        if bare.op in DAY_WRAPPERS:
            bare = bare.args[0]
        if bare == node:
            return node
        node = bare


def _drop_constants(node: Node) -> Node:
    """Drop the factor and an added constant."""
    _, body = split_coefficient(node)
    if body is None or body.op != "add" or body.args[-1].op != "number":
        return body or node
    rest = body.args[:-1]
    return rest[0] if len(rest) == 1 else body.with_args(*rest)


@functools.lru_cache(maxsize=4096)
def _linearise_tree(node: Node) -> Linear:
    """Return a tree as a sum of multiples of canonical bodies."""
    node = expand_operator(node)
    if node.op == "number":
        return Linear(constant=to_fraction(node.value or 0.0))
    if node.op in ("add", "sub"):
        return _sum(node)
    if node.op == "neg":
        return _linearise_tree(node.args[0]).scale(Fraction(-1))
    if node.op in ("mul", "div") or _whole_power(node):
        return _product(node)
    return _as_linear(*_canonical_call(node))


def _as_linear(coefficient: Fraction, body: Node | None) -> Linear:
    return Linear(constant=coefficient) if body is None else Linear({body: coefficient})


def _sum(node: Node) -> Linear:
    total = _linearise_tree(node.args[0])
    for arg in node.args[1:]:
        total = total.plus(_linearise_tree(arg), Fraction(-1) if node.op == "sub" else FRACTION_ONE)
    return total


def _whole_power(node: Node) -> int:
    """Return the exponent of a power by a small whole number, else 0."""
    if node.op != "power":
        return 0
    exponent = _linearise_tree(node.args[1])
    whole = not exponent.terms and exponent.constant.denominator == 1
    return int(exponent.constant) if whole and abs(exponent.constant) <= LARGEST_POWER else 0


def _powers(node: Node, power: int = 1) -> list[tuple[Linear, int]]:
    """Return the factors of a product, each with its exponent.

    A ratio in a divisor stays one factor, and so does a negative power: a / (b / c) is NaN where c is 0, a * c / b not.
    """
    whole = _whole_power(node)
    if whole and (power > 0 or whole > 0):
        return _powers(node.args[0], power * whole)
    if node.op == "neg":
        return [(Linear(constant=-FRACTION_ONE), power), *_powers(node.args[0], power)]
    if node.op == "mul":
        return [factor for arg in node.args for factor in _powers(arg, power)]
    if node.op == "div" and power > 0:
        return [*_powers(node.args[0], power), *_powers(node.args[1], -power)]
    return [(_linearise_tree(node), power)]


def _product(node: Node) -> Linear:
    """Multiply: constants are folded; one sum times constants stays a sum; else factors are collected."""
    powers = _powers(node)
    sums = [(factor, power) for factor, power in powers if factor.terms]
    coefficient = FRACTION_ONE
    for factor, power in powers:
        if not factor.terms:
            coefficient = _multiply_power(coefficient, factor.constant, power)
    if not sums:
        return Linear(constant=coefficient)
    if len(sums) == 1 and sums[0][1] == 1:
        return sums[0][0].scale(coefficient)
    return _collect_factors(coefficient, sums)


def _multiply_power(coefficient: Fraction, value: Fraction, power: int) -> Fraction:
    if value == 0 and power < 0:
        raise BadConstant("the formula always divides by zero")
    return check_constant(coefficient * check_constant(value**power))


def _collect_factors(coefficient: Fraction, sums: list[tuple[Linear, int]]) -> Linear:
    product = Product()
    for factor, power in sums:
        own, body = _normalise_sum(factor)
        assert body is not None
        coefficient = _multiply_power(coefficient, own, power)
        whole = Product(Counter({body: 1})) if power < 0 and body.op == "div" else split_product(body)
        product = product.times(whole, power)
    return _as_linear(coefficient, _contract_product(product))


def _contract_product(product: Product) -> Node:
    """Write a product; a change over the earlier value is a return."""
    body = join_product(product)
    if body.op == "div" and body.args[0].op == "delta":
        change, before = body.args
        if before == Node("delay", change.args, change.params):
            return Node("ts_returns", change.args, change.params)
    return body


def _normalise_sum(total: Linear) -> Scaled:
    """Return a sum as a coefficient and a body whose first term has coefficient 1."""
    if len(total.terms) == 1 and not total.constant:  # of one term there is nothing to contract, sort or divide
        ((body, coefficient),) = total.terms.items()
        return coefficient, body
    total = _contract(total)
    if not total.terms:
        return total.constant, None
    bodies = sort_bodies(total.terms)
    if len(bodies) == 1 and total.constant == 0:
        return total.terms[bodies[0]], bodies[0]
    pivot = next((total.terms[body] for body in bodies if total.terms[body] != 0), FRACTION_ONE)
    terms = [apply_coefficient(total.terms[body] / pivot, body) for body in bodies]
    constant = [number_node(round_to_float(total.constant / pivot))] if total.constant else []
    return pivot, call_node("add", *terms, *constant)


def _contract(total: Linear) -> Linear:
    """Apply the identities of sums.

    ``x - delay(x, d)`` is ``delta(x, d)``; ``x / delay(x, d) - 1`` is ``ts_returns(x, d)``; and ``x / y - 1`` is
    ``(x - y) / y`` for a plain field y.
    """
    terms, constant = dict(total.terms), total.constant
    for body in sort_bodies(total.terms):
        coefficient = terms.get(body, FRACTION_ZERO)
        if body.op == "delay" and coefficient and terms.get(body.args[0]) == -coefficient:
            del terms[body], terms[body.args[0]]
            change = Node("delta", body.args, body.params)
            terms[change] = terms.get(change, Fraction(0)) - coefficient
        elif body.op == "div" and coefficient and constant == -coefficient and (share := _match_return(body)):
            sign, relative = share
            del terms[body]
            constant = Fraction(0)
            terms[relative] = terms.get(relative, Fraction(0)) + sign * coefficient
    return Linear(terms, constant)


def _match_return(body: Node) -> tuple[Fraction, Node] | None:
    """Return ``x / y - 1`` as one body and its sign, where it has one."""
    above, below = body.args
    if below.op == "delay" and below.args[0] == above:
        return FRACTION_ONE, Node("ts_returns", below.args, below.params)
    if below.op != "field" or above.op == "number":
        return None
    sign, difference = _normalise_sum(_spread(above).plus(Linear({below: FRACTION_ONE}), Fraction(-1)))
    return (sign, call_node("div", difference, below)) if abs(sign) == 1 and difference is not None else None


def _spread(body: Node) -> Linear:
    """Return a canonical body as a sum again."""
    return _sum(body) if body.op == "add" else Linear({body: FRACTION_ONE})


def _canonical_call(node: Node) -> Scaled:
    """Bring an operator that is not arithmetic to canonical form: its arguments, then the factors that move out."""
    if node.is_leaf:
        return FRACTION_ONE, node
    scaled = [_normalise_sum(_linearise_tree(arg)) if arg.op != "group" else (FRACTION_ONE, arg) for arg in node.args]
    if (folded := _fold_constants(node, scaled)) is not None:
        return folded, None
    if node.op in ("max", "min"):
        return _extreme(node, scaled)
    if node.op in ("and", "or"):
        return FRACTION_ONE, _flatten_conditions(node.op, [apply_coefficient(*each) for each in scaled])
    special = SPECIAL.get(node.op)
    if special is not None:
        return FRACTION_ONE, special(node.with_args(*(apply_coefficient(*each) for each in scaled)))
    return _pull_out_factors(node, scaled)


def _pull_out_factors(node: Node, scaled: list[Scaled]) -> Scaled:
    """Move the constant factors of the arguments outwards, as far as the operator lets them."""
    operator = OPERATORS[node.op]
    total, op, args = FRACTION_ONE, node.op, []
    rules = operator.scaling or ("none",)
    for place, (coefficient, body) in enumerate(scaled):
        rule = rules[place] if place < len(rules) else "none"
        if body is None or coefficient == 0 or rule == "none" or body.op == "group":
            args.append(apply_coefficient(coefficient, body))
            continue
        outside, inside = SCALING[rule](coefficient)
        if inside < 0 and operator.mirror:
            op, inside = operator.mirror, FRACTION_ONE
            outside = -outside if rule == "mirror" else outside
        total = check_constant(total * outside)
        args.append(apply_coefficient(inside, body))
    if operator.symmetric:
        args = sort_bodies(args)
    elif operator.takes_many:
        args = [args[0], *sort_bodies(set(args[1:]))]
    factor, body = split_coefficient(_drop_repeated_step(Node(op, tuple(args), node.params)))
    return total * factor, body


def _sign(value: Fraction) -> Fraction:
    return FRACTION_ONE if value > 0 else -FRACTION_ONE


SCALING: Mapping[str, Callable[[Fraction], tuple[Fraction, Fraction]]] = MappingProxyType(
    {
        "linear": lambda c: (c, FRACTION_ONE),
        "absolute": lambda c: (abs(c), FRACTION_ONE),
        "square": lambda c: (c * c, FRACTION_ONE),
        "inverse": lambda c: (1 / c, FRACTION_ONE),
        "odd": lambda c: (_sign(c), FRACTION_ONE),
        "even": lambda _: (FRACTION_ONE, FRACTION_ONE),
        "order": lambda c: (FRACTION_ONE, _sign(c)),
        "mirror": lambda c: (abs(c), _sign(c)),
    }
)
"""For a factor c of an argument: what comes out of the operator, and what stays inside (see `Operator.scaling`)."""

IDEMPOTENT = frozenset({"rank", "zscore", "demean", "scale", "abs", "sign"})


def _drop_repeated_step(node: Node) -> Node:
    """Drop an inner step that the outer one repeats: the rank of a rank, the z-score of what was demeaned."""
    inner = node.args[0]
    if node.op in IDEMPOTENT and inner.op == node.op and inner.params == node.params:
        return inner
    if node.op in ("rank", "zscore") and inner.op == "demean":
        return node.with_args(inner.args[0])
    if node.op == "delay" and not node.window:
        return inner
    return call_node("sqrt", inner) if node.op == "power" and node.args[1] == number_node(0.5) else node


def _extreme(node: Node, scaled: list[Scaled]) -> Scaled:
    """Flatten and sort a maximum or minimum; its first argument is made positive."""
    mirror = OPERATORS[node.op].mirror
    flat: list[Scaled] = []
    for coefficient, body in scaled:
        if body is not None and abs(coefficient) == 1 and body.op == (node.op if coefficient > 0 else mirror):
            flat += [(coefficient * own, each) for own, each in map(split_coefficient, body.args)]
        else:
            flat.append((coefficient, body))
    flat = _merge_constants(node.op, flat)
    first = min(flat, key=lambda each: (each[1] is None, render(each[1]) if each[1] else "", -each[0]))
    sign = -FRACTION_ONE if first[1] is not None and first[0] < 0 else FRACTION_ONE
    args = sort_bodies({apply_coefficient(sign * own, each) for own, each in flat})
    return sign, args[0] if len(args) == 1 else call_node(node.op if sign > 0 else mirror, *args)


def _merge_constants(op: str, flat: list[Scaled]) -> list[Scaled]:
    """Keep the constant that decides among several of a maximum or minimum."""
    constants = [coefficient for coefficient, body in flat if body is None]
    if len(constants) < 2:
        return flat
    decides = max(constants) if op == "max" else min(constants)
    return [*(each for each in flat if each[1] is not None), (decides, None)]


def _flatten_conditions(op: str, args: list[Node]) -> Node:
    """Flatten, sort and thin out a chain of conditions."""
    flat = {each for arg in args for each in (arg.args if arg.op == op else (arg,))}
    return flat.pop() if len(flat) == 1 else call_node(op, *sort_bodies(flat))


OPPOSITE = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}


def _canonical_comparison(node: Node) -> Node:
    """Write every comparison as less-than, and equalities in order."""
    op, args = node.op, node.args
    if op in ("gt", "ge"):
        op, args = OPERATORS[op].mirror, args[::-1]
    return call_node(op, *(sort_bodies(args) if op in ("eq", "ne") else args))


def _negate_condition(node: Node) -> Node:
    """Take the opposite of a condition."""
    inner = node.args[0]
    if inner.op == "not":
        return inner.args[0]
    return _canonical_comparison(call_node(OPPOSITE[inner.op], *inner.args)) if inner.op in OPPOSITE else node


def _canonical_choice(node: Node) -> Node:
    """Write a choice on a denied condition the other way round."""
    condition, x, y = node.args
    if condition.op == "not":
        return call_node("where", condition.args[0], y, x)
    if condition.op in ("le", "ne"):
        return call_node("where", _negate_condition(call_node("not", condition)), y, x)
    return node


SPECIAL: Mapping[str, Callable[[Node], Node]] = MappingProxyType(
    {**dict.fromkeys(OPPOSITE, _canonical_comparison), "not": _negate_condition, "where": _canonical_choice}
)

FOLDABLE_FUNCTIONS: Mapping[str, Callable[..., float]] = MappingProxyType(
    {
        "abs": abs,
        "exp": math.exp,
        "log": math.log,
        "max": max,
        "min": min,
        "power": math.pow,
        "sign": lambda x: math.copysign(1.0, x) if x else 0.0,
        "signed_power": lambda x, y: math.copysign(math.pow(abs(x), y), x),
        "sqrt": math.sqrt,
        "sigmoid": lambda x: 1.0 / (1.0 + math.exp(-x)),
        "tanh": math.tanh,
    }
)


def _fold_constants(node: Node, scaled: list[Scaled]) -> Fraction | None:
    """Return the value of an elementwise operator on constants, or None where an argument is not constant."""
    if node.op not in FOLDABLE_FUNCTIONS or any(body is not None for _, body in scaled):
        return None
    try:
        value = FOLDABLE_FUNCTIONS[node.op](*(float(coefficient) for coefficient, _ in scaled))
    except (ValueError, OverflowError, ZeroDivisionError):
        raise BadConstant(f"{render(node)} is not a number") from None
    return check_constant(to_fraction(round_to_float(Fraction(value))))


def bucket_windows(node: Node) -> Node:
    """Return the canonical form with each window moved to the nearest of `BUCKET_ROWS`, by ratio.

    A long average (`ema` with a `span`) is moved by its span, and its window in proportion.
    """
    return canonicalise(_move_windows(node))


def _move_windows(node: Node) -> Node:
    node = expand_operator(node)
    args = tuple(map(_move_windows, node.args))
    moved = node.with_args(*args) if args else node
    if not node.window:
        return moved
    params = {name: value for name, value in moved.params if name != "min_periods"}
    if span := params.get("span"):
        params |= {"span": _nearest(span), "window": float(round(node.window / span * _nearest(span)))}
    else:
        params["window"] = _nearest(node.window)
    return Node(node.op, args, tuple(params.items()))


def _nearest(rows: float) -> float:
    """Return the nearest bucket, by ratio."""
    return float(min(BUCKET_ROWS, key=lambda bucket: abs(math.log(bucket / rows))))
