"""The algorithmic sandbox: where a factor breaks, before it is trusted."""

from __future__ import annotations

from .outcome import Outcome, Stressed
from .scenario import GROUPS
from .searched import stress_on_search
from .stress import SEED, Evaluate, stress

__all__ = ["GROUPS", "SEED", "Evaluate", "Outcome", "Stressed", "stress", "stress_on_search"]
