"""Commands that run, watch and review a campaign."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....lazy import lazy_names

if TYPE_CHECKING:
    from .reported import Campaign as Campaign
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "reported": "Campaign",
        },
    )
