"""Which models may answer, and which one is asked first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .decision import Decider as Decider, RoutingDecision as RoutingDecision, RoutingQuestion as RoutingQuestion
    from .eligibility import bar_reason as bar_reason
    from .intents import CALL_INTENTS as CALL_INTENTS, ROLE_INTENTS as ROLE_INTENTS
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "decision": "Decider RoutingDecision RoutingQuestion",
            "eligibility": "bar_reason",
            "intents": "CALL_INTENTS ROLE_INTENTS",
        },
    )
