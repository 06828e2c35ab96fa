"""Why a formula is refused before it is scored: the steps in their order, cheapest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..factors import Expression
from ..ledger.records import Stage
from .alignment import Claim, unlike_its_words
from .complexity import breaches
from .originality import nearest

if TYPE_CHECKING:
    from .evaluator import Evaluator

__all__ = ["known_seed", "refusal", "resemblance"]

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
    found = [] if expression.text in evaluator.mandate.seeds else resemblance(evaluator, expression)
    if found:
        return "originality", found
    words = unlike_its_words(expression, claim, evaluator.settings)
    return ("alignment", words) if words else None


def resemblance(evaluator: Evaluator, expression: Expression) -> list[str]:
    """Return which known factor a formula nearly is, nothing where there is none."""
    like = nearest(expression, evaluator.known())
    if not like or like[0].ratio <= evaluator.settings.max_similarity:
        return []
    return [f"nearly {like[0].known.name} ({like[0].known.where}): shares {like[0].shared}"]


def known_seed(evaluator: Evaluator, expression: Expression) -> list[dict[str, Any]]:
    """Return the weakness of a person's own formula that is known already: it may have children, and is not sent itself."""
    found = resemblance(evaluator, expression) if expression.text in evaluator.mandate.seeds else []
    return [{"code": "known", "message": said, "value": None} for said in found]
