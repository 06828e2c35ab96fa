"""The rules that a run was judged by: what trading was charged, and the thresholds of the gate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .figures import DASH, any_value, count, number, p_value_text, percent

if TYPE_CHECKING:
    from ..evaluation.closing import AppliedSettings, CostRates

__all__ = ["describe_costs", "rule_rows"]

UNRECORDED_COSTS = "costs that are not recorded"


def describe_costs(costs: CostRates | None) -> str:
    """Return in words what a figure after costs has been charged."""
    if costs is None or costs.bps_per_side is None:
        return UNRECORDED_COSTS
    side, borrow = any_value(costs.bps_per_side), any_value(costs.borrow_bps_per_year)
    return f"{side} bp for each side of a trade and {borrow} bp a year for borrowing"


def rule_rows(settings: AppliedSettings | None) -> Sequence[tuple[str, str]]:
    """Return the costs, thresholds and budget of a run; an older run that did not record them has none."""
    if settings is None:
        return []
    rules, budget = settings.evidence, settings.budget
    rows = [
        ("Costs", describe_costs(rules.costs)),
        ("Significance level of all trials together", percent(rules.level, 0)),
        ("Watchlist p-value threshold", p_value_text(rules.watch_p)),
        ("Largest shared subtree with a known factor", percent(rules.max_similarity, 0)),
        ("Largest rank correlation with the library", number(rules.max_redundancy, 2)),
        ("Suspiciously high RankIC (alert)", number(rules.leak_rank_ic, 3)),
        ("Declared earlier trials", count(rules.prior_trials)),
    ]
    if bounds := rules.complexity:
        rows.append(("Largest formula", f"{count(bounds.max_size)} nodes, {count(bounds.max_depth)} deep"))
    rows += [("Evaluations allowed", count(budget.evaluations)), ("Trials allowed", count(budget.trials))]
    return [row for row in rows if row[1] != DASH]
