"""The algorithmic sandbox: where a factor breaks, before it is trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .judgement import STRESS_RULE_TEXT as STRESS_RULE_TEXT
    from .stress import (
        STRESS_SEED as STRESS_SEED,
        After as After,
        Rehearsal as Rehearsal,
        run_stress_tests as run_stress_tests,
    )
    from .stretches import Stretch as Stretch
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "judgement": "STRESS_RULE_TEXT",
            "stress": "After Rehearsal STRESS_SEED run_stress_tests",
            "stretches": "Stretch",
        },
    )
