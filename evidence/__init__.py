"""Is it real? Windows, scores, originality, significance, and the acceptance gate."""

from __future__ import annotations

from .alignment import Claim
from .closing import Closing, close
from .combination import write_combination
from .dossier import Dossier
from .errors import EvidenceError
from .evaluator import Budget, Evaluator, Proposal
from .originality import nearest
from .recall import recall_facts
from .score import Scorer
from .settings import EvidenceSettings
from .sheet import tidy
from .windows import dataset_name, fix_windows

__all__ = [
    "Budget",
    "Claim",
    "Closing",
    "Dossier",
    "Evaluator",
    "EvidenceError",
    "EvidenceSettings",
    "Proposal",
    "Scorer",
    "close",
    "dataset_name",
    "fix_windows",
    "nearest",
    "recall_facts",
    "tidy",
    "write_combination",
]
