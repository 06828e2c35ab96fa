"""Declare the four operations, the larger or smaller of two, and short names for products."""

from __future__ import annotations

import numpy as np

from ...kernels.cells import FLOAT32_ZERO, NAN, Array, finite, row
from ...kernels.kernel_cache import kernel
from ...language.operator import MAX_TERMS, SQUARE, Prose, cell


@kernel
def add(out: Array, left: Array, right: Array, lo: int, hi: int) -> None:
    """Add."""
    for day in range(lo, hi):
        a, b, o = row(left, day), row(right, day), out[day]
        for j in range(o.size):
            o[j] = finite(a[j] + b[j])


@kernel
def sub(out: Array, left: Array, right: Array, lo: int, hi: int) -> None:
    """Subtract."""
    for day in range(lo, hi):
        a, b, o = row(left, day), row(right, day), out[day]
        for j in range(o.size):
            o[j] = finite(a[j] - b[j])


@kernel
def mul(out: Array, left: Array, right: Array, lo: int, hi: int) -> None:
    """Multiply."""
    for day in range(lo, hi):
        a, b, o = row(left, day), row(right, day), out[day]
        for j in range(o.size):
            o[j] = finite(a[j] * b[j])


@kernel
def div(out: Array, left: Array, right: Array, lo: int, hi: int) -> None:
    """Divide; by zero is missing."""
    for day in range(lo, hi):
        a, b, o = row(left, day), row(right, day), out[day]
        for j in range(o.size):
            o[j] = finite(a[j] / b[j])


@kernel
def neg(out: Array, values: Array, lo: int, hi: int) -> None:
    """Turn the sign."""
    for day in range(lo, hi):
        a, o = row(values, day), out[day]
        for j in range(o.size):
            o[j] = FLOAT32_ZERO - a[j]


@kernel
def larger(out: Array, left: Array, right: Array, lo: int, hi: int) -> None:
    """Take the larger of two; missing where either is."""
    for day in range(lo, hi):
        a, b, o = row(left, day), row(right, day), out[day]
        for j in range(o.size):
            best = max(a[j], b[j])
            o[j] = best if (a[j] == a[j]) & (b[j] == b[j]) else NAN


@kernel
def smaller(out: Array, left: Array, right: Array, lo: int, hi: int) -> None:
    """Take the smaller of two; missing where either is."""
    for day in range(lo, hi):
        a, b, o = row(left, day), row(right, day), out[day]
        for j in range(o.size):
            best = min(a[j], b[j])
            o[j] = best if (a[j] == a[j]) & (b[j] == b[j]) else NAN


ADD = cell("add", "x y", "common", Prose("Sum.", "{x} plus {y}", "high + low"), add,
           symmetric=True, infix="+", many=MAX_TERMS, reference=np.add)  # fmt: skip  # a table
SUB = cell(
    "sub", "x y", "common", Prose("Difference.", "{x} minus {y}", "close - open"), sub, infix="-", reference=np.subtract
)
MUL = cell("mul", "x y", "product", Prose("Product.", "{x} times {y}", "close * volume"), mul,
           symmetric=True, infix="*", many=MAX_TERMS, reference=np.multiply)  # fmt: skip  # a table
DIV = cell("div", "x y", "quotient", Prose("Ratio.", "{x} divided by {y}", "close / open"), div,
           infix="/", nan="Division by zero is NaN, never infinite.", reference=np.divide)  # fmt: skip  # a table
NEG = cell("neg", "x", "same", Prose("Negative.", "minus {x}", "-returns"), neg, infix="-", reference=np.negative)
MAX = cell("max", "x y", "common",
           Prose("The larger of the two.", "the larger of {x} and {y}", "max(open, close)"), larger,
           symmetric=True, mirror="min", many=MAX_TERMS, reference=np.maximum)  # fmt: skip  # a table
MIN = cell("min", "x y", "common",
           Prose("The smaller of the two.", "the smaller of {x} and {y}", "min(open, close)"), smaller,
           symmetric=True, mirror="max", many=MAX_TERMS, reference=np.minimum)  # fmt: skip  # a table

SQUARE_OF = cell(
    "square", "x", "square", Prose("x times itself.", "the square of {x}", "square(returns)"), scaling=SQUARE,
    definition="x * x",
)  # fmt: skip  # a table
INVERSE = cell(
    "inverse", "x", "ratio", Prose("One over x.", "one over {x}", "inverse(close)"), scaling=("inverse",),
    nan="The inverse of 0 is NaN.", definition="1 / x",
)  # fmt: skip  # a table
