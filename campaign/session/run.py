"""Execute a session of a book: plan it, or go on with the plan on record, and send its orders to a venue."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, time
from pathlib import Path
from typing import Final

from ...execution import (
    PRICE_UNITS,
    US_PER_SECOND,
    ExecutionError,
    GateState,
    HaltSwitch,
    OrderEngine,
    OrderGate,
    OrderRecord,
    OrderRuling,
    OrderState,
    PaperSession,
    PaperVenue,
    SessionOrders,
    SimulatedTime,
    Venue,
    read_execution_policy,
)
from ...execution.nautilus import NautilusVenue, SessionPrices
from ...ledger import Ledger
from ...market import PRICE_FIELDS
from ..book import BookData
from ..book_record import hold_book
from ..facts import read_prices
from ..windows import find_windows, refuse_unpaid_days
from .plan import BookClose, PlanRequest, SessionPlan, plan_session, read_close, refuse_old, restore_plan
from .step import read_decision_inputs

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
    gate, hours = _make_gate(ledger, close, data, request)
    plan = plan_session(close, request, hours)
    _quote(gate, plan)
    return SessionRun(plan, SessionOrders(), tuple(gate.check(order, order.at_us) for order in plan.children))


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
        row = _find_session(close, data, name)
        evidence = close.inputs["sizing"][3]
        windows = find_windows(ledger, data.panel, data.dataset)
        refuse_unpaid_days(ledger, data.panel, data.dataset, range(row, row + 1), evidence, windows)
        if found.plan is not None:
            plan = restore_plan(close, found.plan)
            gate, _ = _make_gate(ledger, close, data, plan.request)
        else:
            gate, hours = _make_gate(ledger, close, data, request)
            plan = plan_session(close, request, hours)
        watch = watch or SessionWatch()
        watch.planned(plan)
        _quote(gate, plan)
        with closing(_open_venue(ledger, plan, data, row)) as venue, HaltSwitch(ledger.workspace) as switch:
            if found.plan is None:
                record.record_plan(plan.record())
            engine = OrderEngine(record, gate, venue, switch, SimulatedTime(plan.opens_us), watch.told)
            return SessionRun(plan, engine.run(plan.children, plan.closes_us))


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
) -> tuple[OrderGate, tuple[int, int]]:
    """Return the order gate for a book before its session, and when that opens and closes."""
    limits = read_execution_policy(ledger.workspace).orders
    if not limits.calendar and data.panel.calendar:
        limits = limits.model_copy(update={"calendar": data.panel.calendar})
    usual = {
        name: int(row[3] / close.prices[name][0])
        for name, row in close.inputs["facts"].items()
        if name in close.prices and row[3] is not None
    }
    positions = {name: math.trunc(round(shares, 6)) for name, shares in close.held.items()}
    state = GateState(max(round(close.equity * PRICE_UNITS), 1), positions, usual, request.located)
    gate = OrderGate(limits, close.policy, state)
    gate.set_mode(close.mode)
    at_us = int(datetime.combine(close.session, EVERY_ZONE).timestamp()) * US_PER_SECOND
    spans = gate.hours.find_day(at_us).spans or ((at_us, at_us),)  # on a day without a session the gate refuses all
    return gate, (spans[0][0], spans[-1][1])


def _quote(gate: OrderGate, plan: SessionPlan) -> None:
    """Tell the gate the last price that is known of each symbol when the session opens."""
    for parent in plan.parents:
        gate.quote(parent.asset, parent.arrival_e4, plan.opens_us)


def _open_venue(ledger: Ledger, plan: SessionPlan, data: BookData, row: int) -> Venue:
    """Return the venue that the plan names, with the prices of the session."""
    if plan.request.venue != NautilusVenue.name:
        return PaperVenue(_open_session(plan, data, row))
    close, python = plan.close, read_execution_policy(ledger.workspace).nautilus.python
    venue = NautilusVenue(
        Path(python) if python else None,
        [parent.asset for parent in plan.parents],
        max(round(close.equity * PRICE_UNITS), 1),
        "backtest",
        cost_bp=close.settings.bps_per_side,
    )
    try:
        venue.admit(read_decision_inputs(close.inputs), close.decision.id, plan.parents)
        venue.open_session(_read_session(plan, data, row))
    except ExecutionError:
        venue.close()
        raise
    return venue


def _read_session(plan: SessionPlan, data: BookData, row: int) -> SessionPrices:
    """Return the prices of a session by the plan's symbols; a symbol that did not trade has none."""
    panel, rows = data.panel, {}
    column = {symbol: place for place, symbol in enumerate(panel.symbols)}
    for parent in plan.parents:
        place = column.get(plan.close.renamed.get(parent.asset, parent.asset))
        cells = [] if place is None else [float(panel.fields[name][row, place]) for name in (*PRICE_FIELDS, "volume")]
        if cells and all(math.isfinite(cell) and cell > 0 for cell in cells[:-1]):
            start, high, low, last = (round(cell * PRICE_UNITS) for cell in cells[:-1])
            shares = int(cells[-1]) if math.isfinite(cells[-1]) else 0
            rows[parent.asset] = (start, max(start, high, last), min(start, low, last), last, shares)
    return SessionPrices(plan.opens_us, plan.closes_us, rows)


def _open_session(plan: SessionPlan, data: BookData, row: int) -> PaperSession:
    """Return the opening prices of a session and the room that its volumes leave, by the plan's symbols."""
    close = plan.close
    names = {parent.asset: close.renamed.get(parent.asset, parent.asset) for parent in plan.parents}
    prices = read_prices(data.panel, row, sorted({*names.values()}), {}, {})
    opens = {name: round(prices["opens"].get(there, 0.0) * PRICE_UNITS) for name, there in names.items()}
    share = close.settings.max_volume_share
    room = {name: int(share * prices["volumes"].get(there, 0.0)) for name, there in names.items()} if share else None
    opened = {name: price for name, price in opens.items() if price > 0}
    return PaperSession(opened, room, close.settings.bps_per_side, plan.opens_us)
