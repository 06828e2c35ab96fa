"""Declare functions of one value that flatten what is large, or round it."""

from __future__ import annotations

import math

import numpy as np

from ...kernels.cells import NAN, Array, finite, row
from ...kernels.kernel_cache import kernel
from ...language.declare import cell
from ...language.signature import Prose

CURVE_SIGNED_LOG, CURVE_ARCTAN, CURVE_FLOOR, CURVE_CEIL = 0, 1, 2, 3


@kernel
def _bent(value: float, what: int) -> float:
    """Return what was asked for of one value."""
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
            o[j] = finite(_bent(np.float64(a[j]), what)) if a[j] == a[j] else NAN


SLOG1P = cell(
    "slog1p", "x", "pure",
    Prose("sign(x) * log(1 + abs(x)): a logarithm that keeps the sign, and 0 at 0.", "the signed logarithm of {x}",
          "slog1p(zscore(volume))"),
    bend, cost=6.0, fixed=(CURVE_SIGNED_LOG,), reference=lambda x: np.sign(x) * np.log1p(np.abs(x)),
)  # fmt: skip
ARCTAN_OF = cell(
    "arctan", "x", "pure",
    Prose("Arc tangent: squeezes x into (-pi/2, pi/2).", "the arc tangent of {x}", "arctan(zscore(returns))"),
    bend, cost=6.0, fixed=(CURVE_ARCTAN,), reference=np.arctan,
)  # fmt: skip
FLOOR_OF = cell(
    "floor", "x", "pure",
    Prose("Largest whole number that is not above x.", "{x} rounded down", "floor(10 * rank(returns))"),
    bend, fixed=(CURVE_FLOOR,), reference=np.floor,
)  # fmt: skip
CEIL_OF = cell(
    "ceil", "x", "pure",
    Prose("Smallest whole number that is not below x.", "{x} rounded up", "ceil(10 * rank(returns))"),
    bend, fixed=(CURVE_CEIL,), reference=np.ceil,
)  # fmt: skip
