"""Declare the operators that look at one cell at a time: arithmetic, functions and logic."""

from __future__ import annotations

from typing import Unpack

from .signature import Argument, Operator, Prose, Traits, panels


def _function(name: str, takes: str, unit: str, prose: Prose, *numbers: Argument, **more: Unpack[Traits]) -> Operator:
    """Declare an elementwise operator."""
    return Operator(name, "elementwise", (*panels(takes), *numbers), *prose, unit, **more)


def _logic(name: str, takes: str, unit: str, prose: Prose, **more: Unpack[Traits]) -> Operator:
    """Declare an operator on truth values."""
    return Operator(name, "logic", panels(takes), *prose, unit, **more)


ELEMENTWISE: tuple[Operator, ...] = (
    _function("add", "x y", "common", Prose("Sum.", "{x} plus {y}", "high + low"), symmetric=True, infix="+"),
    _function("sub", "x y", "common", Prose("Difference.", "{x} minus {y}", "close - open"), infix="-"),
    _function("mul", "x y", "product", Prose("Product.", "{x} times {y}", "close * volume"),
              symmetric=True, infix="*"),
    _function("div", "x y", "quotient", Prose("Ratio.", "{x} divided by {y}", "close / open"),
              infix="/", nan="Division by zero is NaN, never infinite."),
    _function("neg", "x", "same", Prose("Negative.", "minus {x}", "-returns"), infix="-"),
    _function("abs", "x", "same", Prose("Absolute value.", "the absolute value of {x}", "abs(returns)"),
              scaling=("absolute",)),
    _function("sign", "x", "number", Prose("Sign: -1, 0 or 1.", "the sign of {x}", "sign(returns)"),
              scaling=("odd",)),
    _function("log", "x", "ratio", Prose("Natural logarithm.", "the logarithm of {x}", "log(volume)"),
              nan="Zero and negative values give NaN."),
    _function("sqrt", "x", "root", Prose("Square root.", "the square root of {x}", "sqrt(volume)"),
              nan="Negative values give NaN."),
    _function("exp", "x", "pure", Prose("Exponential.", "the exponential of {x}", "exp(returns)")),
    _function("power", "x y", "power", Prose("x to the power y.", "{x} to the power {y}", "power(returns, 2)"),
              infix="**", nan="A negative x with a fractional y is NaN, and so is 0 to a negative power."),
    _function("signed_power", "x y", "power",
              Prose("sign(x) * abs(x) ** y: a power that keeps the sign.",
                    "{x} to the power {y} with its sign kept", "signed_power(returns, 0.5)")),
    _function("max", "x y", "common",
              Prose("The larger of the two.", "the larger of {x} and {y}", "max(open, close)"),
              symmetric=True, mirror="min"),
    _function("min", "x y", "common",
              Prose("The smaller of the two.", "the smaller of {x} and {y}", "min(open, close)"),
              symmetric=True, mirror="max"),
    _function("clip", "x", "pure",
              Prose("x held between two bounds.", "{x} held between {low} and {high}", "clip(returns, -0.1, 0.1)"),
              Argument("low", "number"), Argument("high", "number")),
    _function("tanh", "x", "pure",
              Prose("Hyperbolic tangent: squeezes x into (-1, 1).", "the hyperbolic tangent of {x}", "tanh(returns)")),
    _function("sigmoid", "x", "pure",
              Prose("1 / (1 + exp(-x)): squeezes x into (0, 1).", "the logistic function of {x}", "sigmoid(returns)")),
)  # fmt: skip

LOGIC: tuple[Operator, ...] = (
    _logic("lt", "x y", "comparison", Prose("x is less than y.", "{x} is below {y}", "close < open"),
           infix="<", mirror="gt"),
    _logic("le", "x y", "comparison", Prose("x is at most y.", "{x} is at most {y}", "close <= open"),
           infix="<=", mirror="ge"),
    _logic("gt", "x y", "comparison", Prose("x is greater than y.", "{x} is above {y}", "close > open"),
           infix=">", mirror="lt"),
    _logic("ge", "x y", "comparison", Prose("x is at least y.", "{x} is at least {y}", "close >= open"),
           infix=">=", mirror="le"),
    _logic("eq", "x y", "comparison", Prose("x equals y.", "{x} equals {y}", "close == high"),
           infix="==", symmetric=True),
    _logic("ne", "x y", "comparison", Prose("x differs from y.", "{x} differs from {y}", "close != open"),
           infix="!=", symmetric=True),
    _logic("and", "x? y?", "logic",
           Prose("Both hold.", "{x} and {y}", "(close > open) & (volume > delay(volume, 1))"),
           infix="&", symmetric=True),
    _logic("or", "x? y?", "logic",
           Prose("At least one holds.", "{x} or {y}", "(close > open) | (volume > delay(volume, 1))"),
           infix="|", symmetric=True),
    _logic("not", "x?", "logic", Prose("It does not hold.", "not {x}", "~(close > open)"), infix="~"),
    _logic("where", "condition? x y", "choice",
           Prose("x where the condition holds, else y.", "{x} where {condition}, else {y}",
                 "where(close > open, volume, -volume)"),
           nan="Only a NaN condition or a NaN in the chosen branch gives NaN."),
)  # fmt: skip
