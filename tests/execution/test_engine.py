"""The order engine: halt file and record come before the venue; cancels; reports that cannot be."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest

from alphaloom.execution import (
    ALL_ORDERS,
    BreakerLimits,
    Breakers,
    BreakerTrip,
    BreakerWatch,
    ChildOrder,
    ExecutionReport,
    Halt,
    HaltSwitch,
    OrderEngine,
    OrderRecord,
    PaperVenue,
    PresentTime,
    SessionOrders,
)
from alphaloom.execution.orders import ReportKind
from alphaloom.ledger import Ledger, LedgerConflict

from .approvals import DAY
from .sessions import CLOSE_US, OPEN_US, RUN, STEP_US, make_children, make_engine, make_gate, make_paper


class Watched(PaperVenue):
    """The paper venue, which calls back before each order is filled."""

    def __init__(self, venue: PaperVenue, before: Callable[[ChildOrder], None]) -> None:
        self.__dict__.update(venue.__dict__)
        self.before = before
        self.sent: list[str] = []

    def send(self, orders: Sequence[ChildOrder]) -> None:
        for order in orders:
            self.before(order)
            self.sent.append(order.id)
        super().send(orders)


class Silent:
    """A venue that takes orders, and reports what a test puts in."""

    name = "silent"

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.cancelled: list[str] = []
        self.reports: list[ExecutionReport] = []

    def send(self, orders: Sequence[ChildOrder]) -> None:
        self.sent += [order.id for order in orders]

    def cancel(self, ids: Sequence[str]) -> None:
        self.cancelled += ids
        self.reports += [ExecutionReport(one, "cancelled", f"c-{one}", OPEN_US) for one in ids]

    def read_reports(self, timeout_s: float) -> Sequence[ExecutionReport]:
        reports, self.reports = self.reports, []
        return reports

    def close(self) -> None:
        """Do nothing."""


def test_an_order_is_on_record_with_its_ruling_before_it_is_sent(ledger: Ledger, switch: HaltSwitch) -> None:
    children = make_children(9, 3)
    record = OrderRecord(ledger, RUN, DAY)

    def look(order: ChildOrder) -> None:
        assert record.read().orders[order.id].passed

    venue = Watched(make_paper(children), look)
    session = make_engine(ledger, venue, make_gate(children, order_value_cap=110), switch).run(children, CLOSE_US)
    refused = [name for name, state in session.orders.items() if not state.passed]
    assert [session.orders[name].refusals for name in refused] == [("order_value",)] * len(refused)
    assert refused
    assert {*venue.sent} == session.orders.keys() - {*refused}
    assert session.done == {"orders": 9, "filled": 9 - len(refused)}
    again = Watched(make_paper(children), look)
    assert make_engine(ledger, again, make_gate(children), switch).run(children, CLOSE_US).done == session.done
    assert again.sent == []


@pytest.mark.parametrize("place", [0, 1, 2, 3, 5])
def test_no_order_is_sent_after_the_halt_file(ledger: Ledger, switch: HaltSwitch, place: int) -> None:
    children = make_children(6, 3)
    halt = Halt("a test", "ann", OPEN_US)

    def stop(order: ChildOrder) -> None:
        assert not switch.is_set() or order.id == children[place].id
        if order.id == children[place].id:
            switch.set(halt)

    venue = Watched(make_paper(children), stop)
    session = make_engine(ledger, venue, make_gate(children), switch).run(children, CLOSE_US)
    assert venue.sent == [order.id for order in children[: place + 1]]
    if place < 5:
        assert (session.done, session.halts[0]["reason"]) == (None, "a test")
    unsent = [state for state in session.orders.values() if state.order.id not in venue.sent]
    assert all(state.reports[0].reason == "not sent: a test" for state in unsent)
    switch.release(Halt("over", "ann", OPEN_US + 1), "bob")
    ended = make_engine(ledger, make_paper(children), make_gate(children), switch).run(children, CLOSE_US)
    assert ended.done == {"orders": 6, "filled": 6 - len(unsent)}


def test_a_halt_cancels_what_is_open_and_a_cancel_ends_what_was_never_sent(ledger: Ledger, switch: HaltSwitch) -> None:
    children = make_children(4, 2)
    record = OrderRecord(ledger, RUN, DAY)

    class Halting(Silent):
        def send(self, orders: Sequence[ChildOrder]) -> None:
            super().send(orders)
            if len(self.sent) == 2:
                switch.set(Halt("a test", "ann", OPEN_US))

    venue = Halting()
    session = make_engine(ledger, venue, make_gate(children), switch).run(children, CLOSE_US)
    assert session.done is None
    assert venue.cancelled == venue.sent == [order.id for order in children[:2]]
    assert record.record_cancel(ALL_ORDERS, "ann", "now")
    assert not record.record_cancel(ALL_ORDERS, "bob", "later")
    ended = make_engine(ledger, Silent(), make_gate(children), switch).run(children, CLOSE_US)
    assert ended.done == {"orders": 4, "filled": 0}
    assert [state.ruling.get("by") for state in ended.orders.values()] == [None, None, "ann", "ann"]


@pytest.mark.parametrize("wrong", ["stray", "overfill"])
def test_a_report_that_cannot_be_halts_the_workspace(ledger: Ledger, switch: HaltSwitch, wrong: str) -> None:
    children = make_children(3, 3)
    order = "nobody-1" if wrong == "stray" else children[0].id

    class Wrong(Silent):
        def send(self, orders: Sequence[ChildOrder]) -> None:
            super().send(orders)
            self.reports = [ExecutionReport(order, "filled", "x", OPEN_US, children[0].shares + 1, 1, 0)]

    venue = Wrong()
    session = make_engine(ledger, venue, make_gate(children), switch).run(children, CLOSE_US)
    halt = switch.read()
    assert halt is not None
    assert "silent reported" in halt.reason
    assert session.done is None
    assert len(session.orders) < 3
    switch.release(Halt("asked the venue", "ann", OPEN_US + 1), "bob")
    ended = make_engine(ledger, make_paper(children), make_gate(children), switch).run(children, CLOSE_US)
    assert ended.done is not None
    assert len(ended.orders) == 3


def test_one_session_has_one_plan(ledger: Ledger) -> None:
    record = OrderRecord(ledger, RUN, DAY)
    record.record_plan({"parents": []})
    record.record_plan({"parents": []})
    with pytest.raises(LedgerConflict):
        record.record_plan({"parents": [1]})


class WallClock:
    """The clock of a session that happens now; waiting is a jump, no longer than the engine allows."""

    def __init__(self, at_us: int) -> None:
        self.at_us = at_us

    def now_us(self) -> int:
        return self.at_us

    def wait_until(self, at_us: int) -> None:
        self.at_us = max(self.at_us, min(at_us, self.at_us + STEP_US // 10))


def test_after_an_outage_overdue_orders_are_no_closer_together_than_planned(ledger: Ledger, switch: HaltSwitch) -> None:
    children, record = make_children(5, 5), OrderRecord(ledger, RUN, DAY)

    def die(order: ChildOrder) -> None:
        if order is children[1]:
            raise KeyboardInterrupt

    def make(before: Callable[[ChildOrder], None], at_us: int) -> OrderEngine:
        return OrderEngine(record, make_gate(children), Watched(make_paper(children), before), switch, WallClock(at_us))

    with pytest.raises(KeyboardInterrupt):
        make(die, OPEN_US).run(children, CLOSE_US)
    began_us = OPEN_US + 10 * STEP_US
    assert make(lambda order: None, began_us).run(children, CLOSE_US).done == {"orders": 5, "filled": 5}
    sent = [state.at_us for state in record.read().orders.values()]
    assert sent == [OPEN_US, OPEN_US + STEP_US, began_us, began_us + STEP_US, began_us + 2 * STEP_US]


@pytest.mark.parametrize("wrong", ["stray", "refused", "no price", "no shares", "corrected"])
def test_what_cannot_be_halts_ends_no_session_and_stops_no_later_one(
    ledger: Ledger, switch: HaltSwitch, wrong: str
) -> None:
    """It comes with the last order: the session has no other reason to go on."""
    children = make_children(3, 3)
    refused, last = children[0].id, children[-1].id
    reports = {
        "stray": ExecutionReport("nobody-1", "filled", "x", OPEN_US, 5, 100),
        "refused": ExecutionReport(refused, "filled", "x", OPEN_US, 5, 100),
        "no price": ExecutionReport(last, "filled", "x", OPEN_US, 5, 0),
        "no shares": ExecutionReport(last, "filled", "x", OPEN_US, 0, 100),
        "corrected": ExecutionReport(last, "corrected", "x", OPEN_US, reason="fill y was taken back"),
    }

    class Wrong(Silent):
        def send(self, orders: Sequence[ChildOrder]) -> None:
            super().send(orders)
            self.reports += [ExecutionReport(one.id, "expired", f"e-{one.id}", OPEN_US) for one in orders]
            self.reports += [reports[wrong]] if orders[0].id == last else []

    def run() -> SessionOrders:
        gate = make_gate(children)
        gate.quote(children[0].asset, 10**12, OPEN_US)
        return make_engine(ledger, Wrong(), gate, switch).run(children, CLOSE_US)

    first = run()
    assert [first.orders[order.id].passed for order in children] == [False, True, True]
    halt = switch.read()
    assert halt is not None
    assert "silent reported" in halt.reason
    assert first.done is None
    assert run().done is None  # still halted
    switch.release(Halt("asked the venue", "ann", OPEN_US + 1), "bob")
    assert run().done == {"orders": 3, "filled": int(wrong in ("refused", "no price"))}
    assert not switch.is_set()


def test_an_order_that_a_venue_answers_for_after_all_is_no_longer_unknown(ledger: Ledger, switch: HaltSwitch) -> None:
    """A person who cancels ends it at the venue, and not here alone."""
    children, record = make_children(1), OrderRecord(ledger, RUN, DAY)

    class Late(Silent):
        """It says late that it has the order, and ends nothing."""

        def __init__(self, *kinds: ReportKind) -> None:
            super().__init__()
            self.reports = [ExecutionReport(children[0].id, one, one, OPEN_US) for one in kinds]

        def cancel(self, ids: Sequence[str]) -> None:
            self.cancelled += ids

    def run(*kinds: ReportKind) -> SessionOrders:
        return make_engine(ledger, Late(*kinds), make_gate(children), switch).run(children, CLOSE_US)

    record.record_orders([(children[0], {"passed": True, "refusals": []}, OPEN_US)])
    assert run().orders[children[0].id].unknown
    assert not run("accepted").orders[children[0].id].unknown
    record.record_cancel(ALL_ORDERS, "ann", "now")
    assert run().done is None
    assert run("cancelled").done == {"orders": 1, "filled": 0}


def test_a_session_that_is_over_is_ended_and_nothing_of_it_is_sent(ledger: Ledger, switch: HaltSwitch) -> None:
    """Its reports may be waiting; the market is open again, on another day; the venue has forgotten an order."""
    children, record = make_children(4, 4), OrderRecord(ledger, RUN, DAY)
    filled, forgotten = (order.id for order in children[:2])
    next_day_us = OPEN_US + 24 * 3_600_000_000 + STEP_US

    class Closed(Silent):
        def cancel(self, ids: Sequence[str]) -> None:
            self.cancelled += ids

    def run(*reports: ExecutionReport) -> tuple[SessionOrders, Closed]:
        venue, gate = Closed(), make_gate(children, max_quote_age_s=10**6)
        venue.reports = [*reports]
        engine = OrderEngine(record, gate, venue, switch, WallClock(next_day_us))
        return engine.run(children, CLOSE_US), venue

    record.record_orders([(order, {"passed": True, "refusals": []}, OPEN_US) for order in children[:2]])
    record.record_reports([ExecutionReport(one, "accepted", f"a-{one}", OPEN_US) for one in (filled, forgotten)])
    session, venue = run(ExecutionReport(filled, "filled", "f", OPEN_US, children[0].shares, 100))
    assert [one.status for one in session.orders.values()] == ["filled", "accepted", "refused", "refused"]
    assert {one.refusals for one in session.orders.values() if not one.passed} == {("session_over",)}
    assert (venue.sent, venue.cancelled, session.done) == ([], [forgotten], None)
    record.record_cancel(forgotten, "ann", "now")
    session, venue = run()
    assert (venue.sent, venue.cancelled) == ([], [forgotten])
    assert session.done == {"orders": 4, "filled": 1}


def test_the_clock_and_the_guard_are_watched_while_a_session_waits(ledger: Ledger, switch: HaltSwitch) -> None:
    children, now, trips = make_children(1), [OPEN_US - STEP_US], list[BreakerTrip]()

    def sleep(seconds: float) -> None:
        now[0] += 2_000_000  # while the clock that is never set goes on by 200 ms

    steady, gate = itertools.count(0, 200_000), make_gate(children)
    watch = BreakerWatch(Breakers(BreakerLimits()), gate, switch, trips.extend, "active", lambda: next(steady))
    clock = PresentTime(lambda: now[0], sleep)
    engine = OrderEngine(OrderRecord(ledger, RUN, DAY), gate, Silent(), switch, clock, watch=watch)
    assert engine.run(children, CLOSE_US).orders == {}
    assert [trip.breaker for trip in trips] == ["clock"]
    assert now[0] < OPEN_US


def test_what_came_since_is_added_to_what_was_read_and_a_halt_is_over_once_orders_go_on(
    ledger: Ledger, switch: HaltSwitch
) -> None:
    children, record = make_children(4, 2), OrderRecord(ledger, RUN, DAY)
    known = record.read()

    class Halting(Silent):
        def send(self, orders: Sequence[ChildOrder]) -> None:
            super().send(orders)
            switch.set(Halt("a test", "ann", OPEN_US))

    make_engine(ledger, Halting(), make_gate(children), switch).run(children, CLOSE_US)
    assert record.read(known) is known
    assert known == record.read()
    assert known.is_halted
    switch.release(Halt("over", "ann", OPEN_US + 1), "bob")
    make_engine(ledger, make_paper(children), make_gate(children), switch).run(children, CLOSE_US)
    assert record.read(known) == record.read()
    assert known.done is not None
    assert (len(known.halts), known.is_halted) == (1, False)
    later = OrderRecord(ledger, RUN, DAY + timedelta(days=1))
    later.record_plan({"parents": []})
    assert record.read(known) == record.read()
    assert later.read().orders == {}


def test_a_later_process_counts_the_cancels_of_an_earlier_one(ledger: Ledger, switch: HaltSwitch) -> None:
    children, counts = make_children(4, 2), list[dict[str, int]]()

    class Halting(Silent):
        def send(self, orders: Sequence[ChildOrder]) -> None:
            super().send(orders)
            if len(self.sent) == 2:
                switch.set(Halt("a test", "ann", OPEN_US))

    for venue in (Halting(), Silent()):
        gate = make_gate(children)
        make_engine(ledger, venue, gate, switch).run(children, CLOSE_US)
        counts.append(gate.report_rates()["messages"])
    assert [one["day"] for one in counts] == [4, 4]  # two orders and their cancels, and nothing since
