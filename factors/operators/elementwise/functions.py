"""Declare functions of one value, and powers."""

from __future__ import annotations

import math

import numpy as np

from ...kernels.cells import FLOAT32_ONE, FLOAT32_ZERO, NAN, Array, finite, row
from ...kernels.kernel_cache import kernel
from ...language.operator import ABSOLUTE, ODD, Argument, Prose, cell
from ..reference import Values

LOG_2 = math.log(2.0)
HALF_ROOT_BITS = np.int32(0x3F3504F3)
"""The bits of sqrt(1/2): above them a number's exponent counts as the next one."""
MIN_NORMAL_FLOAT32, SUBNORMAL_LIFT, LOG_OF_LIFT = np.float32(2.0**-126), np.float32(2.0**24), 24.0 * LOG_2
"""Subnormal numbers are scaled up first."""


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
            step = FLOAT32_ONE if a[j] > FLOAT32_ZERO else (-FLOAT32_ONE if a[j] < FLOAT32_ZERO else FLOAT32_ZERO)
            o[j] = step if a[j] == a[j] else NAN


@kernel
def _take_logarithm(size: float) -> float:
    """Take the logarithm of a number in [sqrt(1/2), sqrt(2)) by its series in (x - 1) / (x + 1), to 12 digits."""
    share = (size - 1.0) / (size + 1.0)
    q = share * share
    tail = 1.0 / 9.0 + q * (1.0 / 11.0 + q * (1.0 / 13.0 + q * (1.0 / 15.0)))
    return 2.0 * share * (1.0 + q * (1.0 / 3.0 + q * (1.0 / 5.0 + q * (1.0 / 7.0 + q * tail))))


@kernel
def log(out: Array, values: Array, lo: int, hi: int) -> None:
    """Take the natural logarithm; of zero and below it is missing.

    The exponent is read from the bits: unlike a library call, that lets the compiler vectorise the loop.
    """
    line = np.empty(out.shape[1], np.float32)
    bits = line.view(np.int32)
    for day in range(lo, hi):
        a, o = row(values, day), out[day]
        for j in range(o.size):
            line[j] = a[j] * SUBNORMAL_LIFT if a[j] < MIN_NORMAL_FLOAT32 else a[j]
        for j in range(o.size):
            whole = (bits[j] - HALF_ROOT_BITS) >> 23
            low = LOG_OF_LIFT if a[j] < MIN_NORMAL_FLOAT32 else 0.0
            bits[j] -= whole << 23
            answer = np.float64(whole) * LOG_2 + _take_logarithm(np.float64(line[j])) - low
            o[j] = np.float32(answer) if a[j] > FLOAT32_ZERO else NAN


@kernel
def sqrt(out: Array, values: Array, lo: int, hi: int) -> None:
    """Take the square root; of a negative number it is missing."""
    for day in range(lo, hi):
        a, o = row(values, day), out[day]
        for j in range(o.size):
            o[j] = math.sqrt(a[j])


@kernel
def exp(out: Array, values: Array, lo: int, hi: int) -> None:
    """Raise e to the value; NaN where the result is too large."""
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
            o[j] = FLOAT32_ONE / (FLOAT32_ONE + math.exp(-a[j]))


@kernel
def clip(out: Array, values: Array, lower: float, upper: float, lo: int, hi: int) -> None:
    """Bound from both sides."""
    for day in range(lo, hi):
        a, o = row(values, day), out[day]
        for j in range(o.size):
            raised = np.float32(lower) if a[j] < lower else a[j]
            o[j] = np.float32(upper) if raised > upper else raised


ABS = cell("abs", "x", "same", Prose("Absolute value.", "the absolute value of {x}", "abs(returns)"), size,
           scaling=ABSOLUTE, reference=np.abs)  # fmt: skip  # a table
SIGN = cell("sign", "x", "number", Prose("Sign: -1, 0 or 1.", "the sign of {x}", "sign(returns)"), sign,
            scaling=ODD, reference=np.sign)  # fmt: skip  # a table
NATURAL_LOG = cell("log", "x", "ratio", Prose("Natural logarithm.", "the logarithm of {x}", "log(volume)"), log,
           cost=2.0, nan="Zero and negative values give NaN.", reference=np.log)  # fmt: skip  # a table
SQRT = cell("sqrt", "x", "root", Prose("Square root.", "the square root of {x}", "sqrt(volume)"), sqrt,
            nan="Negative values give NaN.", reference=np.sqrt)  # fmt: skip  # a table
EXP = cell(
    "exp", "x", "pure", Prose("Exponential.", "the exponential of {x}", "exp(returns)"), exp, cost=5.0, reference=np.exp
)
CLIP = cell("clip", "x", "pure",
            Prose("x held between two bounds.", "{x} held between {low} and {high}", "clip(returns, -0.1, 0.1)"), clip,
            Argument("low", "number"), Argument("high", "number"),
            reference=lambda x, low, high: np.clip(x, low, high))  # fmt: skip  # a table
