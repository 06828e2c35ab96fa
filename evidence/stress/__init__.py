"""The algorithmic sandbox: where a factor breaks, before it is trusted."""

from .outcome import StressOutcome, StressResult
from .scenario import SCENARIO_GROUPS
from .stress import STRESS_SEED, Evaluate, run_stress_tests

__all__ = [
    "SCENARIO_GROUPS",
    "STRESS_SEED",
    "Evaluate",
    "StressOutcome",
    "StressResult",
    "run_stress_tests",
]
