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
    find_beat
        Returns the guard's last sign of life, microseconds since 1970; None where no guard was started.
    """

    def __init__(  # noqa: PLR0913 - what is watched, and what stops it
        self,
        breakers: Breakers,
        gate: ModalGate,
        switch: HaltSwitch,
        keep: Callable[[Sequence[BreakerTrip]], None],
        mode: Mode,
        steady_us: Callable[[], int] = lambda: round(time.monotonic() * US_PER_SECOND),
        find_beat: Callable[[], int | None] = lambda: None,
    ) -> None:
        self._breakers, self._gate, self._switch, self._keep = breakers, gate, switch, keep
        self._steady_us, self._find_beat = steady_us, find_beat
        if mode == "active" and breakers.mode != "active":
            gate.set_mode("reducing")
        for trip in breakers.trips:
            if trip.mode == "halted":  # people clear it; whoever took the file away by hand did not
                switch.set(Halt(describe_trip(trip), WATCHER, trip.at_us))

    def see_equity(self, equity: int, highest: int, began: int, at_us: int) -> None:
        """Compare equity with its highest value and with that at the start of the day."""
        self.act(self._breakers.see_equity(equity, highest, began, at_us))

    def see_session(self, session: SessionOrders, at_us: int) -> None:
        """Compare the orders that the venue rejected with those sent."""
        self.act(self._breakers.see_orders(session.sent, session.rejected, at_us))

    def see_present(self, now_us: int) -> None:
        """Compare the clock with one that is never set, and look whether the guard lives."""
        self.act(self._breakers.see_clock(self._steady_us(), now_us))
        self.see_guard(now_us)

    def see_guard(self, now_us: int) -> None:
        """Compare the guard's last sign of life with now, where a guard was started and not ended."""
        beat_us = self._find_beat()
        if beat_us is not None:
            self.act(self._breakers.see_heartbeat(beat_us, now_us))

    def see_failed_record(self, now_us: int) -> None:
        """Halt: an order or a report could not be written down."""
        act_on_trips(self._breakers.see_log(1, now_us), self._switch, lambda trips: None, self._gate)

    def act(self, trips: Sequence[BreakerTrip]) -> None:
        """Stop what trips stop, and record them."""
        act_on_trips(trips, self._switch, self._keep, self._gate)


def act_on_trips(
    trips: Sequence[BreakerTrip],
    switch: HaltSwitch,
    keep: Callable[[Sequence[BreakerTrip]], None],
    gate: ModalGate | None = None,
) -> None:
    """Stop what trips stop, and then keep them: a record that fails must not stop the halt.

    Before there is a gate, a trip that does not halt holds the book to reductions from its next session on.
    """
    for trip in trips:
        if trip.mode == "halted":
            switch.set(Halt(describe_trip(trip), WATCHER, trip.at_us))
        elif gate is not None:
            gate.set_mode("reducing")
    if trips:
        keep(trips)


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