TANH = cell("tanh", "x", "pure",
            Prose("Hyperbolic tangent: squeezes x into (-1, 1).", "the hyperbolic tangent of {x}", "tanh(returns)"),
            tanh, cost=8.0, reference=np.tanh)  # fmt: skip  # a table
SIGMOID = cell("sigmoid", "x", "pure",
               Prose("1 / (1 + exp(-x)): squeezes x into (0, 1).", "the logistic function of {x}", "sigmoid(returns)"),
               sigmoid, cost=6.0, reference=lambda x: 1 / (1 + np.exp(-x)))  # fmt: skip  # a table


CURVE_SIGNED_LOG, CURVE_ARCTAN, CURVE_FLOOR, CURVE_CEIL = 0, 1, 2, 3


@kernel
def _apply_curve(value: float, what: int) -> float:
    """Apply one of the curves to a value."""
    if what == CURVE_SIGNED_LOG:
        return math.copysign(math.log1p(abs(value)), value)
    if what == CURVE_ARCTAN:
        return math.atan(value)
    rounded: float = np.floor(value) if what == CURVE_FLOOR else np.ceil(value)
    return rounded


@kernel
def bend(out: Array, values: Array, what: int, lo: int, hi: int) -> None:
    """Flatten or round."""
    for day in range(lo, hi):
        a, o = row(values, day), out[day]
        for j in range(o.size):
            o[j] = finite(_apply_curve(np.float64(a[j]), what)) if a[j] == a[j] else NAN


SLOG1P = cell(
    "slog1p", "x", "pure",
    Prose("sign(x) * log(1 + abs(x)): a logarithm that keeps the sign, and 0 at 0.", "the signed logarithm of {x}",
          "slog1p(zscore(volume))"),
    bend, cost=6.0, fixed=(CURVE_SIGNED_LOG,), reference=lambda x: np.sign(x) * np.log1p(np.abs(x)),
)  # fmt: skip  # a table
ARCTAN_OF = cell(
    "arctan", "x", "pure",
    Prose("Arc tangent: squeezes x into (-pi/2, pi/2).", "the arc tangent of {x}", "arctan(zscore(returns))"),
    bend, cost=6.0, fixed=(CURVE_ARCTAN,), reference=np.arctan,
)  # fmt: skip  # a table
FLOOR_OF = cell(
    "floor", "x", "pure",
    Prose("Largest whole number that is not above x.", "{x} rounded down", "floor(10 * rank(returns))"),
    bend, fixed=(CURVE_FLOOR,), reference=np.floor,
)  # fmt: skip  # a table
CEIL_OF = cell(
    "ceil", "x", "pure",
    Prose("Smallest whole number that is not below x.", "{x} rounded up", "ceil(10 * rank(returns))"),
    bend, fixed=(CURVE_CEIL,), reference=np.ceil,
)  # fmt: skip  # a table


@kernel
def _raise_to(base: float, exponent: float) -> float:
    """Raise to a power; common exponents avoid the general function, which is ten times slower."""
    if exponent == 2.0:
        return base * base
    if exponent == 0.5:
        return math.sqrt(base)
    general: float = base**exponent
    return general


@kernel
def power(out: Array, base: Array, exponent: Array, lo: int, hi: int) -> None:
    """Raise to a power; missing for a missing exponent, and for a negative base with a fractional one."""
    for day in range(lo, hi):
        a, b, o = row(base, day), row(exponent, day), out[day]
        for j in range(o.size):
            known = (a[j] == a[j]) & (b[j] == b[j])
            o[j] = finite(_raise_to(np.float64(a[j]), np.float64(b[j]))) if known else NAN


@kernel
def signed_power(out: Array, base: Array, exponent: Array, lo: int, hi: int) -> None:
    """Raise the size to a power and keep the sign; zero stays zero."""
    for day in range(lo, hi):
        a, b, o = row(base, day), row(exponent, day), out[day]
        for j in range(o.size):
            known = (a[j] == a[j]) & (b[j] == b[j])
            size = _raise_to(abs(np.float64(a[j])), np.float64(b[j]))
            signed = 0.0 if a[j] == FLOAT32_ZERO and b[j] == FLOAT32_ZERO else math.copysign(size, a[j])
            o[j] = finite(signed) if known else NAN


def _power_reference(x: Values, y: Values) -> Values:
    return np.where(np.isnan(x) | np.isnan(y), np.nan, np.power(x, y))


POWER = cell(
    "power", "x y", "power", Prose("x to the power y.", "{x} to the power {y}", "power(returns, 2)"), power, cost=15.0,
    infix="**", nan="A negative x with a fractional y is NaN, and so is 0 to a negative power.",
    reference=_power_reference,
)  # fmt: skip  # a table
SIGNED_POWER = cell(
    "signed_power", "x y", "power",
    Prose("sign(x) * abs(x) ** y: a power that keeps the sign.", "{x} to the power {y} with its sign kept",
          "signed_power(returns, 0.5)"),
    signed_power, cost=15.0, reference=lambda x, y: np.sign(x) * _power_reference(np.abs(x), y),
)  # fmt: skip  # a table
