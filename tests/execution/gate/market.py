"""A small market for the order gate: a Monday at 10:00 in New York, one price for each asset, wide limits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import count
from typing import Any

from alphaloom.execution import ChildOrder, ExecutionReport, OrderRuling, Side
from alphaloom.execution.gate import GateState, OrderGate, OrderLimits, RateLimit, VenueProfile
from alphaloom.execution.orders import OrderKind, ReportKind
from alphaloom.risk import Policy

SECOND = 1_000_000
MINUTE = 60 * SECOND
OPEN = int(datetime(2026, 1, 5, 14, 30, tzinfo=UTC).timestamp()) * SECOND
CLOSE = int(datetime(2026, 1, 5, 21, tzinfo=UTC).timestamp()) * SECOND
NOW = OPEN + 30 * MINUTE
PRICE = 1_000_000
"""100.0000."""
EQUITY = 10**12
WIDE: dict[str, Any] = {
    "collar_bp": 5_000, "market_edge_bp": 0, "session_collar_bp": 9_000, "order_value_cap_bp": None,
    "order_shares_cap": None, "session_volume_cap_bp": None, "credit_cap_bp": 10**9, "repeats_cap": 10**6,
    "duplicate_ms": 0, "layers_cap": None, "stuffing_cap": None, "close_volume_cap_bp": None,
    "cascade_cap": None, "wash_cap": None, "max_quote_age_s": 10**6,
}  # fmt: skip  # a table


def make_limits(orders: RateLimit | None = None, messages: RateLimit | None = None, **changes: Any) -> OrderLimits:
    """Return limits that refuse nothing but what is changed."""
    profile = VenueProfile(
        time_zone="America/New_York",
        hours=(("09:30", "16:00"),),
        orders=orders or RateLimit(),
        messages=messages or RateLimit(),
    )
    return OrderLimits.model_validate({**WIDE, "profile": "own", "profiles": {"own": profile}, **changes})


class Desk:
    """A gate with a counter of orders and reports, for tests that send, fill and cancel."""

    def __init__(
        self, limits: OrderLimits, held: Mapping[str, int] | None = None, policy: Policy | None = None, **state: Any
    ) -> None:
        given = {"equity_e4": EQUITY, "positions": held or {}, "usual_shares": {"AAA": 10_000, "BBB": 10_000}, **state}
        self.gate = OrderGate(limits, policy or Policy(), GateState(**given))
        self.numbers = count(1)
        for asset in ("AAA", "BBB"):
            self.gate.quote(asset, PRICE, NOW - MINUTE)

    def order(
        self, side: Side = "buy", shares: int = 100, limit: int | None = PRICE, asset: str = "AAA", name: str = ""
    ) -> ChildOrder:
        kind: OrderKind = "market" if limit is None else "limit"
        return ChildOrder(name or f"p-{next(self.numbers)}", "p", asset, side, shares, kind, limit, 0)

    def send(self, order: ChildOrder, at: int = NOW) -> OrderRuling:
        return self.gate.check(order, at)

    def sent(self, *order: Any, at: int = NOW, **named: Any) -> ChildOrder:
        """Send an order that must pass."""
        made = self.order(*order, **named)
        ruling = self.send(made, at)
        assert ruling.passed, ruling.refusals
        return made

    def report(self, order: ChildOrder, kind: ReportKind, shares: int = 0, price: int = PRICE, at: int = NOW) -> None:
        self.gate.apply(ExecutionReport(order.id, kind, f"e{next(self.numbers)}", at, shares, price if shares else 0))

    def fill(self, order: ChildOrder, shares: int = 0, price: int = PRICE, at: int = NOW) -> None:
        self.report(order, "filled", shares or order.shares, price, at)

    def cancel(self, order: ChildOrder, at: int = NOW) -> OrderRuling:
        """Cancel an order, as the venue confirms at once."""
        ruling = self.gate.check_cancel(order.id, at)
        self.report(order, "cancelled", at=at)
        return ruling
