"""The offline researcher's explanations of data-mined formulas: the mechanism that each is an instance of."""

from __future__ import annotations

from ...factors import FactorError, parse
from .likeness import is_instance
from .mechanisms import Mechanism, load_mechanisms
from .prompt_context import Context, Json, ShownFormula
from .steering import read_steering


def explain_candidates(context: Context) -> Json:
    """Return a mechanism and its refuter for each candidate that measures a known one; others are left out."""
    matches = [(formula, _find_match(context, formula)) for formula in _list_candidates(context)]
    return {"mechanisms": [_make_statement(context, formula, match) for formula, match in matches if match]}


def _list_candidates(context: Context) -> list[ShownFormula]:
    rows = context.body.get("candidates")
    return [ShownFormula.parse(row) for row in (rows if isinstance(rows, list) else []) if isinstance(row, dict)]


def _find_match(context: Context, formula: ShownFormula) -> Mechanism | None:
    """Return the first mechanism that a formula is an instance of, with the sign that it showed; None without one."""
    fields, groups = context.fields, context.groups
    try:
        expression = parse(formula.text, fields=fields, groups=groups)
    except FactorError:
        return None
    steering, direction = read_steering(context), 1 if formula.rank_ic > 0 else -1
    for mechanism in load_mechanisms():
        stated = not mechanism.survey and steering.allows(mechanism) and mechanism.usable((*fields, *groups))
        if stated and is_instance(expression, mechanism, direction, fields, groups):
            return mechanism
    return None


def _make_statement(context: Context, formula: ShownFormula, mechanism: Mechanism) -> Json:
    horizon = context.horizon_days
    return {
        "id": formula.id,
        "mechanism": mechanism.id,
        "statement": f"{mechanism.statement} Documented by {mechanism.source}.",
        "who_is_on_the_other_side": mechanism.other_side,
        "why_it_persists": mechanism.persists,
        "direction": 1 if formula.rank_ic > 0 else -1,
        "horizon_days": min(max(mechanism.horizon, -(-horizon // 5)), 5 * horizon),
        "fields": [name for name in mechanism.fields if name in context.fields],
        "refuted_by": f"beside {mechanism.refuter} it has the opposite sign, or a |t| below 2, on search days",
        "refuter": mechanism.refuter,
    }
