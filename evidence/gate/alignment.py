"""Compare a formula with its hypothesis by rule, without a model: mismatches block, doubts only warn.

A factor without a mechanism (`Claim.data_mined`) is not judged. Certain mismatches block: fields, horizon, and at the
gate the direction. A disagreement that a rule can only suspect
from words and figures is a doubt (`list_doubts`). The Eval agent sees doubts, so that it may repair a formula, and a
person sees them beside the evidence.
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
    "amount": {"volume", "close"},
    "cap": {"close"},
    "close_raw": {"close"},
    "open": {"close"},
    "high": {"close"},
    "low": {"close"},
}

"""Fields that a hypothesis names with another one. It must name `vwap` itself: where trading took place within the day
is a claim of its own."""
EARLIER_SOURCES = {**DERIVED_FROM, "vwap": {"close", "high", "low", "amount"}}
"""The same in runs of versions in which half of the fields sufficed."""

ALIGNMENT_CODE = "alignment"
CERTAIN_T = 2.0
"""Least |t| on search at which the sign counts as known."""
EVERYDAY_FIELDS = frozenset({"open", "high", "low", "close", "returns"})
"""Fields whose names are everyday words: a sentence with such a word need not mean the field."""
DAYS_PATTERN = re.compile(r"\b(\d{1,3})[ -](?:trading[ -])?days?\b", re.IGNORECASE)
MAX_WINDOW_RATIO = 2.0
"""A window matches a mentioned number of days within this factor."""
MAX_WARMUP_HORIZONS = 50
"""A formula that looks back further than this many horizons suggests another mechanism."""


def find_word_mismatches(
    expression: Expression, claim: Claim, settings: EvidenceSettings, *, half_suffices: bool = False
) -> list[str]:
    """Return the disagreements between a formula and its hypothesis that need no values; none without a mechanism.

    The hypothesis must name each raw field of the formula, or one that it is derived from; groupings need no name. The
    horizon of the hypothesis must lie within a factor of five of the scored horizon.

    Parameters
    ----------
    half_suffices
        Apply the rule of earlier versions: half of the fields, groupings included. Verdicts of theirs are replayed so.
    """
    if claim.data_mined:
        return []
    mismatches = []
    unnamed = _list_unnamed_fields(expression, claim, half_suffices=half_suffices)
    if 2 * len(unnamed) > len(expression.fields) if half_suffices else unnamed:
        why = "" if half_suffices else f"{', '.join(unnamed)} not named; "
        mismatches.append(
            f"{why}the formula reads {', '.join(sorted(expression.fields))}, but the hypothesis is about "
            f"{', '.join(claim.fields) or 'no field'}: name the fields in it, or write a formula of them"
        )
    if not settings.horizon_days / HORIZON_SPAN <= claim.horizon_days <= settings.horizon_days * HORIZON_SPAN:
        mismatches.append(
            f"the hypothesis works over {claim.horizon_days} days, factors are scored over {settings.horizon_days}: "
            f"allowed are {max(1, -(-settings.horizon_days // HORIZON_SPAN))} to {settings.horizon_days * HORIZON_SPAN}"
        )
    return mismatches


def _list_unnamed_fields(expression: Expression, claim: Claim, *, half_suffices: bool) -> list[str]:
    named = set(claim.fields)
    sources: Mapping[str, set[str]] = EARLIER_SOURCES if half_suffices else DERIVED_FROM
    names = expression.fields if half_suffices else expression.fields - _list_groupings(expression)
    return sorted(name for name in names if name not in named and not sources.get(name, set()) & named)


def _list_groupings(expression: Expression) -> frozenset[str]:
    return frozenset(node.name for _, node in walk(expression.root) if node.op == "group")


def list_unread_fields(expression: Expression, claim: Claim) -> list[str]:
    """Return the fields that the hypothesis names and the formula neither reads nor derives from; sorted."""
    covered = {*expression.fields, *(source for name in expression.fields for source in DERIVED_FROM.get(name, ()))}
    return sorted(name for name in claim.fields if name not in covered and not DERIVED_FROM.get(name, set()) & covered)


def find_direction_mismatch(rank_ic: float | None, claim: Claim) -> list[str]:
    """Return a sentence if the search window shows the opposite of the claimed direction, else an empty list.

    Without a mechanism no direction is claimed, so that none is contradicted.
    """
    if claim.data_mined:
        return []
    if rank_ic is None:
        return ["the factor has no RankIC on the search window, so that no direction can be read from it"]
    if rank_ic * claim.direction > 0:
        return []
    word = "higher" if claim.direction > 0 else "lower"
    return [f"the hypothesis says that a {word} factor means a higher return; the search window shows the opposite"]


def list_doubts(
    expression: Expression, claim: Claim, sheet: Mapping[str, Any], description: str = ""
) -> list[dict[str, Any]]:
    """Return suspected disagreements, each `{code, value, message}` as a weakness; none of them refuses anything.

    Where no mechanism is stated there are none.

    - direction: the search window shows the opposite sign, with a |t| of at least 2;
    - horizon: the sign at the measured horizon nearest to the claimed one differs from that at the scored horizon, or
      the formula looks back more than fifty times the claimed horizon;
    - fields: the statement names a field (other than open, high, low, close and returns, which are everyday words)
      that the formula does not read and none of its fields derives from;
    - windows: the description names a number of days that matches no window of the formula.

    Parameters
    ----------
    sheet
        Metrics of the search window; `t`, `rank_ic` and `decay` are read, and may be None or missing.
    description
        The author's description of the formula.
    """
    if claim.data_mined:
        return []
    doubts = [
        *_doubt_direction(claim, sheet),
        *_doubt_horizon(expression, claim, sheet),
        *_doubt_fields(expression, claim),
        *_doubt_windows(expression, claim, description),
    ]
    return [{"code": ALIGNMENT_CODE, "value": None, "message": message} for message in doubts]


def _doubt_direction(claim: Claim, sheet: Mapping[str, Any]) -> list[str]:
    t = sheet.get("t") or 0.0
    if abs(t) < CERTAIN_T or t * claim.direction > 0:
        return []
    word = "higher" if claim.direction > 0 else "lower"
    return [
        (
            f"direction: the hypothesis says that a {word} factor means a higher return; "
            f"search shows the opposite, t {t:.1f}"
        )
    ]


def _doubt_horizon(expression: Expression, claim: Claim, sheet: Mapping[str, Any]) -> list[str]:
    doubts = []
    curve = {int(days): value for days, value in (sheet.get("decay") or {}).items() if value is not None}
    if curve and sheet.get("rank_ic") and abs(sheet.get("t") or 0.0) >= CERTAIN_T:
        nearest = min(curve, key=lambda days: (abs(days - claim.horizon_days), days))
        if curve[nearest] * sheet["rank_ic"] < 0:
            doubts.append(
                f"horizon: over {nearest} days, near the {claim.horizon_days} that are claimed, the sign is turned"
            )
    if expression.warmup > MAX_WARMUP_HORIZONS * claim.horizon_days:
        doubts.append(
            f"horizon: the formula looks back on {expression.warmup} days, "
            f"the hypothesis works over {claim.horizon_days}"
        )
    return doubts


def _doubt_fields(expression: Expression, claim: Claim) -> list[str]:
    unread = [
        name
        for name in list_unread_fields(expression, claim)
        if name not in EVERYDAY_FIELDS and mentions(claim.statement, name)
    ]
    return [f"fields: the hypothesis speaks of {name}, the formula does not read it" for name in unread]


def _doubt_windows(expression: Expression, claim: Claim, description: str) -> list[str]:
    mentioned = sorted({int(days) for days in DAYS_PATTERN.findall(description)} - {0, claim.horizon_days})
    windows = sorted({node.window for _, node in walk(expression.root) if node.window})
    unmatched = [
        days
        for days in mentioned
        if not any(days <= MAX_WINDOW_RATIO * window and window <= MAX_WINDOW_RATIO * days for window in windows)
    ]
    if not unmatched or not windows:
        return []
    days_text, windows_text = (", ".join(map(str, numbers)) for numbers in (unmatched, windows))
    return [f"windows: the description speaks of {days_text} days, the formula's windows are {windows_text}"]
