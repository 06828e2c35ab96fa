"""Is it real? Windows, scores, originality, significance, and the acceptance gate."""

from __future__ import annotations

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
