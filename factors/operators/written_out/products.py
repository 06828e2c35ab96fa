"""Declare short names for products and for both ends of a range, written out in the language itself."""

from __future__ import annotations

from ...language.declare import SQUARE, cell
from ...language.signature import Prose

SQUARE_OF = cell(
    "square", "x", "square", Prose("x times itself.", "the square of {x}", "square(returns)"), scaling=SQUARE,
    definition="x * x",
)  # fmt: skip
INVERSE = cell(
    "inverse", "x", "ratio", Prose("One over x.", "one over {x}", "inverse(close)"), scaling=("inverse",),
    nan="The inverse of 0 is NaN.", definition="1 / x",
)  # fmt: skip
BETWEEN = cell(
    "between", "x low high", "comparison",
    Prose("x is at least `low` and at most `high`.", "{x} is from {low} to {high}", "between(close, low, vwap)"),
    family="logic", definition="(x >= low) & (x <= high)",
)  # fmt: skip
