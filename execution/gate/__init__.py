"""The order gate: the rules that need an order, on whole numbers, with open orders counted at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .hours import (
        ExchangeHours as ExchangeHours,
        MarketHours as MarketHours,
        TradingDay as TradingDay,
        WeekdayHours as WeekdayHours,
    )
    from .limits import OrderLimits as OrderLimits
    from .order_gate import OrderGate as OrderGate, RepeatsAllowed as RepeatsAllowed
    from .profile import RateLimit as RateLimit, VenueProfile as VenueProfile, read_profiles as read_profiles
    from .ruling import (
        NOT_FOR_REDUCTIONS as NOT_FOR_REDUCTIONS,
        ORDER_RULE_UNITS as ORDER_RULE_UNITS,
        ORDER_RULES as ORDER_RULES,
        OrderRuling as OrderRuling,
    )
    from .state import GateState as GateState
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "hours": "ExchangeHours MarketHours TradingDay WeekdayHours",
            "limits": "OrderLimits",
            "order_gate": "OrderGate RepeatsAllowed",
            "profile": "RateLimit VenueProfile read_profiles",
            "ruling": "NOT_FOR_REDUCTIONS ORDER_RULES ORDER_RULE_UNITS OrderRuling",
            "state": "GateState",
        },
    )
