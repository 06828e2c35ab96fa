"""Ask for missing values, and put something in their place."""

from __future__ import annotations

import numpy as np

from ...kernels.cells import FLOAT32_ONE, FLOAT32_ZERO, Array, row
from ...kernels.kernel_cache import kernel
from ...language.declare import cell, logic
from ...language.signature import Argument, Prose


@kernel
def is_missing(out: Array, values: Array, lo: int, hi: int) -> None:
    """Tell where there is no value."""
    for day in range(lo, hi):
        a, o = row(values, day), out[day]
        for j in range(o.size):
            o[j] = FLOAT32_ZERO if a[j] == a[j] else FLOAT32_ONE


IS_MISSING = logic(
    "is_missing", "x", "logic", Prose("1 where x is NaN, else 0.", "{x} is missing", "where(is_missing(cap), 0, 1)"),
    is_missing, nan="The answer itself is never NaN within the universe.", reference=np.isnan,
)  # fmt: skip
FILL = cell(
    "fill", "x", "same",
    Prose("x, and a number where it is missing. What has units can only be filled with 0.",
          "{x}, or {value} where it is missing", "fill(returns, 0)"),
    None, Argument("value", "number", low=-1e15, high=1e15), nan="A missing x gives the number.",
    definition="where(is_missing(x), value, x)",
)  # fmt: skip
COALESCE = cell(
    "coalesce", "x y", "common",
    Prose("x, and y where x is missing.", "{x}, or {y} where it is missing", "coalesce(vwap, close)"),
    nan="NaN only where both are.", definition="where(is_missing(x), y, x)",
)  # fmt: skip
