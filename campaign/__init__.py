"""The wiring of a campaign: its settings, its search, its close, and how far it has got.

The public names are imported when first used: a command that is refused at once must not wait for statistics.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .campaign import CONTEXT_FILE, WORKSPACE, Campaign, Clock, Settings, Show
    from .progress import Progress, ProgressMeter

PUBLIC_MODULES = {
    "CONTEXT_FILE": "campaign",
    "Campaign": "campaign",
    "Clock": "campaign",
    "ProgressMeter": "progress",
    "Progress": "progress",
    "Settings": "campaign",
    "Show": "campaign",
    "WORKSPACE": "campaign",
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


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in PUBLIC_MODULES:
        value = getattr(import_module(f".{PUBLIC_MODULES[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
