"""The order engine: each order meets the halt file and the order gate, is recorded, and is then sent, once.

A process may end at any point (`kill -9`). The next one reads the record: an order that is there is never sent again.
If it has no end, a venue that can answer for it is asked; of another venue's orders without a report it is recorded
that nobody knows what became of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, Protocol, runtime_checkable

from .breaker_watch import BreakerWatch
from .halt import Halt, HaltSwitch
from .order_record import OrderRecord, OrderState, SessionOrders
from .orders import US_PER_SECOND, ChildOrder, ExecutionReport, Venue

READ_S: Final = 0.2
"""Seconds for which the engine waits for reports before it looks at the halt file and the cancels again."""
GRACE_US: Final = 5 * US_PER_SECOND
"""How long reports of cancelled orders, or of an earlier process's orders, are waited for."""
SETTLING_ROUNDS: Final = 25
"""Times that a simulated clock waits so long for the ends of orders before it moves on."""
ENGINE: Final = "order engine"
ENDED_HERE: Final = "-ended"
NO_SHARE: Final = "participation"
LATE: Final = "session_over"
NO_TRADE: Final = "no_trade"
HOLD_US: Final = 60 * US_PER_SECOND
"""After which an order is asked again for which the market had not traded enough."""
AT_US: Final = attrgetter("at_us")
UNSENT: Final = "not sent: the process that was to send it ended before"
NO_REPORT: Final = "the process that sent it ended before a report came"


class OrderVerdict(Protocol):
    """What a gate says of one order."""

    @property
    def passed(self) -> bool:
        """Return whether it may be sent."""
        ...

    def record(self) -> Mapping[str, Any]:
        """Return it as a JSON-able object, with the keys `passed` and `refusals`."""
        ...


class CheckingGate(Protocol):
    """What the engine asks of an order gate."""

    def check(self, order: ChildOrder, now_us: int) -> OrderVerdict:
        """Rule on an order; one that passes counts at once."""
        ...

    def adopt(self, order: ChildOrder, at_us: int) -> None:
        """Count an order that passed in a process that has ended."""
        ...

    def quote(self, asset: str, price_e4: int, at_us: int) -> None:
        """Take the last price of an asset, in 1e-4, with the time at which it was known."""
        ...

    def check_cancel(self, order_id: str, now_us: int) -> OrderVerdict:
        """Count a cancel; it is never refused."""
        ...

    def apply(self, report: ExecutionReport) -> None:
        """Take in what a venue reported."""
        ...


@runtime_checkable
class RecallingVenue(Venue, Protocol):
    """A venue that answers for orders of an earlier process."""

    def recall(self, orders: Sequence[ChildOrder], traded: Mapping[str, int]) -> None:
        """Report on these orders; `traded` are the shares of each symbol that were filled of all others."""
        ...


@runtime_checkable
class JournaledVenue(Venue, Protocol):
    """A venue of whose session this machine keeps what was handed to it, before it leaves."""

    def has_sent(self, id: str) -> bool:
        """Return whether an order was handed to the session, by this process or an earlier one."""
        ...


@runtime_checkable
class SettlingVenue(Venue, Protocol):
    """A venue with a second account of what was filled, which must agree before a session counts as done."""

    def settle(self) -> bool:
        """Compare, and return whether no new difference was found; one has halted trading already."""
        ...


@runtime_checkable
class SimulatingVenue(Venue, Protocol):
    """A venue of this process whose market moves with time and with our orders."""

    def replay(self, orders: Sequence[tuple[ChildOrder, int]]) -> None:
        """Trade all that an earlier process sent, each at its time, and report it again under the same ids."""
        ...

    def find_room(self, asset: str, at_us: int) -> int | None:
        """Return the shares that the schedule's share of the volume so far leaves; None: the asset does not trade."""
        ...

    def list_prices(self, assets: Collection[str], at_us: int) -> Mapping[str, int]:
        """Return the price of each asset at a time, in 1e-4; none of one that does not trade."""
        ...


class Timeline(Protocol):
    """The clock of a session."""

    def now_us(self) -> int:
        """Return the present, microseconds since 1970 in UTC."""
        ...

    def wait_until(self, at_us: int) -> None:
        """Return at a time, or before it: the engine asks again."""
        ...


