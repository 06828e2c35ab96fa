"""Prices as they were known that day: panels from files, and a synthetic market whose truth is stated.

What reads files (pyarrow) and what simulates (scipy) is imported when it is first used, so that a panel stays light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names
from .data_warning import DataWarning
from .errors import Finding, MarketError, PanelError
from .panel import Panel

if TYPE_CHECKING:
    from .load import PanelSource, load_panel, read_panel
    from .quality import find_data_warnings
    from .synthetic.market import Plant, PlantedAlpha, SyntheticConfig, SyntheticMarket, simulate
    from .synthetic.null_panel import Nulling, make_null_panel

LAZY_MARKET_NAMES = {
    "Nulling": "synthetic.null_panel",
    "Plant": "synthetic.market",
    "PlantedAlpha": "synthetic.market",
    "PanelSource": "load",
    "SyntheticConfig": "synthetic.market",
    "SyntheticMarket": "synthetic.market",
    "find_data_warnings": "quality",
    "load_panel": "load",
    "make_null_panel": "synthetic.null_panel",
    "read_panel": "load",
    "simulate": "synthetic.market",
}
"""Names that are imported when they are first used, and their modules."""

__all__ = [
    "DataWarning",
    "Finding",
    "MarketError",
    "Nulling",
    "Panel",
    "PanelError",
    "PanelSource",
    "Plant",
    "PlantedAlpha",
    "SyntheticConfig",
    "SyntheticMarket",
    "find_data_warnings",
    "load_panel",
    "make_null_panel",
    "read_panel",
    "simulate",
]

__getattr__ = lazy_names(__name__, LAZY_MARKET_NAMES)
