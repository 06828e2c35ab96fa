"""May it be traded? A deterministic gate from signals, book and policy to decisions; nothing here asks a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .decision import Approved as Approved, Decision as Decision, decide as decide
    from .policy import Policy as Policy
    from .signal import (
        RiskError as RiskError,
        Signal as Signal,
        Sizing as Sizing,
        signals_from_scores as signals_from_scores,
    )
    from .state import BookState as BookState
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "decision": "Approved Decision decide",
            "policy": "Policy",
            "signal": "RiskError Signal Sizing signals_from_scores",
            "state": "BookState",
        },
    )
