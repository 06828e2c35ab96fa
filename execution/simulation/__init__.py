"""A small simulated market to measure algorithms with: curve, price, impact of our own orders, several venues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .day import (
        MarketRules as MarketRules,
        SimulatedDay as SimulatedDay,
        SimulatedVenue as SimulatedVenue,
        draw_day as draw_day,
    )
    from .market import (
        Router as Router,
        SimulatedMarket as SimulatedMarket,
        trade_plan as trade_plan,
    )
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "day": "MarketRules SimulatedDay SimulatedVenue draw_day",
            "market": "Router SimulatedMarket trade_plan",
        },
    )
