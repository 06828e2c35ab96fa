"""Breakers at work: a trip acts at once, is an event of the book's run, and stays until two people clear it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from ..ledger import Event, Ledger
from ..risk import Mode
from .breakers import BREAKERS, BreakerClearing, Breakers, BreakerTrip
from .halt import Halt, HaltSwitch
from .order_record import SessionOrders
from .orders import US_PER_SECOND

TRIP_EVENT: Final = "breaker.trip"
CLEARED_EVENT: Final = "breaker.cleared"
WATCHER: Final = "circuit breaker"


class ModalGate(Protocol):
    """What the watch asks of an order gate."""

    def set_mode(self, mode: Mode) -> None:
        """Hold orders to what reduces, or stop them."""
        ...


class BreakerWatch:
    """The breakers of a book while its orders are sent.

    Parameters
    ----------
    breakers
        With the trips that stand.
    gate
        Is held to reductions by a trip that does not halt.
    switch
        Is set by a trip that halts.
    keep
        Records trips.
    mode
        What may pass anyway; a trip only makes it stricter.
    steady_us
        A clock that is never set, in microseconds.
    """

    def __init__(
        self,
        breakers: Breakers,
        gate: ModalGate,
        switch: HaltSwitch,
        keep: Callable[[Sequence[BreakerTrip]], None],
        mode: Mode,
        steady_us: Callable[[], int] = lambda: round(time.monotonic() * US_PER_SECOND),
    ) -> None:
        self._breakers, self._gate, self._switch, self._keep = breakers, gate, switch, keep
        self._steady_us = steady_us
        if mode == "active" and breakers.mode != "active":
            gate.set_mode("reducing")

    def see_equity(self, equity: int, highest: int, began: int, at_us: int) -> None:
        """Compare equity with its highest value and with that at the start of the day."""
        self._act(self._breakers.see_equity(equity, highest, began, at_us))

    def see_session(self, session: SessionOrders, at_us: int) -> None:
        """Compare the orders that the venue rejected with those sent."""
        sent = [state for state in session.orders.values() if state.passed]
        rejected = sum(report.kind == "rejected" for state in sent for report in state.reports)
        self._act(self._breakers.see_orders(len(sent), rejected, at_us))

    def see_clock(self, now_us: int) -> None:
        """Compare the clock with one that is never set."""
        self._act(self._breakers.see_clock(self._steady_us(), now_us))

    def see_failed_record(self, now_us: int) -> None:
        """Halt: an order or a report could not be written down."""
        self._act(self._breakers.see_log(1, now_us), record=False)

    def _act(self, trips: Sequence[BreakerTrip], *, record: bool = True) -> None:
        """Stop what a trip stops, and then record it: a record that fails must not stop the halt."""
        for trip in trips:
            if trip.mode == "halted":
                self._switch.set(Halt(describe_trip(trip), WATCHER, trip.at_us))
            else:
                self._gate.set_mode("reducing")
        if trips and record:
            self._keep(trips)


def describe_trip(trip: BreakerTrip) -> str:
    """Return a trip in words: the breaker, its value against its limit, and what tripped it."""
    about = f" ({trip.about})" if trip.about else ""
    actual = "not known" if trip.actual is None else trip.actual
    return f"breaker {trip.breaker}: {actual} against {trip.limit}{about}"


def record_trips(ledger: Ledger, run: str, trips: Sequence[BreakerTrip]) -> None:
    """Record trips of a book, all or none."""
    ledger.events.record_all([Event(run, TRIP_EVENT, _make_key(trip), trip.record()) for trip in trips])


def list_tripped(ledger: Ledger, run: str) -> list[BreakerTrip]:
    """Return the breakers of a book that are tripped, in the order of `BREAKERS`."""
    cleared = {event.key for event in ledger.events.of(run, CLEARED_EVENT)}
    events = [event for event in ledger.events.of(run, TRIP_EVENT) if event.key not in cleared]
    trips = {event.body["breaker"]: BreakerTrip(**event.body) for event in events}
    return [trips[name] for name in BREAKERS if name in trips]


def clear_trips(ledger: Ledger, run: str, people: tuple[str, str], reason: str, at_us: int) -> list[BreakerTrip]:
    """Record that two people cleared every tripped breaker of a book, and return what they cleared."""
    trips = list_tripped(ledger, run)
    rows = [BreakerClearing(trip, people[0], reason, people[1], at_us) for trip in trips]
    ledger.events.record_all([Event(run, CLEARED_EVENT, _make_key(row.trip), _record(row)) for row in rows])
    return trips


def _record(row: BreakerClearing) -> dict[str, Any]:
    return dict(row.record())


def _make_key(trip: BreakerTrip) -> str:
    return f"{trip.at_us:020d} {trip.breaker}"
