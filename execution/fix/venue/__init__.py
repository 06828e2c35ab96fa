"""A simulated venue behind a FIX acceptor: an order book, and faults on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....lazy import lazy_names

if TYPE_CHECKING:
    from .acceptor import (
        VENUE_NAME as VENUE_NAME,
        AcceptorSettings as AcceptorSettings,
        VenueAcceptor as VenueAcceptor,
    )
    from .exchange import Exchange as Exchange, ExchangeSettings as ExchangeSettings
    from .faults import VenueFaults as VenueFaults
    from .prices import SessionOpens as SessionOpens, read_prices as read_prices
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "acceptor": "VENUE_NAME AcceptorSettings VenueAcceptor",
            "exchange": "Exchange ExchangeSettings",
            "faults": "VenueFaults",
            "prices": "SessionOpens read_prices",
        },
    )
