"""Many tests on the same days: what that costs, and what other rules would say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .cross_validation import (
        FOLD_GROUPS as FOLD_GROUPS,
        choose_and_test as choose_and_test,
        estimate_pbo as estimate_pbo,
        split_days as split_days,
    )
    from .deflated_sharpe import count_clusters as count_clusters
    from .online_fdr import RuleDecision as RuleDecision, apply_rules as apply_rules, lond_level as lond_level
    from .superior_predictive_ability import run_superiority_test as run_superiority_test
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "cross_validation": "FOLD_GROUPS choose_and_test estimate_pbo split_days",
            "deflated_sharpe": "count_clusters",
            "online_fdr": "RuleDecision apply_rules lond_level",
            "superior_predictive_ability": "run_superiority_test",
        },
    )
