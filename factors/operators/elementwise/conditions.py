"""Answer a condition with 1 for true and 0 for false, choose by it, and fill missing values.

The answer about a missing value is missing, except for `holds` and `is_missing`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...kernels.cells import FLOAT32_ONE, FLOAT32_ZERO, NAN, Array, row
from ...kernels.kernel_cache import kernel
from ...language.operator import MAX_TERMS, Argument, Prose, cell, logic


@kernel
def lt(out: Array, left: Array, right: Array, lo: int, hi: int) -> None:
    """Write 1 where left < right, else 0; NaN where a value is missing."""
    for day in range(lo, hi):
        a, b, o = row(left, day), row(right, day), out[day]
        for j in range(o.size):
            answer = FLOAT32_ONE if a[j] < b[j] else FLOAT32_ZERO
            o[j] = answer if (a[j] == a[j]) & (b[j] == b[j]) else NAN


@kernel
def le(out: Array, left: Array, right: Array, lo: int, hi: int) -> None:
    """Write 1 where left <= right, else 0; NaN where a value is missing."""
    for day in range(lo, hi):
        a, b, o = row(left, day), row(right, day), out[day]
        for j in range(o.size):
            answer = FLOAT32_ONE if a[j] <= b[j] else FLOAT32_ZERO
            o[j] = answer if (a[j] == a[j]) & (b[j] == b[j]) else NAN


@kernel
def eq(out: Array, left: Array, right: Array, lo: int, hi: int) -> None:
    """Write 1 where left equals right, else 0; NaN where a value is missing."""
    for day in range(lo, hi):
        a, b, o = row(left, day), row(right, day), out[day]
        for j in range(o.size):
            answer = FLOAT32_ONE if a[j] == b[j] else FLOAT32_ZERO
            o[j] = answer if (a[j] == a[j]) & (b[j] == b[j]) else NAN


@kernel
def ne(out: Array, left: Array, right: Array, lo: int, hi: int) -> None:
    """Write 1 where left and right differ, else 0; NaN where a value is missing."""
    for day in range(lo, hi):
        a, b, o = row(left, day), row(right, day), out[day]
        for j in range(o.size):
            answer = FLOAT32_ONE if a[j] != b[j] else FLOAT32_ZERO
            o[j] = answer if (a[j] == a[j]) & (b[j] == b[j]) else NAN


@kernel
def both(out: Array, left: Array, right: Array, lo: int, hi: int) -> None:
    """Write 1 where both are true, else 0; NaN where a value is missing."""
    for day in range(lo, hi):
        a, b, o = row(left, day), row(right, day), out[day]
        for j in range(o.size):
            answer = FLOAT32_ONE if (a[j] != FLOAT32_ZERO) & (b[j] != FLOAT32_ZERO) else FLOAT32_ZERO
            o[j] = answer if (a[j] == a[j]) & (b[j] == b[j]) else NAN


@kernel
def either(out: Array, left: Array, right: Array, lo: int, hi: int) -> None:
    """Write 1 where at least one is true, else 0; NaN where a value is missing."""
    for day in range(lo, hi):
        a, b, o = row(left, day), row(right, day), out[day]
        for j in range(o.size):
            answer = FLOAT32_ONE if (a[j] != FLOAT32_ZERO) | (b[j] != FLOAT32_ZERO) else FLOAT32_ZERO
            o[j] = answer if (a[j] == a[j]) & (b[j] == b[j]) else NAN


@kernel
def negate(out: Array, values: Array, lo: int, hi: int) -> None:
    """Turn true into false and false into true."""
    for day in range(lo, hi):
        a, o = row(values, day), out[day]
        for j in range(o.size):
            answer = FLOAT32_ONE if a[j] == FLOAT32_ZERO else FLOAT32_ZERO
            o[j] = answer if a[j] == a[j] else NAN


@kernel
def holds(out: Array, values: Array, lo: int, hi: int) -> None:
    """Write 1 where a value is true and not missing, else 0."""
    for day in range(lo, hi):
        a, o = row(values, day), out[day]
        for j in range(o.size):
            answer = FLOAT32_ONE if a[j] != FLOAT32_ZERO else FLOAT32_ZERO
            o[j] = answer if a[j] == a[j] else FLOAT32_ZERO


@kernel
def where(out: Array, condition: Array, yes: Array, no: Array, lo: int, hi: int) -> None:
    """Take the chosen branch; the other may be missing."""
    for day in range(lo, hi):
        c, a, b, o = row(condition, day), row(yes, day), row(no, day), out[day]
        for j in range(o.size):
            one, other = (
                a[j],
                b[j],
            )  # read both first: a choice between values is vectorised, a choice between reads is not
            chosen = one if c[j] != FLOAT32_ZERO else other
            o[j] = chosen if c[j] == c[j] else NAN


def _propagate_missing(answer: Callable[..., Any]) -> Callable[..., Any]:
    """Return a reference whose answer is missing where a value is missing."""
    return lambda *known: np.where(np.isnan(sum(known)), np.nan, answer(*known))


LT = logic("lt", "x y", "comparison", Prose("x is less than y.", "{x} is below {y}", "close < open"), lt,
           infix="<", mirror="gt", reference=_propagate_missing(np.less))  # fmt: skip  # a table
LE = logic("le", "x y", "comparison", Prose("x is at most y.", "{x} is at most {y}", "close <= open"), le,
           infix="<=", mirror="ge", reference=_propagate_missing(np.less_equal))  # fmt: skip  # a table
GT = logic("gt", "x y", "comparison", Prose("x is greater than y.", "{x} is above {y}", "close > open"), lt,
           swapped=True, infix=">", mirror="lt", reference=_propagate_missing(np.greater))  # fmt: skip  # a table
GE = logic("ge", "x y", "comparison", Prose("x is at least y.", "{x} is at least {y}", "close >= open"), le,
           swapped=True, infix=">=", mirror="le", reference=_propagate_missing(np.greater_equal),
)  # fmt: skip  # a table
EQ = logic("eq", "x y", "comparison", Prose("x equals y.", "{x} equals {y}", "close == high"), eq,
           infix="==", symmetric=True, reference=_propagate_missing(np.equal))  # fmt: skip  # a table
NE = logic("ne", "x y", "comparison", Prose("x differs from y.", "{x} differs from {y}", "close != open"), ne,
           infix="!=", symmetric=True, reference=_propagate_missing(np.not_equal))  # fmt: skip  # a table
AND = logic(
    "and", "x? y?", "logic", Prose("Both hold.", "{x} and {y}", "(close > open) & (volume > delay(volume, 1))"), both,
    infix="&", symmetric=True, many=MAX_TERMS, reference=_propagate_missing(np.logical_and),
)  # fmt: skip  # a table
OR = logic(
    "or", "x? y?", "logic",
    Prose("At least one holds.", "{x} or {y}", "(close > open) | (volume > delay(volume, 1))"), either,
    infix="|", symmetric=True, many=MAX_TERMS, reference=_propagate_missing(np.logical_or),
)  # fmt: skip  # a table
NOT = logic("not", "x?", "logic", Prose("It does not hold.", "not {x}", "~(close > open)"), negate,
            infix="~", reference=_propagate_missing(np.logical_not))  # fmt: skip  # a table
HOLDS = logic(
    "holds",
    "condition?",
    "logic",
    Prose("The condition holds; a missing answer counts as no.", "{condition} for certain", "holds(close > open)"),
    holds,
    nan="A NaN condition gives 0: so do engines whose comparisons with NaN are false.",
    reference=lambda c: np.nan_to_num(c) != 0,
)
WHERE = logic(
    "where", "condition? x y", "choice",
    Prose("x where the condition holds, else y.", "{x} where {condition}, else {y}",
          "where(close > open, volume, -volume)"), where,
    nan="Only a NaN condition or a NaN in the chosen branch gives NaN.",
    reference=lambda c, x, y: np.where(np.isnan(c), np.nan, np.where(c != 0, x, y)),
)  # fmt: skip  # a table


@kernel
def is_missing(out: Array, values: Array, lo: int, hi: int) -> None:
    """Write 1 where the value is missing, else 0."""
    for day in range(lo, hi):
        a, o = row(values, day), out[day]
        for j in range(o.size):
            o[j] = FLOAT32_ZERO if a[j] == a[j] else FLOAT32_ONE


IS_MISSING = logic(
    "is_missing", "x", "logic", Prose("1 where x is NaN, else 0.", "{x} is missing", "where(is_missing(cap), 0, 1)"),
    is_missing, nan="The answer itself is never NaN within the universe.", reference=np.isnan,
)  # fmt: skip  # a table
FILL = cell(
    "fill", "x", "same",
    Prose("x, and a number where it is missing. What has units can only be filled with 0.",
          "{x}, or {value} where it is missing", "fill(returns, 0)"),
    None, Argument("value", "number", low=-1e15, high=1e15), nan="A missing x gives the number.",
    definition="where(is_missing(x), value, x)",
)  # fmt: skip  # a table
COALESCE = cell(
    "coalesce", "x y", "common",
    Prose("x, and y where x is missing.", "{x}, or {y} where it is missing", "coalesce(vwap, close)"),
    nan="NaN only where both are.", definition="where(is_missing(x), y, x)",
)  # fmt: skip  # a table


BETWEEN = cell(
    "between", "x low high", "comparison",
    Prose("x is at least `low` and at most `high`.", "{x} is from {low} to {high}", "between(close, low, vwap)"),
    family="logic", definition="(x >= low) & (x <= high)",
)  # fmt: skip  # a table
