"""The offline critique: weaknesses from figures, and the changes that usually cure them."""

from __future__ import annotations

from .prompt_context import Context, Json, ShownFormula

CURES = {
    "turnover": ("smooth", "lengthen"),
    "costs": ("smooth", "lengthen"),
    "decay": ("shorten", "retime"),
    "one_year": ("condition", "combine"),
    "exposure": ("neutralise", "swap_field"),
    "redundant": ("swap_field", "neutralise"),
    "coverage": ("shorten",),
    "weak": ("swap_field", "combine"),
    "wrong_sign": ("invert",),
    "slow": ("lengthen", "smooth", "retime"),
    "fast": ("shorten", "retime"),
    "large": ("simplify",),
}
MAX_ADVICE = 4
LONG_FORMULA_CHARS = 70
"""Characters above which a critique asks for a shorter formula: growth under mutation is mostly ballast."""
HOPELESS_T = (0.0, 1.0, 1.5)
"""The |t| that the best formula of a hypothesis must have reached after the first, the second, and any later step."""


def write_critique(context: Context) -> Json:
    """Return a critique of the best formulas of one hypothesis."""
    listed = context.body.get("factors")
    formulas = [
        ShownFormula.parse(row) for row in (listed if isinstance(listed, list) else ()) if isinstance(row, dict)
    ]
    if not formulas:
        return {"weaknesses": [], "advice": [{"operator": "swap_field", "why": "nothing was measured"}], "keep": False}
    best = max(formulas, key=lambda formula: abs(formula.t_stat))
    weaknesses = _read_weaknesses(best) + _judge_figures(best, context.hypothesis.direction)
    advice: dict[str, str] = {}
    for weakness in weaknesses:
        for operator in CURES.get(weakness["code"], ()):
            advice.setdefault(operator, weakness["message"])
    if len(formulas) > 1:
        advice.setdefault("combine", "two formulas of this hypothesis may be good for different reasons")
    changes = [{"operator": operator, "why": why} for operator, why in advice.items()][:MAX_ADVICE]
    keep = abs(best.t_stat) >= HOPELESS_T[min(context.request.step, 2)]
    return {"weaknesses": weaknesses, "advice": changes, "keep": keep}


def _read_weaknesses(formula: ShownFormula) -> list[Json]:
    """Return the weaknesses in the formula's row, as codes and messages."""
    pairs = [text.partition(": ")[::2] for text in formula.weaknesses[:10]]
    return [{"code": code[:60], "message": message[:500]} for code, message in pairs if code]


def _judge_figures(formula: ShownFormula, direction: int) -> list[Json]:
    """Return the weaknesses that follow from the figures."""
    weaknesses = []
    if formula.t_stat * direction < 0:
        weaknesses.append(
            {"code": "wrong_sign", "message": f"t is {formula.t_stat:.1f}, the hypothesis says {direction:+d}"}
        )
    curve = {days: abs(rank_ic) for days, rank_ic in formula.rank_ic_by_horizon.items()}
    if curve and len(curve) > 1:
        first, last = curve[min(curve)], curve[max(curve)]
        if last > first:
            weaknesses.append({"code": "slow", "message": "the order is stronger at the longest horizon"})
        elif last < first / 2:
            weaknesses.append({"code": "fast", "message": "the order is strongest at the shortest horizon"})
    if len(formula.text) > LONG_FORMULA_CHARS:
        weaknesses.append({"code": "large", "message": "the formula is long"})
    return weaknesses
