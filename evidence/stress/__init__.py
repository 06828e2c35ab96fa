"""The algorithmic sandbox: where a factor breaks, before it is trusted."""

from .outcome import StressOutcome, StressResult
from .scenario import SCENARIO_GROUPS
from .stress import STRESS_SEED, Evaluate, stress

__all__ = [
    "SCENARIO_GROUPS",
    "STRESS_SEED",
    "Evaluate",
    "StressOutcome",
    "StressResult",
    "stress",
]
