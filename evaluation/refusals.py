"""Refusals of a formula before it is scored: the steps in their order, cheapest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..evidence import Claim, PythonRefused
from ..evidence.gate import find_breaches, find_word_mismatches
from ..evidence.originality import find_nearest
from ..factors import Expression
from ..ledger import Stage

if TYPE_CHECKING:
    from .run_library import RunLibrary
    from .service import Evaluator


NO_PYTHON = "this campaign takes no Python factors (agents.python is false): write a formula"


def find_refusal(evaluator: Evaluator, expression: Expression, claim: Claim) -> tuple[Stage, list[str]] | None:
    """Return the step that refuses a factor and its reasons, None if it may be scored; no code runs."""
    if expression.code and not evaluator.python:
        return "python", [NO_PYTHON]
    objections = evaluator.mandate.objections(expression, claim, evaluator.panel.groups)
    if objections:
        return "mandate", objections
    objections = find_breaches(expression, evaluator.settings.complexity)
    if objections:
        return "complexity", objections
    level = "" if expression.code else evaluator.levels.objection(expression)
    if level:
        return "causal", [level]
    objections = [] if expression.text in evaluator.mandate.seeds else resemblance(evaluator.library, expression)
    if objections:
        return "originality", objections
    mismatches = find_word_mismatches(expression, claim, evaluator.settings)
    return ("alignment", mismatches) if mismatches else None


def refuse_by_running(evaluator: Evaluator, expression: Expression) -> None:
    """Refuse code that reads later days, or a level that contains them; a formula passes.

    Raises
    ------
    PythonRefused
        At the stage ``causal`` or ``python``.
    """
    evaluator.factors.search_engine.screen(expression)
    if expression.code and (level := evaluator.levels.objection(expression)):
        raise PythonRefused(level, stage="causal")


def resemblance(library: RunLibrary, expression: Expression) -> list[str]:
    """Return a sentence that names the known factor which a formula nearly copies; empty if there is none."""
    nearest = find_nearest(expression, library.catalogue())
    if not nearest or nearest[0].ratio <= library.settings.max_similarity:
        return []
    return [f"nearly {nearest[0].known.name} ({nearest[0].known.where}): shares {nearest[0].shared}"]


def known_seed(evaluator: Evaluator, expression: Expression) -> list[dict[str, Any]]:
    """Return the weakness "known" of a person's own formula that is not new: it may only be a parent."""
    sentences = resemblance(evaluator.library, expression) if expression.text in evaluator.mandate.seeds else []
    return [{"code": "known", "message": sentence, "value": None} for sentence in sentences]


def refusal_warnings(evaluator: Evaluator, expression: Expression) -> list[dict[str, str]]:
    """Return the warnings on a formula that is only scored, for which a campaign would refuse it."""
    level = evaluator.levels.objection(expression)
    warnings = [{"code": "adjusted_level", "message": level}] if level else []
    sentences = resemblance(evaluator.library, expression)
    return warnings + [{"code": "not_new", "message": sentence} for sentence in sentences]
