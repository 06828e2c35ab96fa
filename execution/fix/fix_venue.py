"""A venue over FIX: child orders become NewOrderSingle, and what the venue says of them becomes reports.

An order that the venue missed is never sent again by itself: minutes later it is another decision. The counterparty
gets a gap in its place. To be sure, the order is cancelled; a venue that answers that it has no such order proves that
it was not sent, and the order is reported as rejected with that reason. A desk may then decide again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ..orders import ChildOrder, ExecutionReport
from .link import FixLink, Outgoing
from .message import FixMessage, format_time
from .reports import UNKNOWN_ORDER, make_cancel, make_new_order, read_report

NOT_SENT: Final = "not sent: the session was interrupted; decide again"
NO_SESSION: Final = "not sent: there is no session"
READY_SECONDS: Final = 5.0
"""How long a call waits for a session before orders count as not sent."""
UNSENT_MARK, CANCEL_MARK = "-u", "-c"


class FixVenue:
    """A `Venue` of `execution/orders.py` over a FIX session.

    The id of each child is its ClOrdID, and no id is sent twice, also after a crash. A report counts as recorded by the
    caller with the next call of `read_reports`. Until then it comes again in a later session, also where this one was
    closed: an error or Ctrl-C may have come between a report and its record.

    Parameters
    ----------
    name
        Name of the venue.
    link
        The session and its connection.
    clock_us
        Returns the time in microseconds since 1970.
    symbols
        The venue's symbol of each asset that it calls otherwise.
    """

    def __init__(
        self, name: str, link: FixLink, clock_us: Callable[[], int], symbols: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self._symbols = symbols or {}
        self._link = link
        self._clock_us = clock_us
        self._made: list[ExecutionReport] = []
        self._asked_back: set[str] = set()
        self._cancels = 0
        self._is_gone = False

    def send(self, orders: Sequence[ChildOrder]) -> None:
        """Send orders; without a session they are reported as rejected and never leave.

        Once a session was waited for in vain, no order leaves until that was reported: the last of many orders of one
        instant would leave minutes after its ruling.
        """
        # An order that has a number already is left out: what became of it is or will be reported.
        new = [order for order in orders if self._link.find(order.id) is None]
        if new and not self._is_gone and self._link.wait_until_ready(READY_SECONDS):
            now_us = self._clock_us()
            called = [replace(order, asset=self._symbols.get(order.asset, order.asset)) for order in new]
            self._link.send([Outgoing("D", make_new_order(order, now_us), order.id) for order in called])
        else:
            self._is_gone = bool(new)
            self._made += [self._make_rejected(order.id, NO_SESSION) for order in new]

    def has_sent(self, id: str) -> bool:
        """Return whether an order was handed to the session, by this process or an earlier one."""
        return self._link.find(id) is not None

    def cancel(self, ids: Sequence[str]) -> None:
        """Ask for the end of orders; what was filled before stays filled. An id that was never sent is left out."""
        orders = [order for order in map(self._link.find, ids) if order is not None]
        self._link.send([self._make_cancel(order, self._make_cancel_id(order.get(11))) for order in orders])

    def cancel_all(self) -> None:
        """Ask for the end of all orders of the session with one message."""
        now_us = self._clock_us()
        id = self._make_cancel_id("all")
        self._link.send([Outgoing("q", ((11, id), (530, "7"), (60, format_time(now_us))), id)])

    def read_reports(self, timeout_s: float) -> list[ExecutionReport]:
        """Return what the venue said since the last call, the oldest first; what that call gave is on record."""
        self._link.confirm()
        self._ask_back()
        self._is_gone = False
        reports, self._made = self._made, []
        for message in self._link.receive(0.0 if reports else timeout_s):
            report = self._read(message)
            if report is not None:
                reports.append(report)
        self._ask_back()
        return reports

    def close(self) -> None:
        """End the session."""
        self._link.close()

    def _make_cancel_id(self, id: str) -> str:
        """Return an id of a cancel that was never used."""
        while True:
            self._cancels += 1
            name = f"{id}{CANCEL_MARK}{self._cancels}"
            if self._link.find(name) is None:
                return name

    def _make_cancel(self, order: FixMessage, id: str) -> Outgoing:
        return Outgoing("F", make_cancel(order, id, self._clock_us()), id)

    def _ask_back(self) -> None:
        """Cancel each order that was withdrawn, once: the answer says whether the venue has it after all."""
        cancels = []
        for note in sorted(self._link.withdrawn - self._asked_back):
            self._asked_back.add(note)
            order, mark = self._link.find(note), f"{note}{UNSENT_MARK}"
            if order is not None and order.kind == "D" and self._link.find(mark) is None:
                cancels.append(self._make_cancel(order, mark))
        if cancels:
            self._link.send(cancels)

    def _read(self, message: FixMessage) -> ExecutionReport | None:
        """Return what a message says of an order; None where it says nothing of one."""
        if message.kind == "8":
            return read_report(message)
        if message.kind == "9":
            order = message.get(41)
            missing = message.get(102) == UNKNOWN_ORDER and order in self._link.withdrawn
            return self._make_rejected(order, NOT_SENT) if missing else None
        if message.kind in ("3", "j"):
            note = message.get(379) or self._link.find_number(message.number(45))
            order_message = self._link.find(note) if note else None
            if order_message is not None and order_message.kind == "D":
                return self._make_rejected(note, message.get(58, "no reason given"))
        return None

    def _make_rejected(self, order: str, reason: str) -> ExecutionReport:
        return ExecutionReport(order, "rejected", f"{order}-rejected", self._clock_us(), reason=reason)
