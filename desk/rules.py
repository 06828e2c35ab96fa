"""The rules that a run was judged by: what trading was charged, and the thresholds of the gate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .figures import DASH, any_value, count, number, p_value_text, percent

__all__ = ["costs", "rule_rows"]

UNRECORDED_COSTS = "costs that are not recorded"
THRESHOLDS: Sequence[tuple[str, str, Callable[[object], str]]] = (
    ("level", "Significance level of all trials together", lambda value: percent(value, 0)),
    ("watch_p", "Watchlist p-value threshold", p_value_text),
    ("max_similarity", "Largest shared subtree with a known factor", lambda value: percent(value, 0)),
    ("max_redundancy", "Largest rank correlation with the library", lambda value: number(value, 2)),
    ("leak_rank_ic", "Suspiciously high RankIC (alert)", lambda value: number(value, 3)),
    ("prior_trials", "Declared earlier trials", count),
)
BUDGET = (("evaluations", "Evaluations allowed"), ("trials", "Trials allowed"))


def costs(charged: Mapping[str, Any] | None) -> str:
    """Return in words what a figure after costs has been charged; `charged` is the campaign's `evidence.costs`."""
    if not charged or charged.get("bps_per_side") is None:
        return UNRECORDED_COSTS
    side, borrow = any_value(charged["bps_per_side"]), any_value(charged.get("borrow_bps_per_year"))
    return f"{side} bp for each side of a trade and {borrow} bp a year for borrowing"


def rule_rows(results: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """Return the costs, thresholds and budget of a run; an older run that did not record them has none."""
    settings = results.get("settings") or {}
    evidence, budget = settings.get("evidence") or {}, settings.get("budget") or {}
    if not settings:
        return []
    told = [("Costs", costs(evidence.get("costs")))]
    told += [(word, show(evidence[key])) for key, word, show in THRESHOLDS if key in evidence]
    if bounds := evidence.get("complexity"):
        told.append(
            ("Largest formula", f"{count(bounds.get('max_size'))} nodes, {count(bounds.get('max_depth'))} deep")
        )
    return [fact for fact in [*told, *((word, count(budget.get(key))) for key, word in BUDGET)] if fact[1] != DASH]
