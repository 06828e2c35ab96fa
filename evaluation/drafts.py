"""Judge drafts before any is scored: which can be parsed, the forecast of each, which are worth an evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from ..evidence import SET_PREFIX, Claim
from ..factors import Expression, FactorError, Node, render
from ..search.surrogate import Leader, ScoredFormula, SurrogateModel
from .refusals import find_refusal
from .service import Evaluator

LEARN_BATCH_FORMULAS = 256
"""Formulas per batch of learning: it bounds memory after a resume, when all scored formulas are learnt."""
RANKED_PER_CHOSEN = 3
"""So many times more drafts are ranked than chosen, since some of the best may be refused."""


def pick_drafts(
    evaluator: Evaluator, texts: Sequence[str], claim: Claim, count: int, like: str = "", either: bool = False
) -> dict[str, Any]:
    """Return a forecast of each draft, and the places of the `count` drafts most worth scoring, best first.

    A draft that cannot be parsed, was scored before, is Python code, or would be refused is not chosen; its evaluation
    would give the reason. Nothing is recorded and no return is read. `like` is the id of a scored factor that drafts
    are to improve; see `SurrogateModel.choose`. With `either`, the opposite of the claimed direction counts as much,
    and `turned` has the places and the negated texts of drafts with an opposite forecast, so that they agree with the
    claim.
    """
    expressions = [_parse_draft(evaluator, text) for text in texts]
    places = [place for place, expression in enumerate(expressions) if expression is not None]
    formulas = [expression for expression in expressions if expression is not None]
    forecasts_read, order = _learn_scores(evaluator).choose(
        formulas, RANKED_PER_CHOSEN * count, 0 if either else claim.direction, like
    )
    forecasts: list[dict[str, Any] | None] = [None] * len(texts)
    for place, forecast in zip(places, forecasts_read, strict=True):
        forecasts[place] = forecast.record()
    fit = list(islice((at for at in order if not find_refusal(evaluator, formulas[at], claim)), count))
    against = [at for at in fit if either and forecasts_read[at].record()["rank_ic"] * claim.direction < 0]
    negated = {at: _negate_formula(formulas[at]) for at in against}
    turned = [{"place": places[at], "text": text} for at, text in negated.items()]
    if evaluator.remote:  # the chosen drafts are probably scored next
        evaluator.remote.ask([evaluator.read(negated[at]) if at in negated else formulas[at] for at in fit])
    return {"forecasts": forecasts, "chosen": [places[at] for at in fit], "turned": turned}


def find_leaders(evaluator: Evaluator, limit: int) -> list[Leader]:
    """Return the fewest scored formulas that explain the best results so far; see `SurrogateModel.leaders`."""
    return _learn_scores(evaluator).leaders(limit)


def find_unexplored(evaluator: Evaluator, limit: int) -> dict[str, Any]:
    """Return the unwritten formulas most worth a score, and whether the search is still exploring.

    See `SurrogateModel.unexplored` and `SurrogateModel.surveying`.
    """
    surrogate = _learn_scores(evaluator)
    return {
        "unexplored": [draft.record() for draft in surrogate.unexplored(limit)],
        "surveying": surrogate.surveying,
    }


def _parse_draft(evaluator: Evaluator, text: str) -> Expression | None:
    try:
        expression = evaluator.read(text)
        is_new = expression.id not in evaluator.scores
        is_allowed = not evaluator.mandate.strange(expression.fields, evaluator.panel.groups)
        return expression if is_new and is_allowed and evaluator.surrogate.may_see(expression) else None
    except FactorError:
        return None


def _negate_formula(expression: Expression) -> str:
    root = expression.root
    return render(root.args[0] if root.op == "neg" else Node("neg", (root,)))


def _learn_scores(evaluator: Evaluator) -> SurrogateModel:
    """Return the surrogate model after it has learnt all scores so far.

    Callers must use the returned model: `Evaluator.surrogate` is a cached property, which has no lock from Python 3.12
    on, so two first calls in two threads may each create one.
    """
    surrogate, lines = evaluator.surrogate, evaluator.scores.lines
    fresh = {}
    for name in sorted(name for name in tuple(lines) if name not in surrogate):
        line = lines[name]
        if line.rank_ic is not None and line.t is not None and not line.hypothesis.startswith(SET_PREFIX):
            fresh[name] = ScoredFormula(evaluator.read(evaluator.scores[name].text), line.rank_ic, line.t)
    names = list(fresh)
    for start in range(0, len(names), LEARN_BATCH_FORMULAS):
        surrogate.learn({name: fresh[name] for name in names[start : start + LEARN_BATCH_FORMULAS]})
    return surrogate
