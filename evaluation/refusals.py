"""Why a formula is refused before it is scored: the steps in their order, cheapest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..evidence import Claim, PythonRefused
from ..evidence.gate import find_breaches, find_word_mismatches
from ..evidence.originality import describe_twin, find_nearest
from ..evidence.scoring import round_significant
from ..factors import Expression
from ..ledger import Stage

if TYPE_CHECKING:
    from .service import Evaluator

__all__ = ["find_refusal", "known_seed", "known_values", "refusal_warnings", "refuse_by_running", "resemblance"]

NO_PYTHON = "this campaign takes no Python factors (agents.python is false): write a formula"


def find_refusal(evaluator: Evaluator, expression: Expression, claim: Claim) -> tuple[Stage, list[str]] | None:
    """Return the step that refuses a factor and its reasons, None where it may be scored; no code is run for it."""
    if expression.code and not evaluator.python:
        return "python", [NO_PYTHON]
    found = evaluator.mandate.objections(expression, claim, evaluator.panel.groups)
    if found:
        return "mandate", found
    found = find_breaches(expression, evaluator.settings.complexity)
    if found:
        return "complexity", found
    level = "" if expression.code else evaluator.levels.objection(expression)
    if level:
        return "causal", [level]
    found = [] if expression.text in evaluator.mandate.seeds else resemblance(evaluator, expression)
    if found:
        return "originality", found
    words = find_word_mismatches(expression, claim, evaluator.settings)
    return ("alignment", words) if words else None


def refuse_by_running(evaluator: Evaluator, expression: Expression) -> None:
    """Refuse code that sees later days, or reads a level that knows them; nothing is run of a formula.

    Raises
    ------
    PythonRefused
        At the stage ``causal`` or ``python``.
    """
    evaluator.searched.screen(expression)
    if expression.code and (level := evaluator.levels.objection(expression)):
        raise PythonRefused(level, stage="causal")


def resemblance(evaluator: Evaluator, expression: Expression) -> list[str]:
    """Return which known factor a formula nearly is, nothing where there is none."""
    like = find_nearest(expression, evaluator.known())
    if not like or like[0].ratio <= evaluator.settings.max_similarity:
        return []
    return [f"nearly {like[0].known.name} ({like[0].known.where}): shares {like[0].shared}"]


def known_seed(evaluator: Evaluator, expression: Expression) -> list[dict[str, Any]]:
    """Return the weakness of a person's own formula that is known already: it may have children, and is not sent itself."""
    found = resemblance(evaluator, expression) if expression.text in evaluator.mandate.seeds else []
    return [{"code": "known", "message": said, "value": None} for said in found]


def known_values(evaluator: Evaluator, values: NDArray[np.float32]) -> list[dict[str, Any]]:
    """Return the weakness of values `[T, N]` that rank the names as a published factor does, however they are written."""
    twin = evaluator.published_values.beyond(values, evaluator.settings.max_redundancy)
    if twin is None:
        return []
    return [{"code": "known", "message": describe_twin(twin), "value": round_significant(twin.rank_correlation)}]


def refusal_warnings(evaluator: Evaluator, expression: Expression) -> list[dict[str, str]]:
    """Return the warnings on a formula that is only scored: a campaign would refuse it for them."""
    level = evaluator.levels.objection(expression)
    found = [{"code": "adjusted_level", "message": level}] if level else []
    return found + [{"code": "not_new", "message": said} for said in resemblance(evaluator, expression)]
