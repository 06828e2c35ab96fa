"""The engine over a FIX venue: what is not on record was not received, and no order leaves long after its ruling."""

from __future__ import annotations

from collections.abc import Sequence, Set as AbstractSet

import pytest

from alphaloom.execution import ChildOrder, ExecutionReport, HaltSwitch, OrderRecord
from alphaloom.execution.fix import FixMessage, FixVenue, Outgoing, read_report
from alphaloom.execution.fix.fix_venue import READY_SECONDS
from alphaloom.ledger import Ledger

from ..approvals import DAY
from ..sessions import CLOSE_US, OPEN_US, RUN, make_children, make_engine, make_gate
from .wire import AT, HEAD, ORDER


class Broker:
    """A session of a broker who fills each order, and sends again what was not confirmed once one connects anew."""

    def __init__(self) -> None:
        self.sent = dict[str, FixMessage]()
        self.waiting, self.given = list[FixMessage](), list[FixMessage]()
        self.ready = True
        self.waits = list[float]()

    @property
    def withdrawn(self) -> AbstractSet[str]:
        return set()

    def wait_until_ready(self, timeout_s: float) -> bool:
        self.waits.append(timeout_s)
        return self.ready

    def send(self, messages: Sequence[Outgoing]) -> None:
        for one in messages:
            self.sent[one.note] = FixMessage("FIX.4.4", one.kind, one.fields)
            if one.kind == "D":
                self.waiting.append(make_fill(self.sent[one.note]))

    def receive(self, timeout_s: float) -> Sequence[FixMessage]:
        messages, self.waiting = self.waiting, []
        self.given += messages
        return messages

    def confirm(self) -> None:
        self.given.clear()

    def find(self, note: str) -> FixMessage | None:
        return self.sent.get(note)

    def find_number(self, number: int) -> str:
        return ""

    def close(self) -> None:
        self.waiting, self.given = [*self.given, *self.waiting], []


def make_fill(order: FixMessage, **other: str) -> FixMessage:
    """Return the fill of an order at 10; `other` are values of tags as t31="10.5"."""
    tags = {
        37: "O", 11: order.get(11), 17: f"E-{order.get(11)}", 150: "F", 39: "2", 55: order.get(55), 54: order.get(54),
        32: order.get(38), 31: "10", 151: "0", 14: order.get(38), 60: AT,
    } | {int(name[1:]): value for name, value in other.items()}  # fmt: skip  # a table
    return FixMessage("FIX.4.4", "8", (*HEAD, *tags.items()))


@pytest.mark.parametrize("stopped", [KeyboardInterrupt, OSError])
def test_a_report_that_could_not_be_recorded_comes_again(
    ledger: Ledger, switch: HaltSwitch, monkeypatch: pytest.MonkeyPatch, stopped: type[BaseException]
) -> None:
    children, broker = make_children(4, 2), Broker()

    def fail(self: OrderRecord, reports: Sequence[ExecutionReport]) -> None:
        raise stopped

    def run() -> object:
        venue = FixVenue("broker", broker, lambda: OPEN_US)
        try:
            return make_engine(ledger, venue, make_gate(children), switch).run(children, CLOSE_US).done
        finally:
            venue.close()

    with monkeypatch.context() as patched:
        patched.setattr(OrderRecord, "record_reports", fail)
        with pytest.raises(stopped):
            run()
    assert run() == {"orders": 4, "filled": 4}
    assert broker.waiting == []  # all is on record, and the broker knows it


def test_an_outage_is_waited_for_once_an_instant_and_no_order_leaves_long_after_its_ruling(
    ledger: Ledger, switch: HaltSwitch
) -> None:
    """The session comes back while the orders of the first instant are sent; the rest of them is refused."""
    children, broker = make_children(6, 2), Broker()
    broker.ready = False

    class Returning(FixVenue):
        def send(self, orders: Sequence[ChildOrder]) -> None:
            super().send(orders)
            broker.ready = True

    venue = Returning("broker", broker, lambda: OPEN_US)
    session = make_engine(ledger, venue, make_gate(children), switch).run(children, CLOSE_US)
    assert broker.waits == [READY_SECONDS] * 4
    assert [one.status for one in session.orders.values()] == ["rejected"] * 3 + ["filled"] * 3
    assert session.done is not None


@pytest.mark.parametrize(
    ("tags", "cost_e4"),
    [
        ({}, 0),
        ({"t12": "1.5"}, 15_000),
        ({"t12": "1.5", "t13": "3"}, 15_000),
        ({"t12": "0.00355", "t13": "1"}, 355),  # 35.5 of a share, 10 shares
        ({"t12": "0.05", "t13": "2"}, 500),  # of 100
        ({"t12": "0.00001", "t13": "3"}, 1),
    ],
)
def test_a_commission_counts_however_the_venue_says_it(tags: dict[str, str], cost_e4: int) -> None:
    report = read_report(make_fill(FixMessage("FIX.4.4", "D", ORDER), t32="10", **tags))
    assert report is not None
    assert report.cost_e4 == cost_e4


def test_an_order_has_the_symbol_by_which_the_venue_knows_its_asset() -> None:
    first, second = make_children(2)
    broker = Broker()
    FixVenue("broker", broker, lambda: OPEN_US, {first.asset: "NEW"}).send([first, second])
    assert [broker.sent[one.id].get(55) for one in (first, second)] == ["NEW", second.asset]


@pytest.mark.parametrize("sent", [0, 2])
def test_an_order_that_was_never_handed_to_the_session_has_ended(ledger: Ledger, switch: HaltSwitch, sent: int) -> None:
    """A session that knows none of the orders may be another one, so they stay unknown."""
    children, broker, record = make_children(3), Broker(), OrderRecord(ledger, RUN, DAY)
    record.record_orders([(order, {"passed": True, "refusals": []}, OPEN_US) for order in children])
    venue = FixVenue("broker", broker, lambda: OPEN_US)
    venue.send(children[:sent])
    session = make_engine(ledger, venue, make_gate(children), switch).run(children, CLOSE_US)
    assert len(broker.sent) >= sent
    assert {note for note in broker.sent if "-c" not in note} == {order.id for order in children[:sent]}
    if sent:
        assert [one.status for one in session.orders.values()] == ["filled", "filled", "cancelled"]
        assert session.done == {"orders": 3, "filled": 2}
    else:
        assert all(one.unknown for one in session.orders.values())
        assert session.done is None
