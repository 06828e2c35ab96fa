"""Declare powers."""

from __future__ import annotations

import math

import numpy as np

from ...kernels.cells import FLOAT32_ZERO, NAN, Array, finite, row
from ...kernels.kernel_cache import kernel
from ...language.declare import cell
from ...language.obvious import Values
from ...language.signature import Prose


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
            signed = 0.0 if a[j] == FLOAT32_ZERO and b[j] == FLOAT32_ZERO else math.copysign(size, a[j])
            o[j] = finite(signed) if known else NAN


def _power(x: Values, y: Values) -> Values:
    return np.where(np.isnan(x) | np.isnan(y), np.nan, np.power(x, y))


POWER = cell(
    "power", "x y", "power", Prose("x to the power y.", "{x} to the power {y}", "power(returns, 2)"), power, cost=15.0,
    infix="**", nan="A negative x with a fractional y is NaN, and so is 0 to a negative power.", reference=_power,
)  # fmt: skip
SIGNED_POWER = cell(
    "signed_power", "x y", "power",
    Prose("sign(x) * abs(x) ** y: a power that keeps the sign.", "{x} to the power {y} with its sign kept",
          "signed_power(returns, 0.5)"),
    signed_power, cost=15.0, reference=lambda x, y: np.sign(x) * _power(np.abs(x), y),
)  # fmt: skip
