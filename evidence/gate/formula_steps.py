"""The steps of the gate that need no values: parse, causal, complexity and alignment.

They read the formula, its hypothesis and the metrics of the search window. Complexity is bounded, and its price is
subtracted from |t| on search.
"""

from __future__ import annotations

from ...factors import Expression
from ..settings import ComplexitySettings, EvidenceSettings
from .alignment import find_direction_mismatch, find_word_mismatches, list_unread_fields
from .verdict import Case, Reason

SCREENED_MESSAGE = "no value changed when later days were cut off, or replaced, at a few cuts of search"

UNPRICED_NODES = 5
PYTHON_SIZE_FACTOR = 4
"""How much larger code may be than a formula: it writes out what an operator names. It is priced like a formula."""


def check_formula(case: Case, settings: EvidenceSettings) -> list[Reason]:
    """Return the reasons of the first steps: parse, causal, complexity."""
    code = bool(case.expression.code)
    return [
        Reason("parse", True, "is code that can be read" if code else "parses, and its units fit"),
        # The step passes without a test of its own. Only scored factors come here, and the evaluator refuses any that
        # reads a back-adjusted level; a set is a sum of ranks of such factors. No formula that parses can read a later
        # day. Code was screened for look-ahead, and is swept day by day before its trial.
        Reason(
            "causal",
            True,
            SCREENED_MESSAGE if code else f"reads the last {case.expression.warmup + 1} days and no later one",
        ),
        _check_complexity(case, settings),
    ]


def _check_complexity(case: Case, settings: EvidenceSettings) -> Reason:
    breaches = [text for part in case.parts for text in find_breaches(part.expression, settings.complexity)]
    numbers = {"nodes": case.expression.size, "depth": case.expression.depth}
    return Reason("complexity", not breaches, "; ".join(breaches) or "within its bounds", numbers)


NOT_JUDGED = "not judged: no hypothesis"
JUDGED = "judged"
"""Number of the step: the formulas that were compared with a hypothesis. Runs of earlier versions lack it."""


def check_alignment(case: Case, settings: EvidenceSettings, *, half_suffices: bool = False) -> Reason:
    """Return whether each formula agrees with its hypothesis, in words and in direction.

    What came without a mechanism passes, and is said not to be judged. `half_suffices` is the rule of earlier versions
    (`find_word_mismatches`).
    """
    mismatches = [
        text
        for part in case.parts
        for text in (
            *find_word_mismatches(part.expression, part.claim, settings, half_suffices=half_suffices),
            *find_direction_mismatch(part.rank_ic, part.claim),
        )
    ]
    agreement = "its fields, horizon and direction are those of the hypothesis"
    if half_suffices:
        return Reason("alignment", not mismatches, "; ".join(mismatches) or agreement)
    judged = sum(not part.claim.data_mined for part in case.parts)
    message = "; ".join(mismatches) or _describe_agreement(case, judged, agreement)
    return Reason("alignment", not mismatches, message, {JUDGED: judged})


def _describe_agreement(case: Case, judged: int, agreement: str) -> str:
    """Return what was compared and agrees, what was not judged, and the named fields that a formula leaves out."""
    if not judged:
        return NOT_JUDGED
    if case.members:
        left = len(case.parts) - judged
        return agreement + (f"; {NOT_JUDGED} for {left} of {len(case.parts)} members" if left else "")
    unread = list_unread_fields(case.expression, case.claim)
    return agreement + (f"; it leaves out {', '.join(unread)} of the hypothesis" if unread else "")


def find_breaches(expression: Expression, bounds: ComplexitySettings) -> list[str]:
    """Return a sentence for each bound that a formula, or the code of a factor, exceeds."""
    factor = PYTHON_SIZE_FACTOR if expression.code else 1
    measured = {
        "nodes": (expression.size, factor * bounds.max_size),
        "levels": (expression.depth, factor * bounds.max_depth),
        "numbers": (expression.constants, factor * bounds.max_constants),
        "raw fields": (len(expression.fields), bounds.max_fields),
    }
    return [f"{actual} {what}, at most {most}" for what, (actual, most) in measured.items() if actual > most]


def compute_complexity_price(expression: Expression, bounds: ComplexitySettings) -> float:
    """Return the price of a formula's size in units of |t| on search: 0 up to five nodes, then linear."""
    return bounds.price_per_node * max(expression.size - UNPRICED_NODES, 0)
