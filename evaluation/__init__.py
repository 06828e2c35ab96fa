"""The one service through which factors are proposed, scored and submitted to the gate.

The public names are imported when first used: a command that is refused at once must not wait for statistics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

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
    "Budget": "budget",
    "CampaignResult": "closing.results",
    "Closing": "closing.closing",
    "Evaluator": "service",
    "PanelContext": "context",
    "ResultsBuilder": "closing.builder",
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

__getattr__ = lazy_names(__name__, PUBLIC_MODULES)
