"""Execute a session of a book: plan it, or go on with the plan on record, and send its orders to a venue."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ...execution import (
    ALL_ORDERS,
    PRICE_UNITS,
    US_PER_SECOND,
    Agreement,
    ExecutionError,
    GateState,
    Halt,
    HaltSwitch,
    OrderEngine,
    OrderGate,
    OrderRecord,
    OrderRuling,
    OrderState,
    SessionOrders,
    agree,
    read_execution_policy,
)
from ...ledger import Ledger
from ...ledger.log import KeyFolder
from ..book import BookData
from ..book_record import find_book, hold_book
from ..windows import find_windows, refuse_unpaid_days
from .cutting import SessionHours
from .fills import find_untaken, refuse_skipped
from .measuring import measure_session
from .observe import EVERY_ZONE, trip_on_disagreement, watch_breakers
from .plan import BookClose, PlanRequest, SessionPlan, plan_session, read_close, refuse_old, restore_plan
from .step import read_limits
from .venues import FIX_VENUE, open_venue, refuse_schedule


@dataclass(frozen=True)
class SessionRun:
    """A session that was executed, or that would be.

    Attributes
    ----------
    plan
        What was planned.
    orders
        What is on record of it; of a preview nothing.
    preview
        Of a preview, what the order gate says of each order.
    """

    plan: SessionPlan
    orders: SessionOrders
    preview: tuple[OrderRuling, ...] = ()


@dataclass(frozen=True)
class SessionWatch:
    """What is called while a session is executed.

    Attributes
    ----------
    planned
        With the plan, before anything is sent.
    told
        With an order, whenever its state has changed.
    """

    planned: Callable[[SessionPlan], None] = lambda plan: None
    told: Callable[[OrderState], None] = lambda state: None


def preview_session(ledger: Ledger, name: str, data: BookData, request: PlanRequest, now: datetime) -> SessionRun:
    """Return the orders of a book's next session and what the order gate says of them; nothing is recorded."""
    agreement = agree(ledger.workspace, KeyFolder.of_user(), now.date())
    close = _read_agreed(ledger, name, data, now, agreement)
    refuse_old(close)
    plan, gate = _plan(ledger, close, data, request, now, SessionOrders())
    _quote(gate, plan)
    arrivals, rulings = {parent.asset: parent.arrival_e4 for parent in plan.parents}, list[OrderRuling]()
    for order in plan.children:
        gate.quote(order.asset, arrivals[order.asset], order.at_us)
        rulings.append(gate.check(order, order.at_us))
    return SessionRun(plan, SessionOrders(), tuple(rulings))


def execute_session(
    ledger: Ledger,
    name: str,
    data: BookData,
    request: PlanRequest,
    now: datetime,
    watch: SessionWatch | None = None,
) -> SessionRun:
    """Send the orders of a book's next session to a venue; a session that was cut short goes on.

    Parameters
    ----------
    ledger, name, data
        The record, the book, and the panel, which must have the session's day unless the venue is over FIX.
    request
        What a person asks for; where the session was planned before, that plan holds.
    now
        The present: days to come are refused.
    watch
        What a person sees meanwhile.

    Raises
    ------
    ExecutionError
        The panel ends before the session, or the session was planned on other data.
    RiskError
        There is no such book, the panel is not the book's, nobody has paid for the day, or what the last step approved
        was traded in another session.
    """
    agreement = agree(ledger.workspace, KeyFolder.of_user(), now.date())
    with trip_on_disagreement(ledger, name, now), hold_book(ledger, find_book(ledger, name)[0]):
        close = _read_agreed(ledger, name, data, now, agreement)
        record = OrderRecord(ledger, close.book, close.session)
        found = record.read()
        day = close.session.isoformat()
        refuse_skipped(find_untaken(ledger, close.book, close.step["day"], but=day), day)
        if found.plan is None:
            refuse_old(close)
        venue_name = request.venue if found.plan is None else found.plan["venue"]
        row = close.row if venue_name == FIX_VENUE else _find_session(close, data, name)
        if row is not None:
            _refuse_unpaid(ledger, close, data, row)
        plan, gate = _plan(ledger, close, data, request, now, found)
        watch = watch or SessionWatch()
        watch.planned(plan)
        if found.done is not None and found.measured is not None:
            return SessionRun(plan, found)
        _quote(gate, plan)
        reached = open_venue(ledger.workspace, plan, data.panel, row, now, record)
        with closing(reached.venue) as venue, HaltSwitch(ledger.workspace, _find_change(agreement)) as switch:
            if found.plan is None:
                record.record_plan({**plan.record(), **_record_agreement(agreement)})
            breakers = watch_breakers(ledger, close, gate, switch, plan.opens_us, now)
            engine = OrderEngine(record, gate, venue, switch, reached.time, watch.told, breakers)
            orders = engine.run(plan.children, plan.closes_us)
            if orders.done is not None and orders.measured is None:
                record.record_measured(measure_session(plan, orders, venue, data.panel, row))
            return SessionRun(plan, record.read())


