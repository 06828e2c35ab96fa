"""The steps of the gate that need no values: parse, causal, complexity and alignment.

They read the formula, its hypothesis and the figures of the search window. Complexity is bounded, and its price is taken from
|t| on search.
"""

from __future__ import annotations

from ...factors import Expression
from ..settings import ComplexitySettings, EvidenceSettings
from .alignment import find_direction_mismatch, find_word_mismatches
from .verdict import Case, Reason

SCREENED_MESSAGE = "no value changed when later days were cut off, or replaced, at a few cuts of search"

UNPRICED_NODES = 5
PYTHON_SIZE_FACTOR = 4
"""How much larger code may be than a formula: it spells out what an operator says in one word. It is priced like a formula."""


def check_formula(case: Case, settings: EvidenceSettings) -> list[Reason]:
    """Return what the first steps say: parse, causal, complexity."""
    code = bool(case.expression.code)
    return [
        Reason("parse", True, "is code that can be read" if code else "parses, and its units fit"),
        # Only what the evaluator scored comes here, and it scores nothing that reads a back-adjusted level; a set is
        # a sum of ranks of such factors. Nothing that parses can read a later day; code was screened for it, and is
        # swept before it is looked at.
        Reason(
            "causal",
            True,
            SCREENED_MESSAGE if code else f"reads the last {case.expression.warmup + 1} days and no later one",
        ),
        _complexity(case, settings),
    ]


def _complexity(case: Case, settings: EvidenceSettings) -> Reason:
    found = [text for part in case.parts for text in find_breaches(part.expression, settings.complexity)]
    numbers = {"nodes": case.expression.size, "depth": case.expression.depth}
    return Reason("complexity", not found, "; ".join(found) or "within its bounds", numbers)


def check_alignment(case: Case, settings: EvidenceSettings) -> Reason:
    """Return whether each formula says what its hypothesis says, in words and in direction."""
    found = [text for part in case.parts for text in _disagreements(part, settings)]
    agreed = "its fields, horizon and direction are those of the hypothesis"
    return Reason("alignment", not found, "; ".join(found) or agreed)


def _disagreements(part: Case, settings: EvidenceSettings) -> list[str]:
    words = find_word_mismatches(part.expression, part.claim, settings)
    return words + find_direction_mismatch(part.rank_ic, part.claim)


def find_breaches(expression: Expression, bounds: ComplexitySettings) -> list[str]:
    """Return a sentence for each bound that a formula, or the code of a factor, exceeds."""
    wide = PYTHON_SIZE_FACTOR if expression.code else 1
    measured = {
        "nodes": (expression.size, wide * bounds.max_size),
        "levels": (expression.depth, wide * bounds.max_depth),
        "numbers": (expression.constants, wide * bounds.max_constants),
        "raw fields": (len(expression.fields), bounds.max_fields),
    }
    return [f"{actual} {what}, at most {most}" for what, (actual, most) in measured.items() if actual > most]


def compute_complexity_price(expression: Expression, bounds: ComplexitySettings) -> float:
    """Return what a formula's size costs, in units of |t| on search: nothing up to five nodes, then linear."""
    return bounds.price_per_node * max(expression.size - UNPRICED_NODES, 0)
