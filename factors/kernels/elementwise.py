"""Work cell by cell: arithmetic and functions of one value."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .cells import NAN, ONE, ZERO, Array, finite, row
from .kernel_cache import kernel


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


@kernel
def _raised(base: float, exponent: float) -> float:
    """Raise to a power; the common ones without the general function, which is ten times slower."""
    if exponent == 2.0:
        return base * base
    if exponent == 0.5:
        return math.sqrt(base)
    general: float = base**exponent
    return general


@kernel
def power(out: Array, base: Array, exponent: Array, lo: int, hi: int) -> None:
    """Raise to a power; a negative base with a broken exponent is missing, and so is anything to a missing power."""
    for day in range(lo, hi):
        a, b, o = row(base, day), row(exponent, day), out[day]
        for j in range(o.size):
            known = (a[j] == a[j]) & (b[j] == b[j])
            o[j] = finite(_raised(np.float64(a[j]), np.float64(b[j]))) if known else NAN


@kernel
def signed_power(out: Array, base: Array, exponent: Array, lo: int, hi: int) -> None:
    """Raise the size to a power and keep the sign; zero stays zero."""
    for day in range(lo, hi):
        a, b, o = row(base, day), row(exponent, day), out[day]
        for j in range(o.size):
            known = (a[j] == a[j]) & (b[j] == b[j])
            size = _raised(abs(np.float64(a[j])), np.float64(b[j]))
            signed = 0.0 if a[j] == ZERO and b[j] == ZERO else math.copysign(size, a[j])
            o[j] = finite(signed) if known else NAN


@kernel
def neg(out: Array, values: Array, lo: int, hi: int) -> None:
    """Turn the sign."""
    for day in range(lo, hi):
        a, o = row(values, day), out[day]
        for j in range(o.size):
            o[j] = ZERO - a[j]


@kernel
def size(out: Array, values: Array, lo: int, hi: int) -> None:
    """Drop the sign."""
    for day in range(lo, hi):
        a, o = row(values, day), out[day]
        for j in range(o.size):
            o[j] = abs(a[j])


@kernel
def sign(out: Array, values: Array, lo: int, hi: int) -> None:
    """Give -1, 0 or 1."""
    for day in range(lo, hi):
        a, o = row(values, day), out[day]
        for j in range(o.size):
            step = ONE if a[j] > ZERO else (-ONE if a[j] < ZERO else ZERO)
            o[j] = step if a[j] == a[j] else NAN


@kernel
def log(out: Array, values: Array, lo: int, hi: int) -> None:
    """Take the natural logarithm; of zero and below it is missing."""
    for day in range(lo, hi):
        a, o = row(values, day), out[day]
        for j in range(o.size):
            o[j] = finite(math.log(a[j]))


@kernel
def sqrt(out: Array, values: Array, lo: int, hi: int) -> None:
    """Take the square root; of a negative number it is missing."""
    for day in range(lo, hi):
        a, o = row(values, day), out[day]
        for j in range(o.size):
            o[j] = math.sqrt(a[j])


@kernel
def exp(out: Array, values: Array, lo: int, hi: int) -> None:
    """Raise e to the value; what is too large is missing."""
    for day in range(lo, hi):
        a, o = row(values, day), out[day]
        for j in range(o.size):
            o[j] = finite(math.exp(a[j]))


@kernel
def tanh(out: Array, values: Array, lo: int, hi: int) -> None:
    """Squeeze into -1 to 1."""
    for day in range(lo, hi):
        a, o = row(values, day), out[day]
        for j in range(o.size):
            o[j] = math.tanh(a[j])


@kernel
def sigmoid(out: Array, values: Array, lo: int, hi: int) -> None:
    """Squeeze into 0 to 1."""
    for day in range(lo, hi):
        a, o = row(values, day), out[day]
        for j in range(o.size):
            o[j] = ONE / (ONE + math.exp(-a[j]))


@kernel
def clip(out: Array, values: Array, lower: float, upper: float, lo: int, hi: int) -> None:
    """Bound from both sides."""
    for day in range(lo, hi):
        a, o = row(values, day), out[day]
        for j in range(o.size):
            raised = np.float32(lower) if a[j] < lower else a[j]
            o[j] = np.float32(upper) if raised > upper else raised


@kernel
def within(out: Array, values: Array, member: NDArray[np.bool_], lo: int, hi: int) -> None:
    """Copy the cells of the universe; the others are missing."""
    for day in range(lo, hi):
        a, m, o = row(values, day), member[day], out[day]
        for j in range(o.size):
            o[j] = a[j] if m[j] else NAN
