"""What is said of drafts before any is scored: which can be read, what is expected of each, which are worth an evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from ..evidence import SET_PREFIX, Claim
from ..factors import Expression, FactorError, Node, render
from ..search.surrogate import Leader, ScoredFormula, SurrogateModel
from .refusals import find_refusal
from .service import Evaluator

__all__ = ["find_leaders", "find_unexplored", "pick_drafts"]

LEARN_BATCH_FORMULAS = 256
"""Formulas that are learnt together: after a resume all of them are to be, and memory stays small."""
RANKED_PER_CHOSEN = 3
"""Times as many drafts are ranked as are chosen: some of the best may be refused."""


def pick_drafts(
    evaluator: Evaluator, texts: Sequence[str], claim: Claim, count: int, like: str = "", either: bool = False
) -> dict[str, Any]:
    """Return a forecast of each draft, and the places of those that are most worth scoring, best first.

    A draft that cannot be read, was scored before, is Python code, or would be refused is not chosen; scoring it says
    why. Nothing is recorded and no return is looked at. `like` is the id of a scored factor that drafts are to improve;
    see `SurrogateModel.choose`. With `either`, what promises the opposite of the claimed direction counts as much, and `turned`
    holds the places of those and their texts when they are turned round, so that they agree with the claim.
    """
    read = [_formula(evaluator, text) for text in texts]
    places = [place for place, each in enumerate(read) if each is not None]
    formulas = [each for each in read if each is not None]
    told, order = _learn_scores(evaluator).choose(
        formulas, RANKED_PER_CHOSEN * count, 0 if either else claim.direction, like
    )
    forecasts: list[dict[str, Any] | None] = [None] * len(texts)
    for place, one in zip(places, told, strict=True):
        forecasts[place] = one.record()
    fit = list(islice((one for one in order if not find_refusal(evaluator, formulas[one], claim)), count))
    against = [one for one in fit if either and told[one].record()["rank_ic"] * claim.direction < 0]
    turned = [{"place": places[one], "text": _negate_formula(formulas[one])} for one in against]
    return {"forecasts": forecasts, "chosen": [places[one] for one in fit], "turned": turned}


def find_leaders(evaluator: Evaluator, limit: int) -> list[Leader]:
    """Return the scored formulas that between them say what was found on search; see `SurrogateModel.leaders`."""
    return _learn_scores(evaluator).leaders(limit)


def find_unexplored(evaluator: Evaluator, limit: int) -> dict[str, Any]:
    """Return formulas that nobody wrote yet and that are most worth a score, and whether the search still surveys.

    See `SurrogateModel.unexplored` and `SurrogateModel.surveying`.
    """
    foresight = _learn_scores(evaluator)
    return {
        "unexplored": [one.record() for one in foresight.unexplored(limit)],
        "surveying": foresight.surveying,
    }


def _formula(evaluator: Evaluator, text: str) -> Expression | None:
    try:
        expression = evaluator.read(text)
        new = expression.id not in evaluator.rows
        own = not evaluator.mandate.strange(expression.fields, evaluator.panel.groups)
        return expression if new and own and evaluator.foresight.may_see(expression) else None
    except FactorError:
        return None


def _negate_formula(expression: Expression) -> str:
    root = expression.root
    return render(root.args[0] if root.op == "neg" else Node("neg", (root,)))


def _learn_scores(evaluator: Evaluator) -> SurrogateModel:
    """Return forecasts that rest on all that was scored so far.

    Who asks goes on with what was taught here: two threads that are the first to ask may each make forecasts of their own,
    since a cached property has no lock from Python 3.12 on.
    """
    foresight, lines = evaluator.foresight, evaluator.rows.lines
    fresh = {}
    for name in sorted(name for name in tuple(lines) if name not in foresight):
        line = lines[name]
        if line.rank_ic is not None and line.t is not None and not line.hypothesis.startswith(SET_PREFIX):
            fresh[name] = ScoredFormula(evaluator.read(evaluator.rows[name].text), line.rank_ic, line.t)
    names = list(fresh)
    for start in range(0, len(names), LEARN_BATCH_FORMULAS):
        foresight.learn({name: fresh[name] for name in names[start : start + LEARN_BATCH_FORMULAS]})
    return foresight
