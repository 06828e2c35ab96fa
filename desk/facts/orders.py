"""The facts of a session's orders, for tables and programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from ..errors import DeskError

if TYPE_CHECKING:
    from ...execution import OrderRecord, OrderState, SessionOrders
    from ...ledger import Ledger

MONEY_UNITS = 10_000
"""Units of the record's money and prices in one unit of the currency."""
BP = 10_000
US_PER_SECOND = 1_000_000
WAITING = "waiting"
EXPECTED_PARTS = ("spread_bp", "temporary_bp", "permanent_bp")
"""Parts of the expected slippage, as a plan has them."""
LEFT_OUT_TEXTS = {
    "price": "no price is known",
    "lot": "less than a lot is missing",
    "borrow": "nobody lends it (not_shortable in policy.yaml)",
    "locate": "the list of locates has fewer shares",
    "margin": "the margin of the positions would exceed the equity",
    "history": "usual volume or volatility is not known, without which no schedule can be made",
    "participation": "the schedule's share of the volume leaves no room",
}
"""Why shares of an approved target became no order, by rule."""


@dataclass(frozen=True)
class BookSession:
    """A session of a book whose orders are on record: its facts, orders and record, and the days of all sessions."""

    facts: dict[str, Any]
    orders: SessionOrders
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
        rows = self.facts["orders"]
        names = {part for row in rows for part in (row["id"], row["id"].partition("-")[0])}
        names |= {child["id"] for row in rows for child in row["children"]}
        if name not in {ALL_ORDERS, *names}:
            raise DeskError("There is no such order.", field="--cancel", got=name, allowed=f"{ALL_ORDERS}, or an id")
        return self.record.record_cancel(name, by, at)


