"""What a formula, its description and its hypothesis seem to disagree about: doubts from words and figures that never block.

What is certain blocks (`alignment`): fields, horizon, and at the gate the direction. Here stands what a rule can suspect:
the Eval agent is told, so that a formula may be repaired, and a person reads it beside the evidence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...factors import Expression, walk
from ...factors.describe import mentions
from .alignment import DERIVED_FROM, Claim

__all__ = ["ALIGNMENT_CODE", "list_doubts"]

ALIGNMENT_CODE = "alignment"
CERTAIN_T = 2.0
"""The |t| on search from which a sign is taken for more than luck."""
EVERYDAY_FIELDS = frozenset({"open", "high", "low", "close", "returns"})
"""Fields whose names are everyday words: a sentence that holds one need not speak of the field."""
DAYS_PATTERN = re.compile(r"\b(\d{1,3})[ -](?:trading[ -])?days?\b", re.IGNORECASE)
MAX_WINDOW_RATIO = 2.0
"""A window is taken to be the one that is spoken of within this factor."""
MAX_WARMUP_HORIZONS = 50
"""Horizons that a formula may look back on before its mechanism seems to be another."""


def list_doubts(
    expression: Expression, claim: Claim, sheet: Mapping[str, Any], description: str = ""
) -> list[dict[str, Any]]:
    """Return suspected disagreements, each `{code, value, message}` as a weakness; none of them refuses anything.

    - direction: the search window shows the opposite sign, with a |t| of 2 at least;
    - horizon: at the measured horizon next to the claimed one the sign is not that of the horizon that is scored, or the
      formula looks back on more than fifty times the claimed horizon;
    - fields: the statement speaks of a field (other than open, high, low, close and returns, which are everyday words)
      that the formula neither reads nor is made of;
    - windows: the description speaks of a number of days that is in no window of the formula.

    Parameters
    ----------
    sheet
        Of the search window; `t`, `rank_ic` and `decay` are read, and may be None or missing.
    description
        What the author says of the formula.
    """
    found = [
        *_direction(claim, sheet), *_horizon(expression, claim, sheet), *_fields(expression, claim),
        *_windows(expression, claim, description),
    ]  # fmt: skip
    return [{"code": ALIGNMENT_CODE, "value": None, "message": message} for message in found]


def _direction(claim: Claim, sheet: Mapping[str, Any]) -> list[str]:
    t = sheet.get("t") or 0.0
    if abs(t) < CERTAIN_T or t * claim.direction > 0:
        return []
    said = "higher" if claim.direction > 0 else "lower"
    return [
        f"direction: the hypothesis says that a {said} factor means a higher return; search shows the opposite, t {t:.1f}"
    ]


def _horizon(expression: Expression, claim: Claim, sheet: Mapping[str, Any]) -> list[str]:
    found = []
    curve = {int(days): value for days, value in (sheet.get("decay") or {}).items() if value is not None}
    if curve and sheet.get("rank_ic") and abs(sheet.get("t") or 0.0) >= CERTAIN_T:
        nearest = min(curve, key=lambda days: (abs(days - claim.horizon_days), days))
        if curve[nearest] * sheet["rank_ic"] < 0:
            found.append(
                f"horizon: over {nearest} days, near the {claim.horizon_days} that are claimed, the sign is turned"
            )
    if expression.warmup > MAX_WARMUP_HORIZONS * claim.horizon_days:
        found.append(
            f"horizon: the formula looks back on {expression.warmup} days, the hypothesis works over {claim.horizon_days}"
        )
    return found


def _fields(expression: Expression, claim: Claim) -> list[str]:
    read = {*expression.fields, *(source for name in expression.fields for source in DERIVED_FROM.get(name, ()))}
    spoken = [name for name in claim.fields if name not in EVERYDAY_FIELDS and mentions(claim.statement, name)]
    missing = [name for name in spoken if name not in read and not DERIVED_FROM.get(name, set()) & read]
    return [f"fields: the hypothesis speaks of {name}, the formula does not read it" for name in missing]


def _windows(expression: Expression, claim: Claim, description: str) -> list[str]:
    spoken = sorted({int(days) for days in DAYS_PATTERN.findall(description)} - {0, claim.horizon_days})
    windows = sorted({node.window for _, node in walk(expression.root) if node.window})
    strange = [
        days
        for days in spoken
        if not any(days <= MAX_WINDOW_RATIO * each and each <= MAX_WINDOW_RATIO * days for each in windows)
    ]
    if not strange or not windows:
        return []
    said, real = (", ".join(map(str, each)) for each in (strange, windows))
    return [f"windows: the description speaks of {said} days, the formula's windows are {real}"]
