"""The fills of a session as a step of the book takes them in: read from the record of its orders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date
from typing import Any

from ...execution import PRICE_UNITS, SHARE_PARTS, OrderRecord, OrderState, SessionOrders, list_planned
from ...ledger import Ledger, compute_digest
from ...portfolio import ExecutedFill
from ...risk import RiskError


def find_executed(ledger: Ledger, book: str) -> Callable[[str], dict[str, Any] | None]:
    """Return what reads the fills of a day; it returns None for a day without orders."""
    planned = {*list_planned(ledger, book)}
    return lambda day: read_executed(ledger, book, day) if day in planned else None


def read_executed(ledger: Ledger, book: str, day: str) -> dict[str, Any]:
    """Return what was filled in a session whose orders were planned, as a JSON-able object.

    Returns
    -------
    dict
        `digest` of the plan and of all reports, and `fills`, each as `ExecutedFill` takes it.

    Raises
    ------
    RiskError
        Orders of the session have not ended.
    """
    session = OrderRecord(ledger, book, date.fromisoformat(day)).read()
    if session.plan is None or session.done is None:
        open_orders = len(session.list_open())
        raise RiskError(
            f"The orders of {day} have not all ended, so the book cannot take in its fills.",
            field="NAME",
            got=f"{open_orders} open" if open_orders else "some are not sent yet",
            allowed="a session whose orders are filled, refused, expired or cancelled",
            hint="Nothing was stepped. alphaloom execute goes on with them; alphaloom orders --cancel all ends them.",
            code="orders_open",
            exit_code=1,
        )
    reports = [report.record() for state in session.orders.values() for report in state.reports]
    digest = compute_digest({"plan": dict(session.plan), "reports": reports})
    return {"digest": digest, "fills": _sum_fills(session, session.plan)}


def find_untaken(ledger: Ledger, book: str, last: str, but: str = "") -> list[str]:
    """Return the sessions after the day of the last step in which a book traded, or may have, but for one."""
    found = []
    for day in (one for one in list_planned(ledger, book) if one > last and one != but):
        states = OrderRecord(ledger, book, date.fromisoformat(day)).read().orders.values()
        if any(state.filled_shares or state.is_open for state in states):
            found.append(day)
    return found


def refuse_skipped(untaken: Iterable[str], day: str) -> None:
    """Refuse a day of a book where its approvals were traded in another session that no step has taken in.

    Raises
    ------
    RiskError
        With that session: the panel lacks it, or has days before it that are new.
    """
    other = next((one for one in untaken if one != day), None)
    if other is not None:
        raise RiskError(
            f"What the last step approved was traded in the session of {other}, and no step has taken that in.",
            field="--panel",
            got=f"{day} as the day after the last step",
            allowed=f"{other} as the day after the last step",
            hint=f"Nothing was done: it would count twice. Come with a panel that has {other} and no new day before.",
            code="session_skipped",
            exit_code=1,
        )


def list_executed(executed: Mapping[str, Any] | None) -> list[ExecutedFill]:
    """Return the fills of `read_executed`; none where the session was not executed."""
    return [ExecutedFill(*row) for row in executed["fills"]] if executed else []


def _sum_fills(session: SessionOrders, plan: Mapping[str, Any]) -> list[list[Any]]:
    """Return one row for each symbol of which something was filled, by symbol.

    No venue takes a fraction of a share. Where a position was closed, the fraction that is left is sold with it.
    """
    rows, children = [], dict[str, list[OrderState]]()
    for state in session.orders.values():
        children.setdefault(state.order.parent, []).append(state)
    for parent in plan["parents"]:
        states = children.get(parent["id"], [])
        filled = sum(state.filled_shares for state in states)
        if not filled:
            continue
        side = 1 if parent["shares"] > 0 else -1
        price = sum(state.filled_e4 for state in states) / filled / PRICE_UNITS
        cost = sum(state.cost_e4 for state in states) / PRICE_UNITS
        left_e6 = parent["held_e6"] + side * filled * SHARE_PARTS
        rest = left_e6 / SHARE_PARTS if not parent["target_e8"] and abs(left_e6) < SHARE_PARTS else 0.0
        rows.append(
            [
                parent["asset"],
                side * filled - rest,
                price,
                cost + cost / filled * abs(rest),
                float(parent["shares"] - side * filled),
                parent["close"],
                parent["day"],
                parent["before"],
                parent["before_day"],
            ]
        )
    return sorted(rows)
