"""Bring formulas that are equal by algebra to one tree, the canonical form; its hash is the id of a factor.

Every step keeps the values, NaN included, up to rounding: sums and products are flattened and sorted, constants folded,
like terms and equal factors collected, signs and constant factors moved outwards as far as each operator lets them
(`Operator.scaling`), symmetric arguments sorted, and the few identities of `_contract` applied. Nothing cancels: x / x and
0 * x are NaN where x is. The overall sign and factor are part of the id; `unsigned` and `core` take them off.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType

from ..definitions import expanded
from ..describe.render import render
from ..language.node import Node, call, number
from ..operators import OPERATORS
from .linear import (
    ONE,
    BadConstant,
    Linear,
    Product,
    body_of,
    checked,
    dressed,
    exact,
    ordered,
    product_of,
    undressed,
    written,
)

WRAPPERS = frozenset({"demean", "rank", "scale", "zscore"})
"""Steps that keep the order of the names of a day."""
LARGEST_POWER = 16

Scaled = tuple[Fraction, Node | None]
"""A coefficient and the body that it multiplies; no body for a constant."""


def canonical(node: Node) -> Node:
    """Return the canonical form of a tree."""
    return dressed(*_settled(_linear(node)))


def unsigned(node: Node) -> Node:
    """Return a canonical tree without its overall sign: equal for a factor and its opposite."""
    coefficient, body = undressed(node)
    return dressed(abs(coefficient), body)


def core(node: Node) -> Node:
    """Return a canonical tree without sign, factor, added constant, and outermost rank, z-score, scale or demean.

    Formulas with equal cores order the names of a day alike, or in opposite order.
    """
    while True:
        bare = _without_constants(node)
        if bare.op in WRAPPERS:
            bare = bare.args[0]
        if bare == node:
            return node
        node = bare


def _without_constants(node: Node) -> Node:
    """Drop the factor and an added constant."""
    _, body = undressed(node)
    if body is None or body.op != "add" or body.args[-1].op != "number":
        return body or node
    rest = body.args[:-1]
    return rest[0] if len(rest) == 1 else body.with_args(*rest)


@functools.lru_cache(maxsize=4096)
def _linear(node: Node) -> Linear:
    """Return a tree as a sum of multiples of canonical bodies."""
    node = expanded(node)
    if node.op == "number":
        return Linear(constant=exact(node.value or 0.0))
    if node.op in ("add", "sub"):
        return _sum(node)
    if node.op == "neg":
        return _linear(node.args[0]).scaled(Fraction(-1))
    if node.op in ("mul", "div") or _whole_power(node):
        return _product(node)
    return _as_linear(*_opaque(node))


def _as_linear(coefficient: Fraction, body: Node | None) -> Linear:
    return Linear(constant=coefficient) if body is None else Linear({body: coefficient})


def _sum(node: Node) -> Linear:
    total = _linear(node.args[0])
    for arg in node.args[1:]:
        total = total.plus(_linear(arg), Fraction(-1) if node.op == "sub" else ONE)
    return total


def _whole_power(node: Node) -> int:
    """Return the exponent of a power by a small whole number, else 0."""
    if node.op != "power":
        return 0
    exponent = _linear(node.args[1])
    whole = not exponent.terms and exponent.constant.denominator == 1
    return int(exponent.constant) if whole and abs(exponent.constant) <= LARGEST_POWER else 0


def _powers(node: Node, power: int = 1) -> list[tuple[Linear, int]]:
    """Return the factors of a product, each with its exponent.

    A ratio below the line stays one factor: a / (b / c) is NaN where c is 0, a * c / b is not; so does a negative power.
    """
    whole = _whole_power(node)
    if whole and (power > 0 or whole > 0):
        return _powers(node.args[0], power * whole)
    if node.op == "neg":
        return [(Linear(constant=-ONE), power), *_powers(node.args[0], power)]
    if node.op == "mul":
        return [factor for arg in node.args for factor in _powers(arg, power)]
    if node.op == "div" and power > 0:
        return [*_powers(node.args[0], power), *_powers(node.args[1], -power)]
    return [(_linear(node), power)]


def _product(node: Node) -> Linear:
    """Multiply: constants are folded; one sum times constants stays a sum; else factors are collected."""
    powers = _powers(node)
    sums = [(factor, power) for factor, power in powers if factor.terms]
    coefficient = ONE
    for factor, power in powers:
        if not factor.terms:
            coefficient = _multiplied(coefficient, factor.constant, power)
    if not sums:
        return Linear(constant=coefficient)
    if len(sums) == 1 and sums[0][1] == 1:
        return sums[0][0].scaled(coefficient)
    return _collected(coefficient, sums)


def _multiplied(coefficient: Fraction, value: Fraction, power: int) -> Fraction:
    if value == 0 and power < 0:
        raise BadConstant("the formula always divides by zero")
    return checked(coefficient * checked(value**power))


def _collected(coefficient: Fraction, sums: list[tuple[Linear, int]]) -> Linear:
    product = Product()
    for factor, power in sums:
        own, body = _settled(factor)
        assert body is not None
        coefficient = _multiplied(coefficient, own, power)
        whole = Product(Counter({body: 1})) if power < 0 and body.op == "div" else product_of(body)
        product = product.times(whole, power)
    return _as_linear(coefficient, _contracted(product))


def _contracted(product: Product) -> Node:
    """Write a product; a change over the earlier value is a return."""
    body = body_of(product)
    if body.op == "div" and body.args[0].op == "delta":
        change, before = body.args
        if before == Node("delay", change.args, change.params):
            return Node("ts_returns", change.args, change.params)
    return body


def _settled(total: Linear) -> Scaled:
    """Return a sum as a coefficient and a body whose first term has coefficient 1."""
    total = _contract(total)
    if not total.terms:
        return total.constant, None
    bodies = ordered(total.terms)
    if len(bodies) == 1 and total.constant == 0:
        return total.terms[bodies[0]], bodies[0]
    pivot = next((total.terms[body] for body in bodies if total.terms[body] != 0), ONE)
    terms = [dressed(total.terms[body] / pivot, body) for body in bodies]
    constant = [number(written(total.constant / pivot))] if total.constant else []
    return pivot, call("add", *terms, *constant)


def _contract(total: Linear) -> Linear:
    """Apply the identities of sums.

    ``x - delay(x, d)`` is ``delta(x, d)``; ``x / delay(x, d) - 1`` is ``ts_returns(x, d)``; and ``x / y - 1`` is
    ``(x - y) / y`` for a plain field y.
    """
    terms, constant = dict(total.terms), total.constant
    for body in ordered(total.terms):
        coefficient = terms.get(body, Fraction(0))
        if body.op == "delay" and coefficient and terms.get(body.args[0]) == -coefficient:
            del terms[body], terms[body.args[0]]
            change = Node("delta", body.args, body.params)
            terms[change] = terms.get(change, Fraction(0)) - coefficient
        elif body.op == "div" and coefficient and constant == -coefficient and (share := _relative(body)):
            sign, relative = share
            del terms[body]
            constant = Fraction(0)
            terms[relative] = terms.get(relative, Fraction(0)) + sign * coefficient
    return Linear(terms, constant)


def _relative(body: Node) -> tuple[Fraction, Node] | None:
    """Return ``x / y - 1`` as one body and its sign, where it has one."""
    above, below = body.args
    if below.op == "delay" and below.args[0] == above:
        return ONE, Node("ts_returns", below.args, below.params)
    if below.op != "field" or above.op == "number":
        return None
    sign, difference = _settled(_spread(above).plus(Linear({below: ONE}), Fraction(-1)))
    return (sign, call("div", difference, below)) if abs(sign) == 1 and difference is not None else None


def _spread(body: Node) -> Linear:
    """Return a canonical body as a sum again."""
    return _sum(body) if body.op == "add" else Linear({body: ONE})


def _opaque(node: Node) -> Scaled:
    """Bring an operator that is not arithmetic to canonical form: its arguments first, then what it lets through."""
    if node.is_leaf:
        return ONE, node
    scaled = [_settled(_linear(arg)) if arg.op != "group" else (ONE, arg) for arg in node.args]
    if (folded := _folded(node, scaled)) is not None:
        return folded, None
    if node.op in ("max", "min"):
        return _extreme(node, scaled)
    if node.op in ("and", "or"):
        return ONE, _joined(node.op, [dressed(*each) for each in scaled])
    special = SPECIAL.get(node.op)
    if special is not None:
        return ONE, special(node.with_args(*(dressed(*each) for each in scaled)))
    return _released(node, scaled)


def _released(node: Node, scaled: list[Scaled]) -> Scaled:
    """Move the constant factors of the arguments outwards, as far as the operator lets them."""
    operator = OPERATORS[node.op]
    total, op, args = ONE, node.op, []
    rules = operator.scaling or ("none",)
    for place, (coefficient, body) in enumerate(scaled):
        rule = rules[place] if place < len(rules) else "none"
        if body is None or coefficient == 0 or rule == "none" or body.op == "group":
            args.append(dressed(coefficient, body))
            continue
        outside, inside = SCALING[rule](coefficient)
        if inside < 0 and operator.mirror:
            op, inside = operator.mirror, ONE
            outside = -outside if rule == "mirror" else outside
        total = checked(total * outside)
        args.append(dressed(inside, body))
    if operator.symmetric:
        args = ordered(args)
    elif operator.takes_many:
        args = [args[0], *ordered(set(args[1:]))]
    factor, body = undressed(_simplified(Node(op, tuple(args), node.params)))
    return total * factor, body


def _sign(value: Fraction) -> Fraction:
    return ONE if value > 0 else -ONE


SCALING: Mapping[str, Callable[[Fraction], tuple[Fraction, Fraction]]] = MappingProxyType(
    {
        "linear": lambda c: (c, ONE),
        "absolute": lambda c: (abs(c), ONE),
        "square": lambda c: (c * c, ONE),
        "inverse": lambda c: (1 / c, ONE),
        "odd": lambda c: (_sign(c), ONE),
        "even": lambda _: (ONE, ONE),
        "order": lambda c: (ONE, _sign(c)),
        "mirror": lambda c: (abs(c), _sign(c)),
    }
)
"""For a factor c of an argument: what comes out of the operator, and what stays inside (see `Operator.scaling`)."""

IDEMPOTENT = frozenset({"rank", "zscore", "demean", "scale", "abs", "sign"})


def _simplified(node: Node) -> Node:
    """Drop an inner step that the outer one repeats: the rank of a rank, the z-score of what was demeaned."""
    inner = node.args[0]
    if node.op in IDEMPOTENT and inner.op == node.op and inner.params == node.params:
        return inner
    if node.op in ("rank", "zscore") and inner.op == "demean":
        return node.with_args(inner.args[0])
    if node.op == "delay" and not node.window:
        return inner
    return call("sqrt", inner) if node.op == "power" and node.args[1] == number(0.5) else node


def _extreme(node: Node, scaled: list[Scaled]) -> Scaled:
    """Flatten and sort a maximum or minimum; its first argument is made positive."""
    mirror = OPERATORS[node.op].mirror
    flat: list[Scaled] = []
    for coefficient, body in scaled:
        if body is not None and abs(coefficient) == 1 and body.op == (node.op if coefficient > 0 else mirror):
            flat += [(coefficient * own, each) for own, each in map(undressed, body.args)]
        else:
            flat.append((coefficient, body))
    flat = _one_constant(node.op, flat)
    first = min(flat, key=lambda each: (each[1] is None, render(each[1]) if each[1] else "", -each[0]))
    sign = -ONE if first[1] is not None and first[0] < 0 else ONE
    args = ordered({dressed(sign * own, each) for own, each in flat})
    return sign, args[0] if len(args) == 1 else call(node.op if sign > 0 else mirror, *args)


def _one_constant(op: str, flat: list[Scaled]) -> list[Scaled]:
    """Keep the constant that decides among several of a maximum or minimum."""
    constants = [coefficient for coefficient, body in flat if body is None]
    if len(constants) < 2:
        return flat
    decides = max(constants) if op == "max" else min(constants)
    return [*(each for each in flat if each[1] is not None), (decides, None)]


def _joined(op: str, args: list[Node]) -> Node:
    """Flatten, sort and thin out a chain of conditions."""
    flat = {each for arg in args for each in (arg.args if arg.op == op else (arg,))}
    return flat.pop() if len(flat) == 1 else call(op, *ordered(flat))


OPPOSITE = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}


def _compared(node: Node) -> Node:
    """Write every comparison as less-than, and equalities in order."""
    op, args = node.op, node.args
    if op in ("gt", "ge"):
        op, args = OPERATORS[op].mirror, args[::-1]
    return call(op, *(ordered(args) if op in ("eq", "ne") else args))


def _denied(node: Node) -> Node:
    """Take the opposite of a condition."""
    inner = node.args[0]
    if inner.op == "not":
        return inner.args[0]
    return _compared(call(OPPOSITE[inner.op], *inner.args)) if inner.op in OPPOSITE else node


def _chosen(node: Node) -> Node:
    """Write a choice on a denied condition the other way round."""
    condition, x, y = node.args
    if condition.op == "not":
        return call("where", condition.args[0], y, x)
    if condition.op in ("le", "ne"):
        return call("where", _denied(call("not", condition)), y, x)
    return node


SPECIAL: Mapping[str, Callable[[Node], Node]] = MappingProxyType(
    {**dict.fromkeys(OPPOSITE, _compared), "not": _denied, "where": _chosen}
)

FOLDED: Mapping[str, Callable[..., float]] = MappingProxyType(
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


def _folded(node: Node, scaled: list[Scaled]) -> Fraction | None:
    """Return the value of an elementwise operator on constants, or None where there is something else."""
    if node.op not in FOLDED or any(body is not None for _, body in scaled):
        return None
    try:
        value = FOLDED[node.op](*(float(coefficient) for coefficient, _ in scaled))
    except (ValueError, OverflowError, ZeroDivisionError):
        raise BadConstant(f"{render(node)} is not a number") from None
    return checked(exact(written(Fraction(value))))
