"""Is it real? Windows, scores, originality, significance, and the acceptance gate.

The public names are imported when first used: a command that is refused at once must not wait for statistics.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .alignment import Claim
    from .bench import Bench
    from .blend import blended
    from .budget import Budget
    from .closing import Closing, close, write_closing
    from .dossier import Dossier
    from .errors import EvidenceError
    from .evaluator import Evaluator
    from .originality import nearest
    from .progress import Meter, Progress
    from .proposal import Proposal
    from .recall import recall_facts
    from .redundancy import rank_correlation
    from .result import CampaignResult, named
    from .settings import EvidenceSettings
    from .sheet import tidy
    from .stress import stress_on_search

PLACES = {
    "Bench": "bench",
    "Budget": "budget",
    "CampaignResult": "result",
    "Claim": "alignment",
    "Closing": "closing",
    "Dossier": "dossier",
    "Evaluator": "evaluator",
    "EvidenceError": "errors",
    "EvidenceSettings": "settings",
    "Meter": "progress",
    "Progress": "progress",
    "Proposal": "proposal",
    "blended": "blend",
    "close": "closing",
    "named": "result",
    "nearest": "originality",
    "rank_correlation": "redundancy",
    "recall_facts": "recall",
    "stress_on_search": "stress",
    "tidy": "sheet",
    "write_closing": "closing",
}
"""Public names and their modules."""

__all__ = [
    "Bench",
    "Budget",
    "CampaignResult",
    "Claim",
    "Closing",
    "Dossier",
    "Evaluator",
    "EvidenceError",
    "EvidenceSettings",
    "Meter",
    "Progress",
    "Proposal",
    "blended",
    "close",
    "named",
    "nearest",
    "rank_correlation",
    "recall_facts",
    "stress_on_search",
    "tidy",
    "write_closing",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in PLACES:
        value = getattr(import_module(f".{PLACES[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
