"""A session for tests: approved targets, whole-share orders, the real order gate, and a venue that remembers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from alphaloom.execution import (
    ChildOrder,
    ExecutionReport,
    GateState,
    HaltSwitch,
    OrderEngine,
    OrderGate,
    OrderRecord,
    PaperSession,
    PaperVenue,
    Side,
    SimulatedTime,
    Venue,
)
from alphaloom.execution.gate import OrderLimits
from alphaloom.ledger import Ledger, Run
from alphaloom.risk import Policy

from .approvals import DAY

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
OPEN_US = int(datetime(2026, 1, 5, 14, 30, tzinfo=UTC).timestamp()) * 1_000_000
CLOSE_US = OPEN_US + 6 * 3_600_000_000
STEP_US = 60_000_000
PRICE_E4 = 100_000
RUN = "book-tried"


def open_ledger(workspace: Path) -> Ledger:
    """Open the record with the run of a book."""
    ledger = Ledger.open(workspace, clock=lambda: NOON)
    ledger.runs.start(Run(RUN, {"book": {}}, 0, "", NOON.isoformat()))
    return ledger


def make_children(orders: int, instants: int = 1) -> list[ChildOrder]:
    """Return market orders of 10 shares and more, spread over instants a minute apart; every third sells."""
    children = []
    for place in range(orders):
        side: Side = "sell" if place % 3 == 2 else "buy"
        at_us = OPEN_US + place * instants // orders * STEP_US
        children.append(
            ChildOrder(f"{place:012x}-1", f"{place:012x}", f"A{place:03d}", side, 10 + place, "market", None, at_us)
        )
    return children


def make_gate(children: Sequence[ChildOrder], **limits: int) -> OrderGate:
    """Return the order gate with a last price for each symbol."""
    state = GateState(10**12, {}, dict.fromkeys((order.asset for order in children), 10**6))
    gate = OrderGate(OrderLimits(**{"max_quote_age_s": 86_400, **limits}), Policy(), state)  # type: ignore[arg-type]
    for order in children:
        gate.quote(order.asset, PRICE_E4, OPEN_US)
    return gate


def make_paper(children: Sequence[ChildOrder]) -> PaperVenue:
    """Return the paper venue with an opening price for each symbol, 1 % above the last one."""
    opens = dict.fromkeys((order.asset for order in children), PRICE_E4 * 101 // 100)
    return PaperVenue(PaperSession(opens, None, 10.0, OPEN_US))


def make_engine(ledger: Ledger, venue: Venue, gate: OrderGate, switch: HaltSwitch) -> OrderEngine:
    """Return an engine on a simulated clock."""
    return OrderEngine(OrderRecord(ledger, RUN, DAY), gate, venue, switch, SimulatedTime(OPEN_US))


class RememberingVenue:
    """A venue that outlives the process: it keeps each order in a file, fills it, and reports all to every session."""

    name = "remembering"

    def __init__(self, file: Path) -> None:
        self._file = file
        self._told = 0

    def list_orders(self) -> list[str]:
        """Return the ids of the orders that arrived, in their order."""
        return [line.split()[0] for line in self._file.read_text().splitlines()] if self._file.exists() else []

    def send(self, orders: Sequence[ChildOrder]) -> None:
        """Take orders."""
        time.sleep(0.004)
        with self._file.open("a") as stream:
            stream.writelines(f"{order.id} {order.shares}\n" for order in orders)
        time.sleep(0.004)

    def cancel(self, ids: Sequence[str]) -> None:
        """Do nothing: all is filled."""

    def read_reports(self, timeout_s: float) -> Sequence[ExecutionReport]:
        """Return a fill for each order that was not reported to this session."""
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        fresh, self._told = lines[self._told :], len(lines)
        time.sleep(0.002)
        return [
            ExecutionReport(order, "filled", f"x-{order}", OPEN_US, int(shares), PRICE_E4, 1)
            for order, shares in (line.split() for line in fresh)
        ]

    def close(self) -> None:
        """Do nothing."""
