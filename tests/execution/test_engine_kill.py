"""`kill -9` and Ctrl-C at random moments of a session: no order is sent twice, and none is lost from the record."""

from __future__ import annotations

import os
import random
import signal
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from alphaloom.execution import ALL_ORDERS, ChildOrder, HaltSwitch, OrderRecord, PaperVenue, SessionOrders, Venue

from .approvals import DAY
from .sessions import (
    CLOSE_US,
    RUN,
    RememberingVenue,
    make_children,
    make_engine,
    make_gate,
    make_paper,
    open_ledger,
)

pytestmark = pytest.mark.integration
ORDERS, INSTANTS = 30, 6
ORDERS_EACH = 12
"""Most orders of a process before it is ended."""
LONGEST_S = 0.012
"""Sending an order takes 8 ms, and recording what came of an instant follows."""


class SlowPaper(PaperVenue):
    """The paper venue with a wait before and after each order, so that a kill falls there too."""

    def __init__(self, venue: PaperVenue) -> None:
        self.__dict__.update(venue.__dict__)

    def send(self, orders: Sequence[ChildOrder]) -> None:
        """Fill orders."""
        time.sleep(0.004)
        super().send(orders)
        time.sleep(0.004)


def execute(workspace: Path, venue: Venue, tell: int = -1) -> SessionOrders:
    """Execute the session, or go on with it; write a byte to a descriptor before each order, and one at the end."""
    children = make_children(ORDERS, INSTANTS)
    send = venue.send

    def send_and_tell(orders: Sequence[ChildOrder]) -> None:
        os.write(tell, b"s")
        send(orders)

    if tell >= 0:
        venue.send = send_and_tell  # type: ignore[method-assign]
    with open_ledger(workspace) as ledger, HaltSwitch(workspace) as switch:
        session = make_engine(ledger, venue, make_gate(children), switch).run(children, CLOSE_US)
    if tell >= 0:
        os.write(tell, b"d")
    return session


def run_until(
    workspace: Path, make_venue: Callable[[], Venue], ending: signal.Signals, orders: int, after_s: float
) -> bool:
    """Run a session in a process of its own, end that some time after so many orders; return whether it was done."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # later Pythons warn of threads
        child = os.fork()
    if not child:
        code = 1
        try:
            os.close(reader)
            execute(workspace, make_venue(), writer)
            code = 0
        except KeyboardInterrupt:
            code = 130
        finally:
            os._exit(code)
    os.close(writer)
    with open(reader, "rb", buffering=0) as told:
        word = b""
        for _ in range(orders):
            word = told.read(1)
            if word != b"s":
                break
        time.sleep(after_s)
        os.kill(child, ending)
        _, status = os.waitpid(child, 0)
    assert word in (b"s", b"d"), f"the process ended by itself: {status}"
    return word == b"d"


def end_often(workspace: Path, make_venue: Callable[[], Venue]) -> int:
    """End a session again and again until one comes to its end; return how many did not."""
    draw = random.Random(5)
    open_ledger(workspace).close()
    for cut in range(2 * ORDERS):
        ending = signal.SIGINT if cut % 3 == 2 else signal.SIGKILL
        if run_until(workspace, make_venue, ending, draw.randint(1, ORDERS_EACH), draw.uniform(0.0, LONGEST_S)):
            return cut
    raise AssertionError("no session came to its end")


def read(workspace: Path) -> SessionOrders:
    with open_ledger(workspace) as ledger:
        return OrderRecord(ledger, RUN, DAY).read()


def test_a_paper_session_ends_as_if_nobody_had_killed_it(tmp_path: Path) -> None:
    children = make_children(ORDERS, INSTANTS)
    cuts = end_often(tmp_path / "killed", lambda: SlowPaper(make_paper(children)))
    expected = execute(tmp_path / "whole", make_paper(children))
    found = read(tmp_path / "killed")
    assert cuts > 1
    assert found.done == expected.done == {"orders": ORDERS, "filled": ORDERS}
    assert {name: state.reports for name, state in found.orders.items()} == {
        name: state.reports for name, state in expected.orders.items()
    }


def test_a_venue_that_remembers_gets_each_order_once_and_the_record_says_which_never_came(tmp_path: Path) -> None:
    file = tmp_path / "venue"
    end_often(tmp_path / "killed", lambda: RememberingVenue(file))
    sent, found = RememberingVenue(file).list_orders(), read(tmp_path / "killed")
    assert len(sent) == len(set(sent))
    assert len(found.orders) == ORDERS
    assert {name for name, state in found.orders.items() if state.status == "filled"} == {*sent}
    assert {name for name, state in found.orders.items() if state.unknown} == found.orders.keys() - {*sent}

    with open_ledger(tmp_path / "killed") as ledger:
        OrderRecord(ledger, RUN, DAY).record_cancel(ALL_ORDERS, "ann", "2026-01-05T20:00:00+00:00")
    ended = execute(tmp_path / "killed", RememberingVenue(file))
    assert ended.done == {"orders": ORDERS, "filled": len(sent)}
