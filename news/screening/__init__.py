"""Text made harmless and judged before anybody reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .credibility import ItemKind as ItemKind
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "credibility": "ItemKind",
        },
    )