def _plan(
    ledger: Ledger, close: BookClose, data: BookData, request: PlanRequest, now: datetime, found: SessionOrders
) -> tuple[SessionPlan, OrderGate]:
    """Return the plan of a session, the one on record where there is one, and the order gate before it."""
    if found.plan is not None:
        plan = restore_plan(close, found.plan, is_cancelled=ALL_ORDERS in found.cancels)
        return plan, make_gate(ledger, close, data, plan.request)[0]
    gate, spans = make_gate(ledger, close, data, request)
    hours = _find_hours(request, spans, now)
    plan = plan_session(close, request, hours)
    refuse_schedule(plan, gate.limits, hours.from_us)
    return plan, gate


def _find_hours(request: PlanRequest, spans: tuple[tuple[int, int], ...], now: datetime) -> SessionHours:
    """Return the hours of a session; a FIX venue trades what is left of one that has begun."""
    now_us = round(now.timestamp() * US_PER_SECOND)
    has_begun = request.venue == FIX_VENUE and spans[0][0] < now_us < spans[-1][1]
    return SessionHours(spans, now_us if has_begun else 0)


def _read_agreed(ledger: Ledger, name: str, data: BookData, now: datetime, agreement: Agreement | None) -> BookClose:
    """Return a book after its last step; refuse one that was approved under laxer limits than the agreed ones."""
    close = read_close(ledger, name, data, now)
    if agreement is not None:
        agreement.require_limits(read_limits(close.inputs))
    return close


def _find_change(agreement: Agreement | None) -> Callable[[], Halt | None]:
    """Return what finds, before each order, that the agreed files were changed."""
    return agreement.find_change if agreement else lambda: None


def _record_agreement(agreement: Agreement | None) -> dict[str, Any]:
    """Return the agreement as a plan keeps it."""
    if agreement is None:
        return {}
    return {"agreement": {"number": agreement.signed.number, "signers": [*agreement.signers]}}


def _refuse_unpaid(ledger: Ledger, close: BookClose, data: BookData, row: int) -> None:
    """Refuse a session that belongs to days which nobody has paid for."""
    evidence = close.inputs["sizing"][3]
    windows = find_windows(ledger, data.panel, data.dataset)
    refuse_unpaid_days(ledger, data.panel, data.dataset, range(row, row + 1), evidence, windows)


def _find_session(close: BookClose, data: BookData, name: str) -> int:
    """Return the row of the session; a simulated venue needs it."""
    if close.row is not None:
        return close.row
    last = data.panel.dates[-1]
    raise ExecutionError(
        "The panel ends before the session, and a simulated venue fills at its opening prices.",
        field="--panel",
        got=f"days up to {last}",
        allowed=f"a panel with the day after {last}, about {close.session}",
        hint="Come back with a panel that has it; --dry-run shows the orders now. To try it on a past market, step a "
        f"new book to an earlier day: alphaloom book step {name} --since DAY --until DAY",
        code="session_missing",
    )


def make_gate(
    ledger: Ledger, close: BookClose, data: BookData, request: PlanRequest
) -> tuple[OrderGate, tuple[tuple[int, int], ...]]:
    """Return the order gate for a book before its session, and the hours of that."""
    limits = read_execution_policy(ledger.workspace).orders
    if not limits.calendar and data.panel.calendar:
        limits = limits.model_copy(update={"calendar": data.panel.calendar})
    usual = {name: past.day_shares for name, past in close.pasts.items() if past.day_shares is not None}
    positions = {name: math.trunc(round(shares, 6)) for name, shares in close.held.items()}
    located = request.located
    if located is not None:  # a lender promises shares by which a short may grow; those that are short now are borrowed
        located = {name: shares + max(-positions.get(name, 0), 0) for name, shares in located.items()}
    state = GateState(max(round(close.equity * PRICE_UNITS), 1), positions, usual, located)
    gate = OrderGate(limits, close.policy, state)
    gate.set_mode(close.mode)
    at_us = int(datetime.combine(close.session, EVERY_ZONE).timestamp()) * US_PER_SECOND
    spans = gate.hours.find_day(at_us).spans or ((at_us, at_us),)  # on a day without a session the gate refuses all
    return gate, spans


def _quote(gate: OrderGate, plan: SessionPlan) -> None:
    """Tell the gate the last price that is known of each symbol when the session opens."""
    for parent in plan.parents:
        gate.quote(parent.asset, parent.arrival_e4, plan.opens_us)
