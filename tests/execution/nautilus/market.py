"""A year of a synthetic market for venues: quoted prices by session, corporate actions, and approved targets."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from alphaloom.execution import PRICE_UNITS, US_PER_SECOND, ChildOrder, DecisionInputs, ParentOrder
from alphaloom.execution.nautilus import NautilusVenue, PositionEvent, SessionPrices
from alphaloom.market import SyntheticConfig, simulate
from alphaloom.risk import AssetFacts, BookState, Policy, Signal, decide

from ..approvals import PROVEN

CASH_E4 = 100_000_000 * PRICE_UNITS
OPENS, CLOSES = time(14, 30, tzinfo=UTC), time(21, tzinfo=UTC)
EVERY = 5
"""Sessions between two rebalances."""
INSTALLED = Path(os.environ.get("NAUTILUS") or Path(sys.prefix) / "nautilus")
RATIOS = {4.0: (1, 4), 0.1: (10, 1), 0.25: (4, 1), 10.0: (1, 10)}
"""New and old shares by the quote after a corporate action over the one before."""


def find_nautilus() -> Path:
    python = INSTALLED / "bin" / "python"
    if not python.exists():
        pytest.skip(
            f"no NautilusTrader in {INSTALLED}: `make nautilus` installs it, with Python 3.12 and a package index"
        )
    return python


def to_us(day: date, at: time) -> int:
    return int(datetime.combine(day, at).timestamp()) * US_PER_SECOND


@dataclass(frozen=True)
class Market:
    """Quoted prices in 1e-4 `[T, N]`, 0 where there is none, in the order of open, high, low, close; shares traded."""

    days: Sequence[date]
    assets: Sequence[str]
    prices: Sequence[NDArray[np.int64]]
    shares: NDArray[np.int64]
    ratio: NDArray[np.float64]

    @classmethod
    def draw(cls, days: int, names: int, seed: int = 7) -> Market:
        panel = simulate(SyntheticConfig(seed=seed, days=days, names=names, delistings=0.25)).panel
        ratio = panel.fields["close_raw"] / panel.fields["close"]
        opens, highs, lows, closes = (
            np.rint(np.nan_to_num(panel.fields[name] * ratio) * PRICE_UNITS).astype(np.int64)
            for name in ("open", "high", "low", "close")
        )
        volume = np.rint(np.nan_to_num(panel.fields["volume"])).astype(np.int64)
        return cls(panel.dates.tolist(), panel.symbols, (opens, highs, lows, closes), volume, ratio)

    @cached_property
    def gone(self) -> Mapping[int, list[str]]:
        """The symbols that never trade again, by the row after their last one."""
        found: dict[int, list[str]] = {}
        for place, asset in enumerate(self.assets):
            last = int(np.flatnonzero(self.prices[3][:, place])[-1])
            if last + 1 < len(self.days):
                found.setdefault(last + 1, []).append(asset)
        return found

    def list_last(self, row: int) -> NDArray[np.int64]:
        """Return the last close of each symbol before a row, in the shares of that row; 0 without one."""
        last = np.zeros(len(self.assets), dtype=np.int64)
        for earlier in range(max(row - 5, 0), row):
            traded = self.prices[3][earlier] > 0
            last[traded] = self.prices[3][earlier][traded]
        for event in self.list_events(row):
            place = self.assets.index(event.asset)
            last[place] = 0 if event.kind == "delisting" else last[place] * event.old_shares // event.new_shares
        return last

    def list_events(self, row: int) -> list[PositionEvent]:
        """Return the corporate actions before the open of a row."""
        events = [
            PositionEvent(asset, "delisting", int(self.prices[3][row - 1, self.assets.index(asset)]))
            for asset in self.gone.get(row, ())
        ]
        return events + [
            PositionEvent(self.assets[place], "split", int(self.prices[0][row, place]), *ratio)
            for place, ratio in self.splits.get(row, ())
        ]

    @cached_property
    def splits(self) -> Mapping[int, list[tuple[int, tuple[int, int]]]]:
        """The columns that split before the open of a row, with new and old shares."""
        found: dict[int, list[tuple[int, tuple[int, int]]]] = {}
        for place in range(len(self.assets)):
            traded = np.flatnonzero(self.prices[0][:, place])
            steps = self.ratio[traded[1:], place] / self.ratio[traded[:-1], place]
            for at in np.flatnonzero(np.abs(steps - 1) > 0.01):
                found.setdefault(int(traded[at + 1]), []).append((place, RATIOS[round(float(steps[at]), 6)]))
        return found

    def make_session(self, row: int) -> SessionPrices:
        quoted = {
            asset: (*(int(field[row, place]) for field in self.prices), int(self.shares[row, place]))
            for place, asset in enumerate(self.assets)
            if self.prices[0][row, place]
        }
        day = self.days[row]
        return SessionPrices(to_us(day, OPENS), to_us(day, CLOSES), quoted)  # type: ignore[arg-type]


def decide_targets(market: Market, row: int) -> tuple[DecisionInputs, Mapping[str, int]]:
    """Return the inputs of a decision before a session, and an equal long or short target of each symbol, in 1e-8.

    Which way is drawn from the price, so targets turn often.
    """
    last, day = market.list_last(row), market.days[row]
    targets = {
        asset: (1 if int(last[place]) // 7 % 2 else -1) * 800_000
        for place, asset in enumerate(market.assets)
        if last[place]
    }
    signals = [Signal(asset, target, target, target, EVERY, "a test", "f0", day) for asset, target in targets.items()]
    facts = AssetFacts(last_price=market.days[row - 1], jump_bp=0, volume_e8=10**12)
    state = BookState(
        {}, dict.fromkeys(targets, facts), 10**10, 10**10, sessions=(*market.days[max(row - 9, 0) : row],)
    )
    return DecisionInputs(signals, state, Policy(net_cap_bp=10_000), day, PROVEN), targets


def plan(market: Market, row: int, held: Mapping[str, int]) -> tuple[DecisionInputs, str, list[ParentOrder]]:
    """Return the parents that take a book from its shares to the approved targets, with the decision behind them."""
    inputs, _ = decide_targets(market, row)
    decision = decide(inputs.signals, inputs.state, inputs.policy, inputs.now, inputs.standings)
    last = market.list_last(row)
    parents = []
    for approved in decision.approved:
        arrival_e4 = int(last[market.assets.index(approved.signal.asset)])
        shares = approved.signal.target_e8 * CASH_E4 // (10**8 * arrival_e4) - held.get(approved.signal.asset, 0)
        if shares:
            parents.append(ParentOrder(approved, shares, arrival_e4, market.days[row]))
    return inputs, decision.id, parents


def make_children(parents: Sequence[ParentOrder], at_us: int) -> list[ChildOrder]:
    return [
        ChildOrder(f"{one.id}-0", one.id, one.asset, one.side, abs(one.shares), "market", None, at_us)
        for one in parents
    ]


@dataclass
class Book:
    """What a book is after a year: shares by symbol and cash in 1e-4 after each session, and what was ordered."""

    positions: list[dict[str, int]]
    cash_e4: list[int]
    orders: int = 0
    fills: int = 0
    moved: int = 0


def trade_plainly(market: Market) -> Book:
    """Trade in plain Python: each order fills at the open of its session, or not at all where there is none."""
    book, held, cash_e4 = Book([], []), Counter[str](), CASH_E4
    for row in range(1, len(market.days)):
        for event in market.list_events(row):
            book.moved += held[event.asset] != 0
            held[event.asset], paid_e4 = event.apply(held[event.asset])
            cash_e4 += paid_e4
        for parent in plan(market, row, held)[2] if row % EVERY == 0 else ():
            price_e4 = int(market.prices[0][row, market.assets.index(parent.asset)])
            book.orders += 1
            if price_e4:
                book.fills += 1
                held[parent.asset] += parent.shares
                cash_e4 -= parent.shares * price_e4
        book.positions.append({asset: shares for asset, shares in held.items() if shares})
        book.cash_e4.append(cash_e4)
    return book


def trade_at(venue: NautilusVenue, market: Market) -> Book:
    """Trade the same targets at a venue."""
    book = Book([], [])
    for row in range(1, len(market.days)):
        events, session = market.list_events(row), market.make_session(row)
        if row % EVERY == 0:
            held = dict(venue.positions)
            for event in events:
                held[event.asset] = event.apply(held.get(event.asset, 0))[0]
            inputs, decision, parents = plan(market, row, held)
            venue.admit(inputs, decision, parents)
            venue.send(make_children(parents, session.open_us))
            book.orders += len(parents)
        book.moved += sum(venue.positions[event.asset] != 0 for event in events)
        venue.run_session(session, events)
        book.fills += sum(report.kind == "filled" for report in venue.read_reports())
        book.positions.append({asset: shares for asset, shares in venue.positions.items() if shares})
        book.cash_e4.append(venue.cash_e4)
    return book
