"""The algorithmic sandbox: where a factor breaks, before it is trusted."""

from .outcome import Outcome, Stressed
from .scenario import GROUPS
from .stress import SEED, Evaluate, stress

__all__ = [
    "GROUPS",
    "SEED",
    "Evaluate",
    "Outcome",
    "Stressed",
    "stress",
]