class SimulatedTime:
    """A clock that is moved by waiting: for venues that fill from recorded prices."""

    def __init__(self, at_us: int) -> None:
        self._at_us = at_us

    def now_us(self) -> int:
        """Return the time to which the last wait led."""
        return self._at_us

    def wait_until(self, at_us: int) -> None:
        """Move to a time; never back."""
        self._at_us = max(self._at_us, at_us)


class PresentTime:
    """The clock of a session that happens now.

    Parameters
    ----------
    clock_us
        Returns the time in microseconds since 1970.
    sleep
        Waits for so many seconds.
    """

    def __init__(self, clock_us: Callable[[], int], sleep: Callable[[float], None]) -> None:
        self._clock_us, self._sleep = clock_us, sleep

    def now_us(self) -> int:
        """Return the present."""
        return self._clock_us()

    def wait_until(self, at_us: int) -> None:
        """Wait for a time, but not long: the halt file and requests of people are looked at in between."""
        self._sleep(min(max(at_us - self._clock_us(), 0) / US_PER_SECOND, READ_S))


class OrderEngine:
    """Sends the orders of one session.

    Parameters
    ----------
    record
        The session in the ledger.
    gate
        The order gate, without any order.
    venue
        Where orders go.
    halt
        The halt file of the workspace.
    time
        The clock.
    told
        Is called with an order whenever its state has changed.
    watch
        The circuit breakers.
    """

    def __init__(  # noqa: PLR0913 - the parts of a session
        self,
        record: OrderRecord,
        gate: CheckingGate,
        venue: Venue,
        halt: HaltSwitch,
        time: Timeline,
        told: Callable[[OrderState], None] = lambda state: None,
        watch: BreakerWatch | None = None,
    ) -> None:
        self._watch = watch
        self._record = record
        self._gate = gate
        self._venue = venue
        self._halt = halt
        self._time = time
        self._told = told
        self._session = SessionOrders()
        self._asked: set[str] = set()
        self._until_us, self._is_late = 0, False

    def run(self, children: Sequence[ChildOrder], until_us: int) -> SessionOrders:
        """Send the orders that are not on record yet, each when it is due, and wait for their ends.

        Parameters
        ----------
        children
            All orders of the session.
        until_us
            The end of the session, microseconds since 1970 in UTC: what is open then is cancelled.

        Returns
        -------
        SessionOrders
            What is on record then. It is `done` if every order has ended; else the halt file stopped it, or orders are
            open or unknown, and the same call goes on.
        """
        self._session = self._record.read()
        if self._session.done is not None:
            return self._session
        self._until_us, self._is_late = until_us, self._time.now_us() > until_us
        self._see_present()
        self._restore()
        self._settle_earlier()
        self._refuse_cancelled(children)
        halt = self._finish(self._send_all(children, until_us), until_us)
        while self._read(0.0):
            pass  # a venue counts a report as recorded when it is asked for the next ones
        agrees = not isinstance(self._venue, SettlingVenue) or self._venue.settle()
        state = self._session
        reports = [one for one in state.trail if isinstance(one, ExecutionReport)]
        if not agrees or any(_find_wrong(state.orders.get(one.order), one) for one in reports):
            halt = halt or self._halt.read()
            agrees = agrees and halt is None  # two people let the session end
        if halt is not None:
            self._record.record_halt(len(state.halts), halt, self._time.now_us())
        if agrees and not state.list_open() and all(order.id in state.orders for order in children):
            filled = sum(one.filled_shares > 0 for one in state.orders.values())
            self._record.record_done(len(state.orders), filled)
        self._session = self._record.read()
        return self._session

    def _send_all(self, children: Sequence[ChildOrder], until_us: int) -> Halt | None:
        """Send the orders that are not on record, and return the halt that ends it.

        An order for which the market has not traded enough is asked again a little later.

        At a venue outside this process two instants are never closer together than planned: after an outage the orders
        that are overdue do not leave at once, since together they would be more of the market's volume than their
        schedule allows. What this puts off until the close is refused.
        """
        before, held = None, list[ChildOrder]()
        waiting = deque((at_us, [*due]) for at_us, due in groupby(sorted(children, key=AT_US), key=AT_US))
        while waiting or held:
            next_us = waiting[0][0] if waiting else until_us
            due, ready_us = list[ChildOrder](), self._time.now_us() + HOLD_US
            if not held or ready_us >= min(next_us, until_us):
                if not waiting:
                    break
                next_us, due = waiting.popleft()
                ready_us = next_us if before is None else max(next_us, min(before[1] + next_us - before[0], until_us))
            batch = [*held, *(order for order in due if order.id not in self._session.orders)]
            if batch:
                if (halt := self._wait(ready_us)) is not None:
                    return halt
                batch, held = self._hold(batch)
                if batch and (halt := self._send(batch)) is not None:
                    return halt
            if due and not isinstance(self._venue, SimulatingVenue):
                sent = [self._session.orders[order.id].at_us for order in due if order.id in self._session.orders]
                before = next_us, max(sent, default=self._time.now_us())
        self._refuse_held(held)
        return None

    def _hold(self, batch: Sequence[ChildOrder]) -> tuple[list[ChildOrder], list[ChildOrder]]:
        """Return the orders that may leave now, and those for which the market must trade more first.

        A venue that shows no volume holds nothing back. Of one asset one order leaves at a time, the earliest.
        """
        if not isinstance(self._venue, SimulatingVenue):
            return [*batch], []
        now, going, held = self._time.now_us(), list[ChildOrder](), list[ChildOrder]()
        rooms = {asset: self._venue.find_room(asset, now) for asset in {order.asset for order in batch}}
        for order in batch:
            room = rooms[order.asset]
            if room is None or order.shares <= room or self._session.find_cancel(order) is not None:
                going.append(order)
            else:
                held.append(order)
            rooms[order.asset] = None if room is None else 0
        return going, held

    def _refuse_held(self, held: Sequence[ChildOrder]) -> None:
        """End the orders that the volume of the session left no room for."""
        now = self._time.now_us()
        rows = [(order, {"passed": False, "refusals": [NO_SHARE]}, now) for order in held]
        self._write(partial(self._record.record_orders, rows))
        for row in rows:
            self._session.take_order(OrderState(*row))
            self._told(self._session.orders[row[0].id])

    def _restore(self) -> None:
        """Tell the gate of all orders, cancels and reports on record, in their order."""
        for one in self._session.trail:
            if isinstance(one, ExecutionReport):
                if not _can_count(self._session.orders.get(one.order), one):
                    continue  # two people let it go on
                if one.kind == "cancelled" and not one.exec_id.endswith(ENDED_HERE):  # it took a message
                    self._gate.check_cancel(one.order, min(one.at_us, self._time.now_us()))
                self._apply(one)
            elif one.passed:
                self._gate.adopt(one.order, one.at_us)

    def _settle_earlier(self) -> None:
        """Learn what became of orders that an earlier process left open."""
        if isinstance(self._venue, SimulatingVenue):
            states = self._session.orders.values()
            self._venue.replay([(one.order, one.at_us) for one in states if one.passed and not self._is_unsent(one)])
            self._read(0.0)
            return
        left = self._session.list_open()
        if not left:
            return
        if isinstance(self._venue, RecallingVenue):
            ids = {one.order.id for one in left}
            traded: dict[str, int] = {}
            for state in self._session.orders.values():
                if state.order.id not in ids:
                    traded[state.order.asset] = traded.get(state.order.asset, 0) + state.filled_shares
            self._venue.recall([one.order for one in left], traded)
            self._read(0.0)
            return
        self._end_unsent(left)
        ends_us = self._time.now_us() + GRACE_US
        while self._time.now_us() < ends_us and any(not one.reports for one in left):
            self._read(READ_S)
            self._time.wait_until(self._time.now_us() + round(READ_S * US_PER_SECOND))
        silent = [one for one in left if not one.reports and not one.unknown]
        self._record.record_unknown([one.order for one in silent], NO_REPORT)
        for one in silent:
            one.unknown = True
            self._told(one)

    def _end_unsent(self, left: Sequence[OrderState]) -> None:
        """End the orders that were never handed to the venue's session.

        Where it knows none of all orders, it may be another one: then nothing is certain.
        """
        venue = self._venue
        if not isinstance(venue, JournaledVenue):
            return
        if any(venue.has_sent(name) for name, one in self._session.orders.items() if one.passed):
            for one in left:
                if not one.reports and not venue.has_sent(one.order.id):
                    self._end(one, UNSENT)

    def _refuse_cancelled(self, children: Sequence[ChildOrder]) -> None:
        """End the orders that a person cancelled before they were due; no halt stops that."""
        now = self._time.now_us()
        left = [order for order in children if order.id not in self._session.orders]
        rows = [(order, _refuse(found), now) for order in left if (found := self._session.find_cancel(order))]
        self._record.record_orders(rows)
        for row in rows:
            self._session.take_order(OrderState(*row))
            self._told(self._session.orders[row[0].id])

    def _wait(self, at_us: int) -> Halt | None:
        """Wait until orders are due, and read reports and requests meanwhile; return the halt that ends it."""
        rounds = SETTLING_ROUNDS if isinstance(self._time, SimulatedTime) else 0
        while self._time.now_us() < at_us:
            self._see_present()
            if (halt := self._halt.read()) is not None:
                return halt
            self._obey_cancels()
            settles = rounds > 0 and bool(self._session.list_open())
            self._read(READ_S if settles else 0.0)
            rounds -= 1
            if not settles:
                self._time.wait_until(at_us)
        return None

    def _send(self, batch: Sequence[ChildOrder]) -> Halt | None:
        """Rule on orders that are due, record them all, and send what passed; return the halt that ends it."""
        self._session.cancels = self._record.read_cancels()
        self._see_present()
        now, rows = self._time.now_us(), list[tuple[ChildOrder, Mapping[str, Any], int]]()
        silent = set[str]()
        if isinstance(self._venue, SimulatingVenue):
            assets = {order.asset for order in batch}
            prices = self._venue.list_prices(assets, now)
            silent = assets - prices.keys()
            for asset, price_e4 in prices.items():
                self._gate.quote(asset, price_e4, now)
        halt = None
        for order in batch:
            if (halt := self._halt.read()) is not None:
                break
            rule = NO_TRADE if order.asset in silent else LATE if now > self._until_us else ""
            rows.append((order, self._rule(order, now, rule), now))
        self._write(partial(self._record.record_orders, rows))
        states = [OrderState(*row) for row in rows]
        for state in states:
            self._session.take_order(state)
            if not state.passed:
                self._told(state)
        for state in filter(attrgetter("passed"), states):
            if (found := self._halt.read()) is not None:
                halt = found
                self._end(state, f"not sent: {found.reason}")
                continue
            self._venue.send([state.order])
            self._told(state)
        self._read(0.0)
        return halt

    def _rule(self, order: ChildOrder, now_us: int, rule: str) -> Mapping[str, Any]:
        """Return the ruling on an order as it is recorded; a person's cancel and another rule come before the gate.

        The gate would find the market open on the next day, and the price of a name that does not trade too old.
        """
        cancel = self._session.find_cancel(order)
        if cancel is not None:
            return _refuse(cancel)
        if rule:
            return {"passed": False, "refusals": [rule]}
        return self._gate.check(order, now_us).record()

    def _see_present(self) -> None:
        """Show the breakers the clock and the guard, in a session that happens now."""
        if self._watch is not None and isinstance(self._time, PresentTime):
            self._watch.see_present(self._time.now_us())

    def _read(self, timeout_s: float) -> bool:
        """Take in what the venue reported, and return whether it was anything; a report that cannot be halts."""
        read = self._venue.read_reports(timeout_s)
        fresh = [report for report in _drop_doubles(read) if not self._session.has_report(report)]
        self._take(fresh)
        return bool(read)

    def _take(self, reports: Sequence[ExecutionReport]) -> None:
        if not reports:
            return
        self._write(partial(self._record.record_reports, reports))
        for report in reports:
            self._session.take_report(report)
            state = self._session.orders.get(report.order)
            wrong = _find_wrong(state, report)
            if wrong:
                reason = f"{self._venue.name} reported {wrong}: {report.order}"
                self._halt.set(Halt(reason, ENGINE, self._time.now_us()))
            if _can_count(state, report):
                self._apply(report)
            if state is not None:
                self._told(state)
        if self._watch is not None:
            self._watch.see_session(self._session, self._time.now_us())

    def _apply(self, report: ExecutionReport) -> None:
        """Tell the gate of a report; the price of a fill is the last one that is known."""
        self._gate.apply(report)
        if report.kind == "filled":
            order = self._session.orders[report.order].order
            self._gate.quote(order.asset, report.price_e4, min(report.at_us, self._time.now_us()))

    def _write(self, record: Callable[[], None]) -> None:
        """Record; where that fails, trading is halted before the error goes on: what is not on record is not sent."""
        try:
            record()
        except Exception:
            if self._watch is not None:
                self._watch.see_failed_record(self._time.now_us())
            raise

    def _end(self, state: OrderState, why: str) -> None:
        """Record the end of an order that the venue does not have."""
        order = state.order.id
        self._take([ExecutionReport(order, "cancelled", f"{order}{ENDED_HERE}", self._time.now_us(), reason=why)])

    def _is_unsent(self, state: OrderState) -> bool:
        """Return whether the engine ended an order itself, so that no venue has seen it."""
        return any(report.exec_id == f"{state.order.id}{ENDED_HERE}" for report in state.reports)

    def _obey_cancels(self) -> None:
        """Pass requests of people on to the venue."""
        self._session.cancels = self._record.read_cancels()
        self._cancel([one for one in self._session.list_open() if self._session.find_cancel(one.order)])

    def _cancel(self, states: Sequence[OrderState]) -> None:
        ids = [one.order.id for one in states if one.order.id not in self._asked]
        for order in ids:
            self._gate.check_cancel(order, self._time.now_us())
        if ids:
            self._asked.update(ids)
            self._venue.cancel(ids)

    def _finish(self, halt: Halt | None, until_us: int) -> Halt | None:
        """Wait for the ends of what is open; a halt, which is returned, and the end of the session cancel it.

        Of an order whose end no venue tells, a person's cancel is the end: of one that nobody knows of, and of any in a
        process that began when the session was over.
        """
        ends_us = max(until_us, self._time.now_us()) + GRACE_US
        rounds = SETTLING_ROUNDS if isinstance(self._time, SimulatedTime) else None
        while self._session.list_open() and self._time.now_us() < ends_us:
            self._see_present()
            halt = halt or self._halt.read()
            self._obey_cancels()
            over = halt is not None or self._time.now_us() >= until_us
            if over:
                self._cancel(self._session.list_open())
            if over or all(one.unknown for one in self._session.list_open()):
                ends_us = min(ends_us, self._time.now_us() + GRACE_US)
            self._read(READ_S)
            rounds = None if rounds is None else rounds - 1
            self._time.wait_until(until_us if rounds == 0 else self._time.now_us() + round(READ_S * US_PER_SECOND))
        for one in self._session.list_open():
            cancel = self._session.find_cancel(one.order)
            if cancel is not None and (one.unknown or self._is_late):
                self._end(one, f"closed by {cancel['by']}: no report came")
        return halt


def _refuse(cancel: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the ruling on an order that a person cancelled before the gate was asked."""
    return {"passed": False, "refusals": ["cancelled"], "by": cancel["by"]}


def _find_wrong(state: OrderState | None, report: ExecutionReport) -> str:
    """Return what cannot be about a report, after it was added to its order; empty where nothing is wrong."""
    if state is None:
        return "an order that is not on record"
    if not state.passed:
        return "an order that was refused and never sent"
    if report.kind == "corrected":
        return report.reason
    if not _can_count(state, report):
        return "a fill without shares or without a price"
    return "more shares than were ordered" if state.filled_shares > state.order.shares else ""


def _can_count(state: OrderState | None, report: ExecutionReport) -> bool:
    """Return whether the gate can take in a report: of an order that it passed, and of a fill that is one."""
    fine = report.kind != "filled" or min(report.shares, report.price_e4) > 0
    return state is not None and state.passed and fine


def _drop_doubles(reports: Sequence[ExecutionReport]) -> Iterator[ExecutionReport]:
    """Yield each report once."""
    seen = set()
    for report in reports:
        if (report.order, report.exec_id) not in seen:
            seen.add((report.order, report.exec_id))
            yield report
