"""The algorithmic sandbox: where a factor breaks, before it is trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .outcome import (
        STRESS_RULE_TEXT as STRESS_RULE_TEXT,
        StressOutcome as StressOutcome,
        StressResult as StressResult,
    )
    from .scenario import SCENARIO_GROUPS as SCENARIO_GROUPS
    from .stress import (
        STRESS_SEED as STRESS_SEED,
        After as After,
        Evaluate as Evaluate,
        run_stress_tests as run_stress_tests,
    )
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "outcome": "STRESS_RULE_TEXT StressOutcome StressResult",
            "scenario": "SCENARIO_GROUPS",
            "stress": "After Evaluate STRESS_SEED run_stress_tests",
        },
    )
