"""Prices as they were known that day: panels from files, and a synthetic market whose truth is stated."""

from __future__ import annotations

from .errors import Finding, MarketError, PanelError
from .load import PanelSource, load_panel
from .panel import Panel
from .synthetic import Plant, PlantedAlpha, SyntheticConfig, SyntheticMarket, simulate

__all__ = [
    "Finding",
    "MarketError",
    "Panel",
    "PanelError",
    "PanelSource",
    "Plant",
    "PlantedAlpha",
    "SyntheticConfig",
    "SyntheticMarket",
    "load_panel",
    "simulate",
]
