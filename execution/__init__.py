"""From approved target to order: schedules, the order gate, venues, and one switch that stops all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .errors import ExecutionError as ExecutionError
    from .halt import Halt as Halt, HaltSwitch as HaltSwitch, list_releases as list_releases
    from .orders import (
        FINAL_REPORTS as FINAL_REPORTS,
        PRICE_UNITS as PRICE_UNITS,
        US_PER_SECOND as US_PER_SECOND,
        ChildOrder as ChildOrder,
        ExecutionReport as ExecutionReport,
        ParentOrder as ParentOrder,
        Side as Side,
        Venue as Venue,
    )
    from .routing import (
        RouteSlice as RouteSlice,
        VenueQuote as VenueQuote,
        VenueRoute as VenueRoute,
        route_order as route_order,
    )
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "errors": "ExecutionError",
            "halt": "Halt HaltSwitch list_releases",
            "orders": "FINAL_REPORTS PRICE_UNITS US_PER_SECOND ChildOrder ExecutionReport ParentOrder Side Venue",
            "routing": "RouteSlice VenueQuote VenueRoute route_order",
        },
    )
