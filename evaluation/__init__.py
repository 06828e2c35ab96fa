"""The one service through which factors are proposed, scored and submitted to the gate.

The public names are imported when first used: a command that is refused at once must not wait for statistics.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .budget import Budget
    from .checks.stress import stress_on_search
    from .closing.builder import Dossier
    from .closing.closing import Closing, close, write_closing
    from .closing.results import CampaignResult, named
    from .context import Bench
    from .recall import recall_facts
    from .service import Evaluator

PLACES = {
    "Bench": "context",
    "Budget": "budget",
    "CampaignResult": "closing.results",
    "Closing": "closing.closing",
    "Dossier": "closing.builder",
    "Evaluator": "service",
    "close": "closing.closing",
    "named": "closing.results",
    "recall_facts": "recall",
    "stress_on_search": "checks.stress",
    "write_closing": "closing.closing",
}
"""Public names and their modules."""

__all__ = [
    "Bench",
    "Budget",
    "CampaignResult",
    "Closing",
    "Dossier",
    "Evaluator",
    "close",
    "named",
    "recall_facts",
    "stress_on_search",
    "write_closing",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in PLACES:
        value = getattr(import_module(f".{PLACES[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
