"""Prices as they were known that day: panels from files, and a synthetic market whose truth is stated.

What reads files (pyarrow) and what simulates (scipy) is imported when it is first used, so that a panel stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .data_warning import Suspicion
from .errors import Finding, MarketError, PanelError
from .panel import Panel

if TYPE_CHECKING:
    from .load import PanelSource, load_panel, read_panel
    from .quality import examine
    from .synthetic.market import Plant, PlantedAlpha, SyntheticConfig, SyntheticMarket, simulate
    from .synthetic.null_panel import Nulling, nulled

HEAVY = {
    "Nulling": "synthetic.null_panel",
    "Plant": "synthetic.market",
    "PlantedAlpha": "synthetic.market",
    "PanelSource": "load",
    "SyntheticConfig": "synthetic.market",
    "SyntheticMarket": "synthetic.market",
    "examine": "quality",
    "load_panel": "load",
    "nulled": "synthetic.null_panel",
    "read_panel": "load",
    "simulate": "synthetic.market",
}
"""Names that are imported when they are first used, and their modules."""

__all__ = [
    "Finding",
    "MarketError",
    "Nulling",
    "Panel",
    "PanelError",
    "PanelSource",
    "Plant",
    "PlantedAlpha",
    "Suspicion",
    "SyntheticConfig",
    "SyntheticMarket",
    "examine",
    "load_panel",
    "nulled",
    "read_panel",
    "simulate",
]


def __getattr__(name: str) -> Any:
    """Import what reads or simulates when it is first used."""
    if name in HEAVY:
        value = getattr(import_module(f".{HEAVY[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
