"""From approved target to order: schedules, the order gate, venues, and one switch that stops all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .agreement import (
        AGREEMENT_FILE as AGREEMENT_FILE,
        POLICY_KEY as POLICY_KEY,
        SIGNED_POLICY_FILE as SIGNED_POLICY_FILE,
        Agreement as Agreement,
        AgreementRules as AgreementRules,
        SignedPolicy as SignedPolicy,
        agree as agree,
        make_signer as make_signer,
        read_agreement as read_agreement,
        read_signed_policy as read_signed_policy,
        read_signers as read_signers,
        require_agreement as require_agreement,
        sign_policy as sign_policy,
    )
    from .breaker_watch import (
        CLEARED_EVENT as CLEARED_EVENT,
        BreakerWatch as BreakerWatch,
        act_on_trips as act_on_trips,
        clear_trips as clear_trips,
        describe_trip as describe_trip,
        list_tripped as list_tripped,
        record_trips as record_trips,
    )
    from .breakers import (
        BREAKERS as BREAKERS,
        BreakerClearing as BreakerClearing,
        BreakerLimits as BreakerLimits,
        Breakers as Breakers,
        BreakerTrip as BreakerTrip,
    )
    from .decision_inputs import DecisionInputs as DecisionInputs
    from .engine import (
        CheckingGate as CheckingGate,
        OrderEngine as OrderEngine,
        PresentTime as PresentTime,
        RecallingVenue as RecallingVenue,
        SimulatedTime as SimulatedTime,
        Timeline as Timeline,
    )
    from .errors import ExecutionError as ExecutionError
    from .gate import (
        ORDER_RULE_UNITS as ORDER_RULE_UNITS,
        ORDER_RULES as ORDER_RULES,
        GateState as GateState,
        MarketHours as MarketHours,
        OrderGate as OrderGate,
        OrderLimits as OrderLimits,
        OrderRuling as OrderRuling,
    )
    from .halt import (
        Halt as Halt,
        HaltSwitch as HaltSwitch,
        check_people as check_people,
        list_releases as list_releases,
    )
    from .order_rates import (
        NEAR_SHARE as NEAR_SHARE,
        AccountDay as AccountDay,
        OrderMessage as OrderMessage,
        RateCount as RateCount,
        count_rates as count_rates,
    )
    from .order_record import (
        ALL_ORDERS as ALL_ORDERS,
        OrderRecord as OrderRecord,
        OrderState as OrderState,
        SessionOrders as SessionOrders,
        list_planned as list_planned,
    )
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
    from .parents import (
        SHARE_PARTS as SHARE_PARTS,
        HeldShares as HeldShares,
        LeftOut as LeftOut,
        OrderTerms as OrderTerms,
        size_orders as size_orders,
    )
    from .policy import (
        EXECUTION_FILE as EXECUTION_FILE,
        ExecutionPolicy as ExecutionPolicy,
        FixSettings as FixSettings,
        ScheduleSettings as ScheduleSettings,
        read_execution_policy as read_execution_policy,
    )
    from .positions import PositionCount as PositionCount, PositionEvent as PositionEvent
    from .routing import (
        RouteSlice as RouteSlice,
        VenueQuote as VenueQuote,
        VenueRoute as VenueRoute,
        route_order as route_order,
    )
    from .venues import (
        MarketTerms as MarketTerms,
        NameSession as NameSession,
        PaperSession as PaperSession,
        PaperVenue as PaperVenue,
        SimulatedPaper as SimulatedPaper,
    )
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "agreement": (
                "AGREEMENT_FILE Agreement AgreementRules POLICY_KEY SIGNED_POLICY_FILE SignedPolicy agree make_signer "
                "read_agreement read_signed_policy read_signers require_agreement sign_policy"
            ),
            "breaker_watch": (
                "BreakerWatch CLEARED_EVENT act_on_trips clear_trips describe_trip list_tripped record_trips"
            ),
            "breakers": "BREAKERS BreakerClearing BreakerLimits BreakerTrip Breakers",
            "decision_inputs": "DecisionInputs",
            "engine": "CheckingGate OrderEngine PresentTime RecallingVenue SimulatedTime Timeline",
            "errors": "ExecutionError",
            "gate": "GateState MarketHours ORDER_RULES ORDER_RULE_UNITS OrderGate OrderLimits OrderRuling",
            "halt": "Halt HaltSwitch check_people list_releases",
            "order_rates": "NEAR_SHARE AccountDay OrderMessage RateCount count_rates",
            "order_record": "ALL_ORDERS OrderRecord OrderState SessionOrders list_planned",
            "orders": "FINAL_REPORTS PRICE_UNITS US_PER_SECOND ChildOrder ExecutionReport ParentOrder Side Venue",
            "parents": "SHARE_PARTS HeldShares LeftOut OrderTerms size_orders",
            "policy": "EXECUTION_FILE ExecutionPolicy FixSettings ScheduleSettings read_execution_policy",
            "positions": "PositionCount PositionEvent",
            "routing": "RouteSlice VenueQuote VenueRoute route_order",
            "venues": "MarketTerms NameSession PaperSession PaperVenue SimulatedPaper",
        },
    )
