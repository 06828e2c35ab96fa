"""The one service through which factors are proposed, scored and submitted to the gate.

The public names are imported when first used: a command that is refused at once must not wait for statistics.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .budget import Budget
    from .checks.stress import stress_on_search
    from .closing.builder import ResultsBuilder
    from .closing.closing import Closing, close, write_closing
    from .closing.results import CampaignResult, find_campaign
    from .context import PanelContext
    from .recall import recall_facts
    from .service import Evaluator

PUBLIC_MODULES = {
    "PanelContext": "context",
    "Budget": "budget",
    "CampaignResult": "closing.results",
    "Closing": "closing.closing",
    "ResultsBuilder": "closing.builder",
    "Evaluator": "service",
    "close": "closing.closing",
    "find_campaign": "closing.results",
    "recall_facts": "recall",
    "stress_on_search": "checks.stress",
    "write_closing": "closing.closing",
}
"""Public names and their modules."""

__all__ = [
    "Budget",
    "CampaignResult",
    "Closing",
    "Evaluator",
    "PanelContext",
    "ResultsBuilder",
    "close",
    "find_campaign",
    "recall_facts",
    "stress_on_search",
    "write_closing",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in PUBLIC_MODULES:
        value = getattr(import_module(f".{PUBLIC_MODULES[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
