"""An agent of one's own whose formulas have slips, as those of models do; so a campaign asks for repairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from alphaloom.agents import View

__all__ = ["propose"]

FORMULAS = (
    ("rank(ts_mean({field}, {days})", ("{field}",)),
    ("rank(ts_mean({field} {days}))", ("{field}",)),
    ("ranks(ts_std({field}, {days}))", ("{field}",)),
    ("rank(ts_mean({field}, {days}))) * -1", ("{field}",)),
    ("close + volume / ts_mean(volume, {days})", ("close", "volume")),
    ("rank(ts_corr({field}, volume))", ("{field}", "volume")),
    ("rank(ts_mean(closes, {days}))", ("close",)),
    ("rank(delay({field}, -{days}))", ("{field}",)),
)
"""Formulas with a slip, and the fields that their hypothesis names."""
FIELDS, DAYS = ("close", "high", "low", "returns"), (3, 5, 8, 12, 20, 40)


async def propose(view: View) -> dict[str, Any]:
    """Return hypotheses, each with two formulas that are refused."""
    rng = np.random.default_rng(view.seed)
    return {"hypotheses": [_build(rng) for _ in range(view.count)]}


def _build(rng: np.random.Generator) -> dict[str, Any]:
    field, days = str(rng.choice(FIELDS)), int(rng.choice(DAYS))
    drawn = [FORMULAS[place] for place in rng.permutation(len(FORMULAS))[:2]]
    fields = sorted({name.format(field=field) for _, names in drawn for name in names})
    return {
        "mechanism": f"{field}_over_{days}_days",
        "statement": f"Stocks whose {field} was unusual for {days} days draw attention that fades within a week.",
        "who_is_on_the_other_side": "Traders who follow the attention.",
        "why_it_persists": "Attention is short each time.",
        "direction": int(rng.choice((1, -1))),
        "horizon_days": 5,
        "fields": fields,
        "regime": "any",
        "refuted_by": "no formula of it reaches a t of 3",
        "candidates": [{"text": text.format(field=field, days=days)} for text, _ in drawn],
    }
