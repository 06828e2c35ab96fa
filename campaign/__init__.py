"""The wiring of a campaign: its settings, its search, its close, and how far it has got.

The public names are imported when first used: a command that is refused at once must not wait for statistics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .campaign import CONTEXT_FILE, WORKSPACE, Campaign, Clock, Settings, Show
    from .progress import Progress, ProgressMeter

PUBLIC_MODULES = {
    "CONTEXT_FILE": "campaign",
    "WORKSPACE": "campaign",
    "Campaign": "campaign",
    "Clock": "campaign",
    "Progress": "progress",
    "ProgressMeter": "progress",
    "Settings": "campaign",
    "Show": "campaign",
}
"""Public names and their modules."""

__all__ = [
    "CONTEXT_FILE",
    "WORKSPACE",
    "Campaign",
    "Clock",
    "Progress",
    "ProgressMeter",
    "Settings",
    "Show",
]

__getattr__ = lazy_names(__name__, PUBLIC_MODULES)
