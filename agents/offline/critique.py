"""The offline critique: weaknesses from figures, and the changes that usually address them."""

from __future__ import annotations

from typing import Any

from .prompt_context import Context, Json

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
"""Characters above which a formula is asked to shrink: what grows under mutation is mostly ballast."""
HOPELESS_T = (0.0, 1.0, 1.5)
"""The |t| that the best formula of a hypothesis must have passed after the first, the second, any later step."""


def write_critique(context: Context) -> Json:
    """Return a critique of the best formulas of one hypothesis."""
    listed = context.body.get("factors")
    rows = [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
    if not rows:
        return {"weaknesses": [], "advice": [{"operator": "swap_field", "why": "nothing was measured"}], "keep": False}
    best = max(rows, key=lambda row: abs(float(row.get("t") or 0.0)))
    found = _named_weaknesses(best) + _figure_weaknesses(best, int(context.part("hypothesis").get("direction", 1)))
    advice: dict[str, str] = {}
    for weakness in found:
        for operator in CURES.get(weakness["code"], ()):
            advice.setdefault(operator, weakness["message"])
    if len(rows) > 1:
        advice.setdefault("combine", "two formulas of this hypothesis may be good for different reasons")
    listed = [{"operator": operator, "why": why} for operator, why in advice.items()][:MAX_ADVICE]
    strength = abs(float(best.get("t") or 0.0))
    return {"weaknesses": found, "advice": listed, "keep": strength >= HOPELESS_T[min(context.step, 2)]}


def _named_weaknesses(row: Json) -> list[Json]:
    """Return the weaknesses that a program named."""
    listed: list[Any] = row.get("weaknesses") or []
    pairs = [str(each).partition(": ")[::2] for each in listed][:10]
    return [{"code": code[:60], "message": message[:500]} for code, message in pairs if code]


def _figure_weaknesses(row: Json, direction: int) -> list[Json]:
    """Return the weaknesses that the figures show."""
    found = []
    t = float(row.get("t") or 0.0)
    if t * direction < 0:
        found.append({"code": "wrong_sign", "message": f"t is {t:.1f}, the hypothesis says {direction:+d}"})
    curve = {int(h): abs(float(v)) for h, v in (row.get("decay") or {}).items() if v is not None}
    if curve and len(curve) > 1:
        first, last = curve[min(curve)], curve[max(curve)]
        if last > first:
            found.append({"code": "slow", "message": "the order is stronger at the longest horizon"})
        elif last < first / 2:
            found.append({"code": "fast", "message": "the order is strongest at the shortest horizon"})
    if len(str(row.get("text", ""))) > LONG_FORMULA_CHARS:
        found.append({"code": "large", "message": "the formula is long"})
    return found
