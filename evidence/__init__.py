"""Is it real? Windows, scores, originality, significance, and the acceptance gate.

The public names are imported when first used: a command that is refused at once must not wait for statistics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .errors import EvidenceError
    from .gate.alignment import Claim
    from .originality.catalogue import nearest
    from .originality.redundancy import rank_correlation
    from .proposal import Proposal
    from .scoring.metrics import round_significant
    from .settings import EvidenceSettings

PUBLIC_MODULES = {
    "Claim": "gate.alignment",
    "EvidenceError": "errors",
    "EvidenceSettings": "settings",
    "Proposal": "proposal",
    "nearest": "originality.catalogue",
    "rank_correlation": "originality.redundancy",
    "round_significant": "scoring.metrics",
}
"""Public names and their modules."""

__all__ = [
    "Claim",
    "EvidenceError",
    "EvidenceSettings",
    "Proposal",
    "nearest",
    "rank_correlation",
    "round_significant",
]

__getattr__ = lazy_names(__name__, PUBLIC_MODULES)
