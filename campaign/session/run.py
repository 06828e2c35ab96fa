"""Execute a session of a book: plan it, or go on with the plan on record, and send its orders to a venue."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, time
from functools import partial
from typing import Final

from ...execution import (
    PRICE_UNITS,
    US_PER_SECOND,
    Breakers,
    BreakerWatch,
    ExecutionError,
    GateState,
    HaltSwitch,
    OrderEngine,
    OrderGate,
    OrderRecord,
    OrderRuling,
    OrderState,
    SessionOrders,
    list_tripped,
    read_execution_policy,
    record_trips,
)
from ...ledger import Ledger
from ...portfolio import PaperAccount
from ..book import BookData
from ..book_record import hold_book
from ..facts import CENTS
from ..windows import find_windows, refuse_unpaid_days
from .cutting import SessionHours
from .measuring import measure_session
from .plan import BookClose, PlanRequest, SessionPlan, plan_session, read_close, refuse_old, restore_plan
from .venues import FIX_VENUE, open_venue, refuse_schedule

EVERY_ZONE: Final = time(10, 30, tzinfo=UTC)
"""A time that lies in the same day in all time zones from Hawaii to New Zealand."""


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
    close = read_close(ledger, name, data, now)
    refuse_old(close)
    gate, spans = _make_gate(ledger, close, data, request)
    plan = plan_session(close, request, _find_hours(request, spans, now))
    refuse_schedule(plan, gate.limits)
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
    """Send the orders of a book's next session to a simulated venue; a session that was cut short goes on.

    Parameters
    ----------
    ledger, name, data
        The record, the book, and the panel, which must have the session's day.
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
        There is no such book, the panel is not the book's, or nobody has paid for the day.
    """
    close = read_close(ledger, name, data, now)
    with hold_book(ledger, close.book):
        close = read_close(ledger, name, data, now)  # another process may have stepped the book meanwhile
        record = OrderRecord(ledger, close.book, close.session)
        found = record.read()
        if found.plan is None:
            refuse_old(close)
        venue_name = request.venue if found.plan is None else found.plan["venue"]
        row = close.row if venue_name == FIX_VENUE else _find_session(close, data, name)
        if row is not None:
            _refuse_unpaid(ledger, close, data, row)
        if found.plan is not None:
            plan = restore_plan(close, found.plan)
            gate, _ = _make_gate(ledger, close, data, plan.request)
        else:
            gate, spans = _make_gate(ledger, close, data, request)
            plan = plan_session(close, request, _find_hours(request, spans, now))
            refuse_schedule(plan, gate.limits)
        watch = watch or SessionWatch()
        watch.planned(plan)
        _quote(gate, plan)
        reached = open_venue(ledger.workspace, plan, data.panel, row, now)
        with closing(reached.venue) as venue, HaltSwitch(ledger.workspace) as switch:
            if found.plan is None:
                record.record_plan(plan.record())
            breakers = _watch_breakers(ledger, close, gate, switch, plan.opens_us)
            engine = OrderEngine(record, gate, venue, switch, reached.time, watch.told, breakers)
            orders = engine.run(plan.children, plan.closes_us)
            if orders.done is not None and orders.measured is None:
                record.record_measured(measure_session(plan, orders, venue, data.panel, row))
                orders = record.read()
            return SessionRun(plan, orders)


def _find_hours(request: PlanRequest, spans: tuple[tuple[int, int], ...], now: datetime) -> SessionHours:
    """Return the hours of a session; a FIX venue trades what is left of one that has begun."""
    now_us = round(now.timestamp() * US_PER_SECOND)
    has_begun = request.venue == FIX_VENUE and spans[0][0] < now_us < spans[-1][1]
    return SessionHours(spans, now_us if has_begun else 0)


def _watch_breakers(ledger: Ledger, close: BookClose, gate: OrderGate, switch: HaltSwitch, at_us: int) -> BreakerWatch:
    """Return the breakers of a book, with the trips that stand, after a look at its equity."""
    limits = read_execution_policy(ledger.workspace).breakers
    breakers = Breakers(limits, list_tripped(ledger, close.book))
    watch = BreakerWatch(breakers, gate, switch, partial(record_trips, ledger, close.book), close.mode)
    account = PaperAccount.restore(close.step["account"])
    equity, high, gain = (round(value * CENTS) for value in (account.equity, account.high_water, account.pnl))
    watch.see_equity(equity, high, equity - gain, at_us)
    return watch


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


def _make_gate(
    ledger: Ledger, close: BookClose, data: BookData, request: PlanRequest
) -> tuple[OrderGate, tuple[tuple[int, int], ...]]:
    """Return the order gate for a book before its session, and the hours of that."""
    limits = read_execution_policy(ledger.workspace).orders
    if not limits.calendar and data.panel.calendar:
        limits = limits.model_copy(update={"calendar": data.panel.calendar})
    usual = {name: past.day_shares for name, past in close.pasts.items() if past.day_shares is not None}
    positions = {name: math.trunc(round(shares, 6)) for name, shares in close.held.items()}
    state = GateState(max(round(close.equity * PRICE_UNITS), 1), positions, usual, request.located)
    gate = OrderGate(limits, close.policy, state)
    gate.set_mode(close.mode)
    at_us = int(datetime.combine(close.session, EVERY_ZONE).timestamp()) * US_PER_SECOND
    spans = gate.hours.find_day(at_us).spans or ((at_us, at_us),)  # on a day without a session the gate refuses all
    return gate, spans


def _quote(gate: OrderGate, plan: SessionPlan) -> None:
    """Tell the gate the last price that is known of each symbol when the session opens."""
    for parent in plan.parents:
        gate.quote(parent.asset, parent.arrival_e4, plan.opens_us)
