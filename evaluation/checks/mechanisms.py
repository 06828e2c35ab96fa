"""Mechanisms that are stated after scoring and before the test, each with a refuter that is tested on search days.

A refuter is a rival formula, another explanation of the same returns. The mechanism is refuted where the ranks of the
factor, without what the rival's ranks explain, have a RankIC of the wrong sign or with |t| below 2 on search days. What
is refuted stays data-mined. No selection day is read.
"""

from __future__ import annotations

from typing import Any

from ...evidence import MECHANISM_EVENT, Claim, EvidenceError
from ...evidence.gate import find_direction_mismatch, find_word_mismatches
from ...evidence.originality import MIN_ADDED_T, Addition, measure_beside
from ...factors import Expression, ParseError
from ...factors.python import is_python
from ...ledger import Evaluation
from ..service import Evaluator

STATED_AFTER_SCORING = "stated_after_scoring"
"""Key of a claim's record that holds the refuter and its test."""


def state_mechanism(evaluator: Evaluator, factor_id: str, stated: dict[str, Any], refuter: str) -> dict[str, Any]:
    """State the mechanism of a data-mined factor of this run, and test its refuter on search days.

    The first statement is recorded and stands: a repeated one returns the first answer, so that nobody looks for a
    rival that refutes nothing.

    Parameters
    ----------
    stated
        The hypothesis, as `Claim.from_record` reads it; the factor keeps the id of its own.
    refuter
        The rival formula.

    Returns
    -------
    dict
        `{id, stands, why, rank_ic, t}`: the figures are those of the factor beside the rival; None where not tested.

    Raises
    ------
    EvidenceError
        The run scored no such factor, it has a mechanism, or it was tested on selection days already.
    """
    with evaluator.turn:
        ledger, run = evaluator.ledger, evaluator.run
        if (earlier := ledger.events.get(run, MECHANISM_EVENT, factor_id)) is None:
            row, claim = _find_data_mined(evaluator, factor_id)
            body = _examine(evaluator, row, Claim.from_record({**stated, "id": claim.id}), refuter)
            ledger.events.record(run, MECHANISM_EVENT, factor_id, body)
        else:
            body = earlier.body
    return {"id": factor_id, **{name: body[name] for name in ("stands", "why", "rank_ic", "t")}}


def _find_data_mined(evaluator: Evaluator, factor_id: str) -> tuple[Evaluation, Claim]:
    """Return the score and the claim of a factor whose mechanism may be stated."""
    row, claim = evaluator.log.read_scored(factor_id)
    sets = {event.key: event.body for event in evaluator.ledger.events.of(evaluator.run, "set")}
    judged = {row.factor_id for row in evaluator.ledger.verdicts.of(evaluator.run)}
    tested = factor_id in judged or any(factor_id in sets.get(name, ()) for name in judged)
    if tested or not claim.data_mined:
        raise EvidenceError(
            f"The mechanism of {factor_id!r} can no longer be stated: "
            + ("it was submitted to the gate." if tested else "it has one."),
            field="id",
            got=factor_id,
            allowed="a data-mined factor that was not submitted yet",
            hint="State a mechanism before the factor is submitted, once.",
            code="mechanism",
        )
    return row, claim


def _examine(evaluator: Evaluator, row: Evaluation, claim: Claim, refuter: str) -> dict[str, Any]:
    """Return the record of a statement: whether it stands, why not, and the test of the refuter."""
    expression, figures = evaluator.read(row.text), Addition(float("nan"), float("nan"), float("nan"), (), 0)
    why = _find_objection(evaluator, expression, claim, row)
    rival, mistake = _read_rival(evaluator, refuter)
    why = why or mistake
    if rival is not None and not why:
        values, rival_values = evaluator.values(expression), evaluator.values(rival)
        figures = measure_beside(values, rival_values, evaluator.scorer, evaluator.windows.search)
        holds = figures.rank_ic * claim.direction > 0 and abs(figures.t) >= MIN_ADDED_T
        why = "" if holds else f"refuted: {_describe_residual(figures)} beside {refuter}"
    tested = {name: value for name, value in figures.record().items() if name in ("rank_ic", "t", "kept")}
    record = {**claim.record(), STATED_AFTER_SCORING: {"refuter": refuter, **tested}}
    return {"claim": record, "refuter": refuter, "stands": not why, "why": why, **tested}


def _find_objection(evaluator: Evaluator, expression: Expression, claim: Claim, row: Evaluation) -> str:
    """Return why a hypothesis cannot be that of a formula, before any test; empty if it can."""
    if claim.data_mined:
        return "a survey states no mechanism"
    objections = evaluator.mandate.objections(expression, claim, evaluator.panel.groups)
    objections += find_word_mismatches(expression, claim, evaluator.settings)
    objections += find_direction_mismatch(row.sheet["rank_ic"], claim)
    return "; ".join(objections)


def _read_rival(evaluator: Evaluator, refuter: str) -> tuple[Expression | None, str]:
    """Return the rival formula, or why it is none."""
    if is_python(refuter):
        return None, "the refuter must be a formula, not Python"
    try:
        return evaluator.read(refuter), ""
    except ParseError as error:
        return None, f"the refuter cannot be read: {error.message}"


def _describe_residual(figures: Addition) -> str:
    if figures.t != figures.t:  # NaN
        return "nothing is left"
    return f"RankIC {figures.rank_ic:+.4f} (t {figures.t:+.1f}) is left"
