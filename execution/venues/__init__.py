"""Venues of the package itself: the paper venue, and the simulated market in which it trades a schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .paper import PaperSession as PaperSession, PaperVenue as PaperVenue
    from .simulated import MarketTerms as MarketTerms, NameSession as NameSession, SimulatedPaper as SimulatedPaper
else:
    __all__, __getattr__ = lazy_names(
        __name__, {"paper": "PaperSession PaperVenue", "simulated": "MarketTerms NameSession SimulatedPaper"}
    )
