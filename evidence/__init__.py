"""Is it real? Windows, scores, originality, significance, and the acceptance gate.

The public names are imported when first used: a command that is refused at once must not wait for statistics.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in PUBLIC_MODULES:
        value = getattr(import_module(f".{PUBLIC_MODULES[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
