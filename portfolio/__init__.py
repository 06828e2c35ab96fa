"""Accepted factors combined and held: weights, trading rate, backtest and the sealed exam.

The public names are imported when first used: a command that is refused at once must not wait for statistics.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .blend import blend_values

PUBLIC_MODULES = {
    "blend_values": "blend",
}
"""Public names and their modules."""

__all__ = [
    "blend_values",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in PUBLIC_MODULES:
        value = getattr(import_module(f".{PUBLIC_MODULES[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
