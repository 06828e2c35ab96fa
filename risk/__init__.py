"""May it be traded? A deterministic gate from signals, book and policy to decisions; nothing here asks a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .decision import Approved as Approved, Decision as Decision
    from .errors import (
        NotApproved as NotApproved,
        RiskError as RiskError,
        SignalError as SignalError,
        StateError as StateError,
    )
    from .gate import decide as decide
    from .policy import Policy as Policy
    from .signal import Signal as Signal
    from .sizing import Sizing as Sizing, signals_from_scores as signals_from_scores
    from .state import BookState as BookState
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "decision": "Approved Decision",
            "errors": "NotApproved RiskError SignalError StateError",
            "gate": "decide",
            "policy": "Policy",
            "signal": "Signal",
            "sizing": "Sizing signals_from_scores",
            "state": "BookState",
        },
    )
