"""The steps of the gate that need no values: they read the formula, its hypothesis and what search showed."""

from __future__ import annotations

from ..settings import EvidenceSettings
from .alignment import find_direction_mismatch, find_word_mismatches
from .case import Case
from .complexity import breaches
from .verdict import Reason

SCREENED_MESSAGE = "no value changed when later days were cut off, or replaced, at a few cuts of search"


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
    found = [text for part in case.parts for text in breaches(part.expression, settings.complexity)]
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
