"""How much freedom a formula took: bounded, and priced."""

from __future__ import annotations

from ...factors import Expression
from ..settings import ComplexitySettings

UNPRICED_NODES = 5
PYTHON_SIZE_FACTOR = 4
"""How much larger code may be than a formula: it spells out what an operator says in one word. It is priced like a formula."""


def breaches(expression: Expression, bounds: ComplexitySettings) -> list[str]:
    """Return a sentence for each bound that a formula, or the code of a factor, exceeds."""
    wide = PYTHON_SIZE_FACTOR if expression.code else 1
    measured = {
        "nodes": (expression.size, wide * bounds.max_size),
        "levels": (expression.depth, wide * bounds.max_depth),
        "numbers": (expression.constants, wide * bounds.max_constants),
        "raw fields": (len(expression.fields), bounds.max_fields),
    }
    return [f"{actual} {what}, at most {most}" for what, (actual, most) in measured.items() if actual > most]


def complexity_price(expression: Expression, bounds: ComplexitySettings) -> float:
    """Return what a formula's size costs, in units of |t| on search: nothing up to five nodes, then linear."""
    return bounds.price_per_node * max(expression.size - UNPRICED_NODES, 0)
