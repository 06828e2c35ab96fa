"""The orders of a book's session in the ledger: plan, orders with their rulings, reports, cancels, and the end.

All are events of the book's run, keyed by the session and an id, so one session is read without the others. Orders of
one instant are recorded in one transaction before the first of them is sent. Nothing is changed: the state of an
order is what its events say, the oldest first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final, Literal

from ..ledger import Event, Ledger, LedgerConflict
from .halt import Halt
from .orders import CHILD_FIELDS, REPORT_FIELDS, ChildOrder, ExecutionReport

ORDER_PLAN_EVENT: Final = "order.plan"
RULED_EVENT: Final = "order.ruled"
REPORT_EVENT: Final = "order.report"
UNKNOWN_EVENT: Final = "order.unknown"
CANCEL_EVENT: Final = "order.cancel"
HALT_EVENT: Final = "order.halt"
BREAK_EVENT: Final = "order.break"
DONE_EVENT: Final = "order.done"
MEASURED_EVENT: Final = "order.measured"
SESSION_EVENTS: Final = (
    ORDER_PLAN_EVENT, RULED_EVENT, REPORT_EVENT, UNKNOWN_EVENT, CANCEL_EVENT, HALT_EVENT, BREAK_EVENT, DONE_EVENT,
    MEASURED_EVENT,
)  # fmt: skip  # a table
ALL_ORDERS: Final = "all"
"""Names every order of a session in a request to cancel."""
OrderStatus = Literal["refused", "sent", "accepted", "partly filled", "filled", "cancelled", "rejected", "expired"]


@dataclass
class OrderState:
    """One order as the record has it.

    Attributes
    ----------
    order
        The child order.
    ruling
        What the order gate said, as recorded.
    at_us
        When the gate was asked.
    reports
        What the venue said, the oldest first.
    unknown
        Whether the process that sent it ended before a report, and none has come since.
    """

    order: ChildOrder
    ruling: Mapping[str, Any]
    at_us: int
    reports: list[ExecutionReport] = field(default_factory=list)
    unknown: bool = False

    @property
    def passed(self) -> bool:
        """Return whether the gate let it pass."""
        return bool(self.ruling["passed"])

    @property
    def filled_shares(self) -> int:
        """Return the shares that were filled."""
        return sum(report.shares for report in self.reports)

    @property
    def filled_e4(self) -> int:
        """Return what the fills are worth at their prices, in 1e-4 of the currency."""
        return sum(report.shares * report.price_e4 for report in self.reports)

    @property
    def cost_e4(self) -> int:
        """Return commissions and fees, in 1e-4 of the currency."""
        return sum(report.cost_e4 for report in self.reports)

    @property
    def status(self) -> OrderStatus:
        """Return where the order is."""
        if not self.passed:
            return "refused"
        if self.filled_shares >= self.order.shares:
            return "filled"
        for report in self.reports:
            if report.kind == "cancelled" or report.kind == "rejected" or report.kind == "expired":
                return report.kind
        return "partly filled" if self.filled_shares else "accepted" if self.reports else "sent"

    @property
    def is_open(self) -> bool:
        """Return whether shares of it may still be filled."""
        return self.status in ("sent", "accepted", "partly filled")

    @property
    def is_rejected(self) -> bool:
        """Return whether the venue rejected it."""
        return any(report.kind == "rejected" for report in self.reports)

    @property
    def refusals(self) -> tuple[str, ...]:
        """Return the rules that refused it."""
        return tuple(self.ruling["refusals"])


@dataclass
class SessionOrders:
    """What is on record of one session of a book.

    Attributes
    ----------
    plan
        What was planned; None where nothing was.
    orders
        By id, in the order in which they were recorded.
    cancels
        Who asked for the end of which orders: of an order, a parent, or `ALL_ORDERS`.
    halts
        Times at which the session was stopped by the halt file, with the reasons.
    breaks
        Differences between these records and the venue's drop copy.
    trail
        Orders and reports in the order in which they were recorded.
    strays
        Reports of orders that are not on record.
    sent, rejected
        Orders that the gate let pass, and those of them that the venue rejected.
    is_halted
        Whether the halt file was the last that happened: no order and no report came after it.
    place
        Up to where in the record this was read.
    done
        The end; None while orders may still be sent or filled.
    measured
        What each parent cost, once all ended.
    """

    plan: Mapping[str, Any] | None = None
    orders: dict[str, OrderState] = field(default_factory=dict)
    cancels: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    halts: list[Mapping[str, Any]] = field(default_factory=list)
    breaks: list[Mapping[str, Any]] = field(default_factory=list)
    trail: list[OrderState | ExecutionReport] = field(default_factory=list)
    strays: list[ExecutionReport] = field(default_factory=list)
    done: Mapping[str, Any] | None = None
    measured: Mapping[str, Any] | None = None
    sent: int = field(default=0, init=False)
    rejected: int = field(default=0, init=False)
    is_halted: bool = field(default=False, init=False)
    place: int = field(default=0, init=False)
    _open: dict[str, OrderState] = field(default_factory=dict, init=False, repr=False)
    _seen: set[tuple[str, str]] = field(default_factory=set, init=False, repr=False)

    def take_order(self, state: OrderState) -> None:
        """Add an order."""
        self.orders[state.order.id] = state
        self.trail.append(state)
        self.is_halted = False
        if state.passed:
            self.sent += 1
            self._open[state.order.id] = state

    def take_report(self, report: ExecutionReport) -> None:
        """Add a report to its order."""
        self.trail.append(report)
        self.is_halted = False
        self._seen.add((report.order, report.exec_id))
        state = self.orders.get(report.order)
        if state is None:
            self.strays.append(report)
            return
        was_rejected = state.is_rejected
        state.reports.append(report)
        state.unknown = False  # the venue has it, whatever was thought before
        self.rejected += state.passed and state.is_rejected and not was_rejected
        if not state.is_open:
            self._open.pop(report.order, None)

    def has_report(self, report: ExecutionReport) -> bool:
        """Return whether a report is here: one that comes twice counts once."""
        return (report.order, report.exec_id) in self._seen

    def find_cancel(self, order: ChildOrder) -> Mapping[str, Any] | None:
        """Return who asked for the end of an order; None where nobody did."""
        return next((self.cancels[name] for name in (order.id, order.parent, ALL_ORDERS) if name in self.cancels), None)

    def list_open(self) -> list[OrderState]:
        """Return the orders of which shares may still be filled, in the order in which they were recorded."""
        return [*self._open.values()]


class OrderRecord:
    """The events of one session of a book.

    Parameters
    ----------
    ledger, run
        The record, and the id of the book's run.
    session
        The day.
    """

    def __init__(self, ledger: Ledger, run: str, session: date) -> None:
        self._ledger = ledger
        self._run = run
        self._session = session.isoformat()

    def record_plan(self, plan: Mapping[str, Any]) -> None:
        """Record what is planned; another plan for the session is refused."""
        self._add([Event(self._run, ORDER_PLAN_EVENT, self._session, dict(plan))])

    def record_orders(self, rows: Iterable[tuple[ChildOrder, Mapping[str, Any], int]]) -> None:
        """Record orders with their rulings and the time, all or none, before the first of them is sent."""
        self._add(
            [
                Event(
                    self._run,
                    RULED_EVENT,
                    f"{self._session} {order.id}",
                    {"order": order.record(), "ruling": dict(ruling), "at_us": at},
                )
                for order, ruling, at in rows
            ]
        )

    def record_reports(self, reports: Iterable[ExecutionReport]) -> None:
        """Record reports, all or none; one that is there already changes nothing."""
        self._add(
            [
                Event(self._run, REPORT_EVENT, f"{self._session} {one.order} {one.exec_id}", one.record())
                for one in reports
            ]
        )

    def record_unknown(self, orders: Iterable[ChildOrder], why: str) -> None:
        """Record that nobody can say what became of orders."""
        key = f"{self._session} "
        self._add([Event(self._run, UNKNOWN_EVENT, key + one.id, {"order": one.id, "why": why}) for one in orders])

    def record_cancel(self, name: str, by: str, at: str) -> bool:
        """Record that a person asks for the end of an order, a parent or all; return whether that is new."""
        body = {"name": name, "by": by, "at": at}
        try:
            return self._ledger.events.record(self._run, CANCEL_EVENT, f"{self._session} {name}", body)
        except LedgerConflict:
            return False  # the first request stands

    def record_halt(self, number: int, halt: Halt, at_us: int) -> Mapping[str, Any]:
        """Record that the halt file stopped the session, and return the record."""
        body = {"reason": halt.reason, "by": halt.by, "halted_us": halt.at_us, "at_us": at_us}
        self._ledger.events.record(self._run, HALT_EVENT, f"{self._session} {number:06d}", body)
        return body

    def record_breaks(self, breaks: Iterable[Mapping[str, Any]]) -> None:
        """Record differences from the venue's drop copy, each an object with `order`, `exec_id` and `kind`."""
        key = f"{self._session} "
        self._add(
            [
                Event(self._run, BREAK_EVENT, f"{key}{one['order']} {one['exec_id']} {one['kind']}", dict(one))
                for one in breaks
            ]
        )

    def record_done(self, orders: int, filled: int) -> None:
        """Record that every order has ended."""
        self._ledger.events.record(self._run, DONE_EVENT, self._session, {"orders": orders, "filled": filled})

    def record_measured(self, measured: Mapping[str, Any]) -> None:
        """Record what the parents of the session cost; what is there already stays."""
        try:
            self._ledger.events.record(self._run, MEASURED_EVENT, self._session, measured)
        except LedgerConflict:
            return  # measured on the panel with which the session was executed

    def read(self, known: SessionOrders | None = None) -> SessionOrders:
        """Return what is on record of the session; what came since is added to `known`, an earlier answer."""
        events = self._ledger.events
        end = events.end() - 1
        if known is not None and known.place <= end:
            for place, event in events.since(self._run, known.place):
                if event.kind in SESSION_EVENTS and event.key.partition(" ")[0] == self._session:
                    _take(known, event)
                known.place = place
            return known
        found = SessionOrders()
        found.place = end
        marks = ", ".join("?" * len(SESSION_EVENTS))
        condition = f"run = ? AND kind IN ({marks}) AND key >= ? AND key < ? AND seq <= {end}"
        values = (self._run, *SESSION_EVENTS, self._session, f"{self._session}!")  # "!" sorts after the blank of a key
        for event in events.find(condition, *values, order="seq"):
            _take(found, event)
        return found

    def read_cancels(self) -> dict[str, Mapping[str, Any]]:
        """Return the requests to cancel alone."""
        condition = "run = ? AND kind = ? AND key >= ? AND key < ?"
        values = (self._run, CANCEL_EVENT, f"{self._session} ", f"{self._session}!")
        return {event.body["name"]: event.body for event in self._ledger.events.find(condition, *values)}

    def _add(self, events: Sequence[Event]) -> None:
        if events:
            self._ledger.events.record_all(events)


def list_planned(ledger: Ledger, run: str) -> list[str]:
    """Return the ISO days for which a book's orders were planned, the oldest first."""
    return [event.key for event in ledger.events.of(run, ORDER_PLAN_EVENT)]


def _take(found: SessionOrders, event: Event) -> None:
    body = event.body
    if event.kind == ORDER_PLAN_EVENT:
        found.plan = body
    elif event.kind == RULED_EVENT:
        order = ChildOrder(**{name: body["order"][name] for name in CHILD_FIELDS})
        found.take_order(OrderState(order, body["ruling"], body["at_us"]))
    elif event.kind == REPORT_EVENT:
        found.take_report(ExecutionReport(**{name: body[name] for name in REPORT_FIELDS}))
    elif event.kind == UNKNOWN_EVENT:
        found.orders[body["order"]].unknown = True
    elif event.kind == CANCEL_EVENT:
        found.cancels[body["name"]] = body
    elif event.kind == HALT_EVENT:
        found.halts.append(body)
        found.is_halted = True
    elif event.kind == BREAK_EVENT:
        found.breaks.append(body)
    elif event.kind == MEASURED_EVENT:
        found.measured = body
    else:
        found.done = body
