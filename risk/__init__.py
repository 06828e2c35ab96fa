"""May it be traded? A deterministic gate from signals, book and policy to decisions; nothing here asks a model."""

from __future__ import annotations

from .decision import Approved, Decision
from .errors import NotApproved, RiskError, SignalError, StateError
from .gate import decide
from .policy import Policy
from .signal import Signal
from .sizing import Sizing, signals_from_scores
from .state import BookState

__all__ = [
    "Approved",
    "BookState",
    "Decision",
    "NotApproved",
    "Policy",
    "RiskError",
    "Signal",
    "SignalError",
    "Sizing",
    "StateError",
    "decide",
    "signals_from_scores",
]
