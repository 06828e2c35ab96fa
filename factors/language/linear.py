"""Keep sums of multiples exactly, while a formula is brought to its canonical form.

A `Linear` is a sum of bodies with coefficients plus a constant, all fractions: no rounding happens before the result is
written as a tree, so equal formulas meet in one form whatever the order of their terms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from ..describe.render import render
from .node import Node, call_node, number_node

FRACTION_ONE = Fraction(1)
FRACTION_ZERO = Fraction(0)
MAX_CONSTANT = Fraction(10) ** 30
SMALL_PART = 10**15
"""Numerator and denominator below which a fraction is in range at sight: comparing fractions is slow."""
EXACT_DIGITS = 10**12
"""Whole numbers below which 12 significant digits round nothing."""


class BadConstant(Exception):
    """A constant of the formula is no usable number: too large, too small, or not a number at all."""


@dataclass(frozen=True, slots=True)
class Linear:
    """A sum: coefficients by body, and a constant. A coefficient of 0 stays, since 0 * x is NaN where x is."""

    terms: dict[Node, Fraction] = field(default_factory=dict)
    constant: Fraction = FRACTION_ZERO

    def plus(self, other: Linear, times: Fraction = FRACTION_ONE) -> Linear:
        """Return the sum with a multiple of another."""
        terms = dict(self.terms)
        for body, coefficient in other.terms.items():
            multiple = coefficient if times is FRACTION_ONE else times * coefficient
            terms[body] = check_constant(terms[body] + multiple if body in terms else multiple)
        constant = other.constant if times is FRACTION_ONE else times * other.constant
        return Linear(terms, check_constant(self.constant + constant))

    def scale(self, factor: Fraction) -> Linear:
        """Return the sum with everything multiplied."""
        return Linear().plus(self, factor)


def check_constant(value: Fraction) -> Fraction:
    """Return a constant, refusing one that is out of range."""
    if -SMALL_PART < value.numerator < SMALL_PART and value.denominator < SMALL_PART:
        return value
    if abs(value) > MAX_CONSTANT or 0 < abs(value) < 1 / MAX_CONSTANT:
        raise BadConstant("a constant of the formula becomes too large or too small")
    return value


@lru_cache(maxsize=4096)
def to_fraction(value: float) -> Fraction:
    """Return a literal as the decimal fraction that it shows."""
    return Fraction(repr(value))


def round_to_float(value: Fraction) -> float:
    """Return a fraction as a float of 12 significant digits: far finer than the values, and equal sums meet."""
    if value.denominator == 1 and -EXACT_DIGITS < value.numerator < EXACT_DIGITS:
        return float(value.numerator)
    return float(f"{float(value):.12g}")


def sort_bodies(bodies: Iterable[Node]) -> list[Node]:
    """Return nodes in the canonical order: numbers last, then by their formula."""
    listed = list(bodies)
    if len(listed) < 2:
        return listed
    return sorted(listed, key=lambda body: (body.op == "number", render(body)))


@dataclass(frozen=True, slots=True)
class Product:
    """Factors above and below the line, each with how often it occurs."""

    above: Counter[Node] = field(default_factory=Counter)
    below: Counter[Node] = field(default_factory=Counter)

    def times(self, other: Product, power: int = 1) -> Product:
        """Return the product with a power of another; nothing cancels, since x / x is NaN where x is 0 or NaN."""
        above, below = (other.above, other.below) if power > 0 else (other.below, other.above)
        return Product(_add_counts(self.above, above, abs(power)), _add_counts(self.below, below, abs(power)))


def _add_counts(left: Counter[Node], right: Counter[Node], times: int) -> Counter[Node]:
    return left + Counter({body: count * times for body, count in right.items()})


def split_product(body: Node) -> Product:
    """Take a canonical body apart into its factors."""
    if body.op == "div":
        above, below = body.args
        return Product(_factors(above), _factors(below))
    return Product(_factors(body))


def _factors(node: Node) -> Counter[Node]:
    if node.op == "number":
        return Counter()
    factors: Counter[Node] = Counter()
    for factor in node.args if node.op == "mul" else (node,):
        base, count = _base(factor)
        factors[base] += count
    return factors


def _base(factor: Node) -> tuple[Node, int]:
    """Return the base and the whole exponent of a factor."""
    if factor.op == "power" and factor.args[1].op == "number":
        exponent = factor.args[1].value or 0.0
        if exponent == int(exponent) and exponent >= 2:
            return factor.args[0], int(exponent)
    return factor, 1


def join_product(product: Product) -> Node:
    """Write a product without its coefficient as a canonical body."""
    above = _join_factors(product.above)
    return call_node("div", above, _join_factors(product.below)) if product.below else above


def _join_factors(factors: Counter[Node]) -> Node:
    powers = [base if count == 1 else call_node("power", base, number_node(count)) for base, count in factors.items()]
    if not powers:
        return number_node(1)
    return powers[0] if len(powers) == 1 else call_node("mul", *sort_bodies(powers))


def apply_coefficient(coefficient: Fraction, body: Node | None) -> Node:
    """Write a multiple of a body as a tree: ``-x``, ``2 * x * y``, ``3 / x``; window times mean as the sum."""
    value = round_to_float(coefficient)
    if body is None:
        return number_node(value)
    if value == 1:
        return body
    if is_plain(body, "ts_mean") and abs(value) == body.window:
        total = Node("ts_sum", body.args, body.params)
        return total if value > 0 else call_node("neg", total)
    if value == -1:
        return call_node("neg", body)
    if body.op == "div":
        return body.with_args(_multiply_number(value, body.args[0]), body.args[1])
    return _multiply_number(value, body)


def is_plain(node: Node, op: str) -> bool:
    """Return whether a node is a rolling operator without any keyword."""
    return node.op == op and len(node.params) == 1


def _multiply_number(value: float, body: Node) -> Node:
    if body.op == "number":
        return number_node(value)
    factors = body.args if body.op == "mul" else (body,)
    return call_node("mul", number_node(value), *factors)


def split_coefficient(node: Node) -> tuple[Fraction, Node | None]:
    """Take a canonical tree apart into its coefficient and body: the inverse of `apply_coefficient`."""
    if node.op == "neg":
        coefficient, body = split_coefficient(node.args[0])
        return -coefficient, body
    if is_plain(node, "ts_sum"):
        return Fraction(node.window), Node("ts_mean", node.args, node.params)
    if node.op == "number":
        return to_fraction(node.value or 0.0), None
    if node.op == "mul" and node.args[0].op == "number":
        rest = node.args[1:]
        return to_fraction(node.args[0].value or 0.0), rest[0] if len(rest) == 1 else node.with_args(*rest)
    if node.op == "div":
        coefficient, above = split_coefficient(node.args[0])
        return coefficient, node.with_args(above or number_node(1), node.args[1])
    return FRACTION_ONE, node
