"""NautilusTrader as a venue: in an environment of its own, behind two processes and a pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .installation import check_nautilus as check_nautilus
    from .session import SessionPrices as SessionPrices
    from .venue import NautilusMode as NautilusMode, NautilusVenue as NautilusVenue
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "installation": "check_nautilus",
            "session": "SessionPrices",
            "venue": "NautilusMode NautilusVenue",
        },
    )
