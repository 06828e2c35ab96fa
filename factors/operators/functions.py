"""Declare functions of one value."""

from __future__ import annotations

import math

import numpy as np

from ..declare import ABSOLUTE, ODD, cell
from ..kernels.cells import NAN, ONE, ZERO, Array, finite, row
from ..kernels.kernel_cache import kernel
from ..signature import Argument, Prose


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


ABS = cell("abs", "x", "same", Prose("Absolute value.", "the absolute value of {x}", "abs(returns)"), size,
           scaling=ABSOLUTE, reference=np.abs)  # fmt: skip
SIGN = cell("sign", "x", "number", Prose("Sign: -1, 0 or 1.", "the sign of {x}", "sign(returns)"), sign,
            scaling=ODD, reference=np.sign)  # fmt: skip
LOG = cell("log", "x", "ratio", Prose("Natural logarithm.", "the logarithm of {x}", "log(volume)"), log, cost=5.0,
           nan="Zero and negative values give NaN.", reference=np.log)  # fmt: skip
SQRT = cell("sqrt", "x", "root", Prose("Square root.", "the square root of {x}", "sqrt(volume)"), sqrt,
            nan="Negative values give NaN.", reference=np.sqrt)  # fmt: skip
EXP = cell("exp", "x", "pure", Prose("Exponential.", "the exponential of {x}", "exp(returns)"), exp, cost=5.0,
           reference=np.exp)  # fmt: skip
CLIP = cell("clip", "x", "pure",
            Prose("x held between two bounds.", "{x} held between {low} and {high}", "clip(returns, -0.1, 0.1)"), clip,
            Argument("low", "number"), Argument("high", "number"),
            reference=lambda x, low, high: np.clip(x, low, high))  # fmt: skip
TANH = cell("tanh", "x", "pure",
            Prose("Hyperbolic tangent: squeezes x into (-1, 1).", "the hyperbolic tangent of {x}", "tanh(returns)"),
            tanh, cost=8.0, reference=np.tanh)  # fmt: skip
SIGMOID = cell("sigmoid", "x", "pure",
               Prose("1 / (1 + exp(-x)): squeezes x into (0, 1).", "the logistic function of {x}", "sigmoid(returns)"),
               sigmoid, cost=6.0, reference=lambda x: 1 / (1 + np.exp(-x)))  # fmt: skip
