"""Why a formula is refused before it is scored: the steps in their order, cheapest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..factors import Expression
from ..ledger.records import Stage
from .alignment import Claim, unlike_its_words
from .complexity import breaches
from .originality import nearest

if TYPE_CHECKING:
    from .evaluator import Evaluator

__all__ = ["refusal"]

NO_PYTHON = "this campaign takes no Python factors (agents.python is false): write a formula"


def refusal(evaluator: Evaluator, expression: Expression, claim: Claim) -> tuple[Stage, list[str]] | None:
    """Return the step that refuses a formula and its reasons, None where it may be scored."""
    if expression.code and not evaluator.python:
        return "python", [NO_PYTHON]
    found = evaluator.mandate.objections(expression, claim, evaluator.panel.groups)
    if found:
        return "mandate", found
    found = breaches(expression, evaluator.settings.complexity)
    if found:
        return "complexity", found
    level = evaluator.levels.objection(expression)
    if level:
        return "causal", [level]
    like = nearest(expression, evaluator.known())
    if like and like[0].ratio > evaluator.settings.max_similarity:
        return "originality", [f"nearly {like[0].known.name} ({like[0].known.where}): shares {like[0].shared}"]
    words = unlike_its_words(expression, claim, evaluator.settings)
    return ("alignment", words) if words else None
