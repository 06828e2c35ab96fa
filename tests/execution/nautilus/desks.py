"""Desks that trade the same targets: in plain Python, and each behind its venue through the order engine."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from alphaloom.execution import (
    ChildOrder,
    GateState,
    HaltSwitch,
    OrderEngine,
    OrderGate,
    OrderLimits,
    OrderRecord,
    PaperSession,
    PaperVenue,
    ParentOrder,
    PositionCount,
    PositionEvent,
    SimulatedTime,
    Venue,
)
from alphaloom.execution.decision_inputs import DecisionInputs
from alphaloom.execution.fix import TRADING_RESENT, FixConnection, FixLink, FixVenue, SessionSettings
from alphaloom.execution.nautilus import NautilusMode, NautilusVenue, SessionPrices
from alphaloom.ledger import Ledger
from alphaloom.risk import Policy

from ..fix.processes import serve_venue
from ..sessions import RUN, open_ledger
from .market import CASH_E4, EVERY, Market, find_nautilus, plan


@dataclass
class Book:
    """What a book is after each session: shares by symbol and cash in 1e-4; and what was ordered.

    `unfilled` has for each row the shares by symbol that were ordered and not filled, negative where they were to be
    sold.
    """

    positions: list[dict[str, int]] = field(default_factory=list)
    cash_e4: list[int] = field(default_factory=list)
    orders: int = 0
    fills: int = 0
    moved: Counter[str] = field(default_factory=Counter)
    unfilled: dict[int, dict[str, int]] = field(default_factory=dict, compare=False)

    def close_session(self, positions: Mapping[str, int], cash_e4: int) -> None:
        self.positions.append({asset: shares for asset, shares in sorted(positions.items()) if shares})
        self.cash_e4.append(cash_e4)


@dataclass(frozen=True)
class MarketDay:
    """One session: its prices, the corporate actions before it, and what was decided for it."""

    prices: SessionPrices
    events: Sequence[PositionEvent]
    decided: tuple[DecisionInputs, str, list[ParentOrder]] | None


def trade_plainly(market: Market) -> Book:
    """Trade in plain Python: each order fills at the open of its session, or not at all where there is none."""
    book, held, cash_e4 = Book(), Counter[str](), CASH_E4
    for row in range(1, len(market.days)):
        for event in market.list_events(row):
            shares = held.pop(event.asset, 0)
            book.moved[event.kind] += shares != 0
            whole, cash_e4 = shares, cash_e4 + (shares * event.price_e4 if event.kind in ("cash", "delisting") else 0)
            if event.kind == "delisting":
                whole = 0
            if event.kind == "split":
                exact = shares * event.new_shares / event.old_shares
                whole = int(exact)
                cash_e4 += int(round((exact - whole) * event.old_shares) * event.price_e4 / event.old_shares)
            held[event.to or event.asset] = whole
        for parent in plan(market, row, held)[2] if row % EVERY == 0 else ():
            price_e4 = int(market.prices[0][row, market.assets.index(parent.asset)])
            book.orders += 1
            if price_e4:
                book.fills += 1
                held[parent.asset] += parent.shares
                cash_e4 -= parent.shares * price_e4
        book.close_session(held, cash_e4)
    return book


class Desk(Protocol):
    """What differs between venues."""

    clock: SimulatedTime

    def open(self, day: MarketDay) -> Venue:
        """Return the venue of a session with orders."""
        ...

    def rest(self, day: MarketDay) -> None:
        """Let a session without orders pass."""
        ...


class PaperDesk:
    """The paper venue: one for each session; `room` is the share of the volume that it lets an order have."""

    def __init__(self, cost_bp: float = 0.0, room: float | None = None) -> None:
        self.cost_bp, self.room = cost_bp, room
        self.clock = SimulatedTime(0)

    def open(self, day: MarketDay) -> Venue:
        rows = day.prices.rows
        room = None if self.room is None else {asset: int(self.room * row[4]) for asset, row in rows.items()}
        opens = {asset: row[0] for asset, row in rows.items()}
        return PaperVenue(PaperSession(opens, room, self.cost_bp, day.prices.open_us))

    def rest(self, day: MarketDay) -> None: ...


class NautilusDesk:
    """NautilusTrader, which also counts positions itself."""

    def __init__(self, venue: NautilusVenue) -> None:
        self.venue, self.clock = venue, SimulatedTime(0)

    def open(self, day: MarketDay) -> Venue:
        assert day.decided is not None
        self.venue.admit(*day.decided)
        self.venue.open_session(day.prices, day.events)
        return self.venue

    def rest(self, day: MarketDay) -> None:
        self.venue.run_session(day.prices, day.events)


class FixDesk:
    """A FIX session with `alphaloom serve venue`, which is fed from the same panel."""

    def __init__(self, link: FixLink) -> None:
        self.clock = SimulatedTime(0)
        self.venue = FixVenue("fix", link, self.clock.now_us)

    def open(self, day: MarketDay) -> Venue:
        return self.venue

    def rest(self, day: MarketDay) -> None:
        assert not self.venue.read_reports(0.0)


@contextmanager
def open_desk(name: str, market: Market, folder: Path) -> Iterator[Desk]:
    """Yield a desk by its name, and end what it started."""
    if name == "paper":
        yield PaperDesk()
    elif name.startswith("fix"):
        market.write_opens(folder / "panel.parquet")
        with serve_venue(folder / "venue", "--panel", str(folder / "panel.parquet")) as served:
            desk = FixDesk(_connect(name, served.port, folder))
            with closing(desk.venue):
                yield desk
    else:
        with closing(open_nautilus(name, market)) as venue:
            yield NautilusDesk(venue)


def open_nautilus(name: str, market: Market, cost_bp: float = 0.0) -> NautilusVenue:
    mode: NautilusMode = name.partition(" ")[2]  # type: ignore[assignment]  # the engine refuses another
    return NautilusVenue(find_nautilus(), market.assets, CASH_E4, mode, cost_bp=cost_bp)


def _connect(name: str, port: int, folder: Path) -> FixLink:
    settings = SessionSettings("FIX.4.4", "DESK", "VENUE", True, 30, TRADING_RESENT)
    if name == "fix":
        return FixConnection("127.0.0.1", port, settings, folder / "session", _read_clock_us)
    from alphaloom.execution.fix.quickfix_session import QuickFixLink

    return QuickFixLink("127.0.0.1", port, settings, folder / "quickfix")


def trade_at(desk: Desk, market: Market, folder: Path) -> Book:
    """Trade the targets through halt file, order gate, record and venue; positions are those of the record."""
    book, count = Book(), PositionCount(CASH_E4)
    with open_ledger(folder) as ledger, HaltSwitch(folder) as switch:
        for row in range(1, len(market.days)):
            events = market.list_events(row)
            for event in events:
                book.moved[event.kind] += count.shares[event.asset] != 0
                count.apply(event)
            if row % EVERY:
                desk.rest(MarketDay(market.make_session(row), events, None))
            else:
                day = MarketDay(market.make_session(row), events, plan(market, row, count.shares))
                _execute(desk, day, (ledger, switch), (book, count, row))
            book.close_session(count.shares, count.cash_e4)
            if isinstance(desk, NautilusDesk):
                there = {asset: shares for asset, shares in sorted(desk.venue.positions.items()) if shares}
                assert (there, desk.venue.cash_e4) == (book.positions[-1], book.cash_e4[-1])
    return book


def _execute(
    desk: Desk, day: MarketDay, kept: tuple[Ledger, HaltSwitch], counted: tuple[Book, PositionCount, int]
) -> None:
    """Send the orders of a session, and count what is on record of them."""
    assert day.decided is not None
    (ledger, switch), (book, count, row), parents = kept, counted, day.decided[2]
    record, opens_us = OrderRecord(ledger, RUN, parents[0].session), day.prices.open_us
    desk.clock.wait_until(opens_us)
    gate = _make_gate(parents, count, opens_us)
    engine = OrderEngine(record, gate, desk.open(day), switch, desk.clock)
    orders = engine.run(_make_children(parents, opens_us), day.prices.close_us)
    assert orders.done is not None
    for state in record.read().orders.values():
        assert state.passed, state.ruling
        for report in state.reports:
            count.take(state.order, report)
        book.orders += 1
        book.fills += state.filled_shares > 0
        rest = state.order.shares - state.filled_shares
        if rest:
            sign = 1 if state.order.side == "buy" else -1
            book.unfilled.setdefault(row, {})[state.order.asset] = sign * rest


def _make_gate(parents: Sequence[ParentOrder], count: PositionCount, at_us: int) -> OrderGate:
    """Return the order gate with the shipped limits, but for volumes: what a usual day brings is not at issue here."""
    usual = dict.fromkeys((one.asset for one in parents), 10**9)
    held = {asset: shares for asset, shares in count.shares.items() if shares}
    gate = OrderGate(OrderLimits(order_shares_cap=None), Policy(net_cap_bp=10_000), GateState(CASH_E4, held, usual))
    for parent in parents:
        gate.quote(parent.asset, parent.arrival_e4, at_us)
    return gate


def _make_children(parents: Sequence[ParentOrder], at_us: int) -> list[ChildOrder]:
    return [
        ChildOrder(f"{one.id}-0", one.id, one.asset, one.side, abs(one.shares), "market", None, at_us)
        for one in parents
    ]


def _read_clock_us() -> int:
    return time.time_ns() // 1000
