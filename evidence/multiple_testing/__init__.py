"""Many tests on the same days: what that costs, and what other rules would say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .clusters import cluster_count as cluster_count
    from .folds import FOLD_GROUPS as FOLD_GROUPS, choose_and_test as choose_and_test, split_days as split_days
    from .online_fdr import RuleDecision as RuleDecision, apply_rules as apply_rules
    from .overfitting import pbo as pbo
    from .superior import run_superiority_test as run_superiority_test
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "clusters": "cluster_count",
            "folds": "FOLD_GROUPS choose_and_test split_days",
            "online_fdr": "RuleDecision apply_rules",
            "overfitting": "pbo",
            "superior": "run_superiority_test",
        },
    )