def read_session(ledger: Ledger, name: str, day: str = "", known: SessionOrders | None = None) -> BookSession:
    """Return a session of a book, the last one by default; `known` are its orders as they were read before.

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
    orders = record.read(known)
    return BookSession(tell_session(book.removeprefix("book-"), day, orders), orders, record, days)


def tell_session(book: str, session: str, orders: SessionOrders) -> dict[str, Any]:
    """Return a session as plain facts; money in the prices' currency, slippage above 0 is a loss.

    `status` is "done", "halted" (the halt file stopped it), "open" or "waiting" (nothing was sent yet).
    """
    plan = orders.plan or {"parents": [], "left_out": [], "expected_cost_e4": 0}
    children: dict[str, list[OrderState]] = {}
    for state in orders.orders.values():
        children.setdefault(state.order.parent, []).append(state)
    rows = [_tell_order(parent, children.get(parent["id"], [])) for parent in plan["parents"]]
    filled = [row for row in rows if row["filled"]]
    value = sum(row["filled"] * row["arrival"] for row in filled)
    slippage = sum(row["slippage"] for row in filled)
    costs = sum(row["cost"] for row in filled)
    expected = plan.get("expected_slippage", {})
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
        "schedule": plan.get("schedule", ""),
        "expected_slippage": expected.get("expected_e4", 0) / MONEY_UNITS,
        "expected_slippage_sd": expected.get("sd_e4", 0) / MONEY_UNITS,
        "expected_value": expected.get("value_e4", 0) / MONEY_UNITS,
        **_tell_measured(orders.measured, rows),
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
    if orders.is_halted:
        return "halted"
    return "open" if orders.orders else WAITING


@dataclass(frozen=True)
class _Parent:
    """A parent order as it is on record, for `measure_slippage`."""

    id: str
    shares: int
    arrival_e4: int


def _tell_order(row: Mapping[str, Any], states: Sequence[OrderState]) -> dict[str, Any]:
    """Return one order of the plan with what became of it; it was sent as one child or as many."""
    from ...execution.schedule import measure_slippage

    parent = _Parent(row["id"], row["shares"], row["arrival_e4"])
    found = measure_slippage(parent, [report for state in states for report in state.reports])
    has_one = len(row.get("slices", ())) < 2 and len(states) == 1  # the one child is what a person cancels
    expected = row.get("expected")
    return {
        "id": states[0].order.id if has_one else parent.id,
        "asset": row["asset"],
        "side": "buy" if parent.shares > 0 else "sell",
        "shares": abs(parent.shares),
        "arrival": parent.arrival_e4 / MONEY_UNITS,
        "status": _find_order_status(row, states),
        "filled": found.filled_shares,
        "price": found.mean_e4 / MONEY_UNITS if found.filled_shares else None,
        "cost": found.fees_e4 / MONEY_UNITS,
        "slippage": found.price_e4 / MONEY_UNITS,
        "slippage_bp": found.price_e4 / (found.filled_shares * parent.arrival_e4) * BP if found.filled_shares else None,
        "expected_bp": None if expected is None else sum(expected[part] for part in EXPECTED_PARTS),
        "refusals": _group_refusals([one for state in states for one in _list_refusals(state)]),
        "reason": next((one.reason for state in states for one in reversed(state.reports) if one.reason), ""),
        "children": _tell_children(row, states),
    }


def _tell_children(row: Mapping[str, Any], states: Sequence[OrderState]) -> list[dict[str, Any]]:
    """Return each slice of an order with what became of it."""
    found, rows = {state.order.id: state for state in states}, []
    for number, (at_us, shares) in enumerate(row.get("slices", ()), 1):
        name = f"{row['id']}-{number}"
        state = found.get(name)
        due = datetime.fromtimestamp(at_us / US_PER_SECOND, UTC).isoformat()
        filled = state.filled_shares if state else 0
        rows.append({"id": name, "due": due, "shares": shares, "status": describe_status(state), "filled": filled})
    return rows


def _find_order_status(row: Mapping[str, Any], states: Sequence[OrderState]) -> str:
    """Return where an order is; one that was sent in parts is "working" until each part has ended."""
    if len(row.get("slices", ())) < 2:
        return describe_status(states[0] if states else None)
    if len(states) == len(row["slices"]) and not any(state.is_open for state in states):
        kinds = {describe_status(state) for state in states}
        if len(kinds) == 1:
            return kinds.pop()
        return "partly filled" if any(state.filled_shares for state in states) else "ended"
    return "working" if states else WAITING


def _tell_measured(measured: Mapping[str, Any] | None, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the fills against the price that the schedule aims at, and what was not filled; None: not known."""
    parents = measured["parents"] if measured else {}
    by_row = [(row, parents[row["id"].partition("-")[0]]) for row in rows if row["id"].partition("-")[0] in parents]
    aimed = [(row, one) for row, one in by_row if one["against_e4"] is not None and one["filled_shares"]]
    value = sum(one["filled_shares"] * row["arrival"] for row, one in aimed)
    against = sum(one["against_e4"] for _, one in aimed) / MONEY_UNITS
    unfilled = [one for _, one in by_row if one["unfilled_shares"]]
    missed = [one["missed_e4"] for one in unfilled if one["missed_e4"] is not None]
    return {
        "benchmark": measured["benchmark"] if measured else None,
        "against_benchmark": against if aimed else None,
        "against_benchmark_bp": against / value * BP if value else None,
        "unfilled": sum(one["unfilled_shares"] for one in unfilled) if measured else None,
        "missed": sum(missed) / MONEY_UNITS if missed else None,
    }


def describe_status(state: OrderState | None) -> str:
    """Return where an order is; one that nobody can answer for is "unknown"."""
    if state is None:
        return WAITING
    return "unknown" if state.unknown and state.is_open else state.status


def _group_refusals(refusals: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each rule once with the number of slices that it refused; value and limit where that is one."""
    times = Counter(one["rule"] for one in refusals)
    once = [one | {"times": 1} for one in refusals if times[one["rule"]] == 1]
    return once + [{"rule": rule, "actual": None, "limit": None, "times": n} for rule, n in times.items() if n > 1]


def _list_refusals(state: OrderState | None) -> list[dict[str, Any]]:
    """Return the rules that refused an order, with value and limit where there is one."""
    if state is None or state.passed:
        return []
    rules = state.ruling.get("rules", {})
    return [
        {"rule": rule, "actual": rules.get(rule, (None, None))[0], "limit": rules.get(rule, (None, None))[1]}
        for rule in state.refusals
    ]
