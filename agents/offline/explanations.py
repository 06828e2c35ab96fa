"""The offline researcher's explanations of data-mined formulas: the mechanism whose skeleton is most like each."""

from __future__ import annotations

import re
from functools import cache

import numpy as np

from ...factors import Expression, FactorError, parse
from ..memory.diversity import measure_overlap
from .mechanisms import Mechanism, fill_skeleton, load_mechanisms
from .prompt_context import Context, Json, ShownFormula
from .steering import read_steering

MIN_OVERLAP = 0.6
"""Share of common structure from which a formula counts as a measure of a mechanism."""
DRAWS_PER_SKELETON = 4
"""Draws with which a skeleton is compared, over prices and measures of trading."""
WINDOW_ARGUMENT = re.compile(r", \d+(?=[,)])")
ONE_WINDOW = ", 20"
"""Windows in a formula's text, and the one that takes their place: a mechanism is no matter of so many days."""

Names = tuple[str, ...]


def explain_candidates(context: Context) -> Json:
    """Return a mechanism and its refuter for each candidate that is like a known one; the others are left out."""
    matches = [(formula, _find_match(context, formula)) for formula in _list_candidates(context)]
    return {"mechanisms": [_make_statement(context, formula, match) for formula, match in matches if match]}


def _list_candidates(context: Context) -> list[ShownFormula]:
    rows = context.body.get("candidates")
    return [ShownFormula.parse(row) for row in (rows if isinstance(rows, list) else []) if isinstance(row, dict)]


def _find_match(context: Context, formula: ShownFormula) -> Mechanism | None:
    """Return the mechanism whose skeleton shares most with a formula and whose direction agrees; None without one."""
    fields, groups = context.fields, context.groups
    try:
        expression = parse(formula.text, fields=fields, groups=groups)
        plain = equalise_windows(expression)
        parse(plain, fields=fields, groups=groups)
    except FactorError:
        return None
    sign = (1 if formula.rank_ic > 0 else -1) * read_sign(expression)
    steering = read_steering(context)
    overlaps = {
        mechanism: _measure_likeness(context, plain, mechanism, sign)
        for mechanism in load_mechanisms()
        if steering.allows(mechanism) and expression.fields <= {*mechanism.fields, *groups}
    }
    best = max(overlaps, key=lambda mechanism: overlaps[mechanism], default=None)  # of equals the first in the file
    return best if best is not None and overlaps[best] >= MIN_OVERLAP else None


def _measure_likeness(context: Context, text: str, mechanism: Mechanism, sign: int) -> float:
    """Return the largest overlap of a formula with a skeleton whose quantity earns `sign` by the mechanism; else 0.

    A survey states no mechanism, and none is usable without its fields.
    """
    fields, groups = context.fields, context.groups
    if mechanism.survey or not mechanism.usable((*fields, *groups)):
        return 0.0
    draws = [draw for draw, own in _draw_examples(mechanism, fields, groups) if mechanism.direction * own == sign]
    return max((measure_overlap(text, draw, fields, groups) for draw in draws), default=0.0)


def read_sign(expression: Expression) -> int:
    """Return the overall sign of a formula: -1 where it is the negative of a quantity."""
    return 1 if expression.canonical == expression.unsigned else -1


def equalise_windows(expression: Expression) -> str:
    """Return a formula's canonical text with one window everywhere, for a comparison of structure alone."""
    return WINDOW_ARGUMENT.sub(ONE_WINDOW, expression.canonical_text)


@cache
def _draw_examples(mechanism: Mechanism, fields: Names, groups: Names) -> tuple[tuple[str, int], ...]:
    """Return formulas of a mechanism, each with its overall sign; the same ones for every candidate."""
    names = [name for name in mechanism.fields if name in fields]
    texts = [
        fill_skeleton(skeleton, names, np.random.default_rng(seed))
        for skeleton in mechanism.skeletons
        for seed in range(DRAWS_PER_SKELETON)
    ]
    examples = []
    for text in dict.fromkeys(texts):
        try:
            expression = parse(text, fields=fields, groups=groups)
            plain = equalise_windows(expression)
            examples.append((plain, read_sign(parse(plain, fields=fields, groups=groups))))
        except FactorError:  # the market lacks a field of this skeleton
            continue
    return tuple(examples)


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
