"""The facts of a session's orders, for tables and programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from ..errors import DeskError

if TYPE_CHECKING:
    from ...execution import OrderRecord, OrderState, SessionOrders
    from ...ledger import Ledger

MONEY_UNITS = 10_000
"""Units of the record's money and prices in one unit of the currency."""
BP = 10_000
WAITING = "waiting"
LEFT_OUT_TEXTS = {
    "price": "no price is known",
    "lot": "less than a lot is missing",
    "borrow": "nobody lends it (not_shortable of the policy)",
    "locate": "the list of locates has fewer shares",
    "margin": "the positions would bind more than the equity",
}
"""Why shares of an approved target became no order, by rule."""


@dataclass(frozen=True)
class BookSession:
    """A session of a book whose orders are on record: its facts, its record, and the days of all sessions."""

    facts: dict[str, Any]
    record: OrderRecord
    days: list[str]

    def cancel(self, name: str, by: str, at: str) -> bool:
        """Record that a person asks for the end of an order, of a parent's orders, or of all; return whether it is new.

        Raises
        ------
        DeskError
            Every order has ended, or there is no such order.
        """
        from ...execution import ALL_ORDERS

        if self.facts["status"] == "done":
            raise DeskError("Every order of the session has ended.", field="--cancel", got=name, code="orders_done")
        names = {row["id"] for row in self.facts["orders"]} | {
            row["id"].partition("-")[0] for row in self.facts["orders"]
        }
        if name not in {ALL_ORDERS, *names}:
            raise DeskError("There is no such order.", field="--cancel", got=name, allowed=f"{ALL_ORDERS}, or an id")
        return self.record.record_cancel(name, by, at)


def read_session(ledger: Ledger, name: str, day: str = "") -> BookSession:
    """Return a session of a book, the last one by default.

    Raises
    ------
    DeskError
        The book has no orders for the day.
    RiskError
        There is no such book.
    """
    from ...campaign import find_book
    from ...execution import OrderRecord, list_planned

    book, _ = find_book(ledger, name)
    days = list_planned(ledger, book)
    day = day or (days[-1] if days else "")
    if day not in days:
        raise DeskError(
            "The book has no orders for this day." if day else "The book has no orders yet.",
            field="--session" if day else "BOOK",
            got=day or name,
            allowed=", ".join(days[-5:]) or None,
            hint=f"alphaloom execute {name} --venue paper",
            code="no_orders",
        )
    record = OrderRecord(ledger, book, date.fromisoformat(day))
    return BookSession(tell_session(book.removeprefix("book-"), day, record.read()), record, days)


def tell_session(book: str, session: str, orders: SessionOrders) -> dict[str, Any]:
    """Return a session as plain facts; money in the prices' currency, slippage above 0 is a loss.

    `status` is "done", "halted" (the halt file stopped it), "open" or "waiting" (nothing was sent yet).
    """
    plan = orders.plan or {"parents": [], "left_out": [], "expected_cost_e4": 0}
    children = {state.order.parent: state for state in orders.orders.values()}
    rows = [_tell_order(parent, children.get(parent["id"])) for parent in plan["parents"]]
    filled = [row for row in rows if row["filled"]]
    value = sum(row["filled"] * row["arrival"] for row in filled)
    slippage = sum(row["slippage"] for row in filled)
    costs = sum(row["cost"] for row in filled)
    return {
        "book": book,
        "session": session,
        "decided_on": plan.get("decided_on", ""),
        "venue": plan.get("venue", ""),
        "status": _find_status(orders),
        "halts": [{"reason": one["reason"], "by": one["by"]} for one in orders.halts],
        "cancels": [dict(one) for one in orders.cancels.values()],
        "breaks": [{name: one[name] for name in ("kind", "order", "exec_id")} for one in orders.breaks],
        "expected_cost": plan["expected_cost_e4"] / MONEY_UNITS,
        "planned_value": sum(abs(row["shares"]) * row["arrival"] for row in rows),
        "filled_value": value,
        "slippage": slippage,
        "costs": costs,
        "slippage_bp": slippage / value * BP if value else None,
        "costs_bp": costs / value * BP if value else None,
        "by_status": dict(Counter(row["status"] for row in rows)),
        "orders": rows,
        "left_out": [
            {"asset": asset, "rule": rule, "shares": shares, "why": LEFT_OUT_TEXTS[rule]}
            for asset, rule, shares in plan["left_out"]
        ],
    }


def _find_status(orders: SessionOrders) -> str:
    if orders.done is not None:
        return "done"
    if orders.halts:
        return "halted"
    return "open" if orders.orders else WAITING


def _tell_order(parent: Mapping[str, Any], state: OrderState | None) -> dict[str, Any]:
    """Return one order with what became of it."""
    side = 1 if parent["shares"] > 0 else -1
    arrival = parent["arrival_e4"] / MONEY_UNITS
    filled = state.filled_shares if state else 0
    price = state.filled_e4 / filled / MONEY_UNITS if state and filled else None
    return {
        "id": state.order.id if state else parent["id"],
        "asset": parent["asset"],
        "side": "buy" if side > 0 else "sell",
        "shares": abs(parent["shares"]),
        "arrival": arrival,
        "status": describe_status(state),
        "filled": filled,
        "price": price,
        "cost": state.cost_e4 / MONEY_UNITS if state else 0.0,
        "slippage": 0.0 if price is None else side * (price - arrival) * filled,
        "slippage_bp": None if price is None else side * (price / arrival - 1) * BP,
        "refusals": _list_refusals(state),
        "reason": next((one.reason for one in reversed(state.reports) if one.reason), "") if state else "",
    }


def describe_status(state: OrderState | None) -> str:
    """Return where an order is; one that nobody can answer for is "unknown"."""
    if state is None:
        return WAITING
    return "unknown" if state.unknown and state.is_open else state.status


def _list_refusals(state: OrderState | None) -> list[dict[str, Any]]:
    """Return the rules that refused an order, with value and limit where there is one."""
    if state is None or state.passed:
        return []
    rules = state.ruling.get("rules", {})
    return [
        {"rule": rule, "actual": rules.get(rule, (None, None))[0], "limit": rules.get(rule, (None, None))[1]}
        for rule in state.refusals
    ]
