"""Does the formula say what the hypothesis says? Mismatches that block, and doubts that do not; no model is asked.

What is certain blocks: fields, horizon, and at the gate the direction. What a rule can only suspect from words and figures is
a doubt (`list_doubts`). The Eval agent is told, so that a formula may be repaired, and a person reads it beside the evidence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...factors import Expression, walk
from ...factors.describe import mentions
from ..proposal import Claim
from ..settings import EvidenceSettings

HORIZON_SPAN = 5
DERIVED_FROM = {
    "returns": {"close"},
    "vwap": {"close", "high", "low", "amount"},
    "amount": {"volume", "close"},
    "cap": {"close"},
    "close_raw": {"close"},
    "open": {"close"},
    "high": {"close"},
    "low": {"close"},
}

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


def find_word_mismatches(expression: Expression, claim: Claim, settings: EvidenceSettings) -> list[str]:
    """Return what a formula and its hypothesis disagree about before anything is computed.

    At least half of the formula's raw fields must be named by the hypothesis, or be made of one that is; and the
    hypothesis' horizon must lie within a factor of five of the horizon that is scored.
    """
    found = []
    named = set(claim.fields)
    strange = sorted(
        name for name in expression.fields if name not in named and not DERIVED_FROM.get(name, set()) & named
    )
    if 2 * len(strange) > len(expression.fields):
        found.append(
            f"the formula reads {', '.join(sorted(expression.fields))}, but the hypothesis is about "
            f"{', '.join(claim.fields) or 'no field'}: name the fields in it, or write a formula of them"
        )
    if not settings.horizon_days / HORIZON_SPAN <= claim.horizon_days <= settings.horizon_days * HORIZON_SPAN:
        found.append(
            f"the hypothesis works over {claim.horizon_days} days, factors are scored over {settings.horizon_days}: "
            f"allowed are {max(1, -(-settings.horizon_days // HORIZON_SPAN))} to {settings.horizon_days * HORIZON_SPAN}"
        )
    return found


def find_direction_mismatch(rank_ic: float | None, claim: Claim) -> list[str]:
    """Return a sentence if the search window shows the opposite of what the hypothesis claims, or nothing."""
    if rank_ic is None:
        return ["the factor has no RankIC on the search window, so that no direction can be read from it"]
    if rank_ic * claim.direction > 0:
        return []
    said = "higher" if claim.direction > 0 else "lower"
    return [f"the hypothesis says that a {said} factor means a higher return; the search window shows the opposite"]


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
