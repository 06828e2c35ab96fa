"""A synthetic market for venues: quoted prices by session, corporate actions, and approved targets."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from alphaloom.execution import PRICE_UNITS, US_PER_SECOND, DecisionInputs, ParentOrder, PositionEvent
from alphaloom.execution.nautilus import SessionPrices
from alphaloom.market import SyntheticConfig, simulate
from alphaloom.risk import BP, AssetFacts, BookState, Policy, Signal, decide

from ..approvals import PROVEN

CASH_E4 = 100_000_000 * PRICE_UNITS
OPENS, CLOSES = time(14, 30, tzinfo=UTC), time(21, tzinfo=UTC)
EVERY = 5
"""Sessions between two rebalances."""
INSTALLED = Path(os.environ.get("NAUTILUS") or Path(sys.prefix) / "nautilus")
RATIOS = {4.0: (1, 4), 0.1: (10, 1), 0.25: (4, 1), 10.0: (1, 10)}
"""New and old shares by the quote after a corporate action over the one before."""
RENAMES_EVERY, DIVIDENDS_EVERY = 50, 60
"""Sessions between two renamings of any name, and between two dividends of one name."""
DIVIDEND_BP = 50
RECENT = 5
"""Sessions after which a close is too old for an order."""


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
    """Quoted prices in 1e-4 `[T, N]`, 0 where there is none, in the order of open, high, low, close; shares traded.

    A name that was renamed has two columns: the old symbol's ends where the new one's begins. `renames` has both by the
    row before whose open it happens.
    """

    days: Sequence[date]
    assets: Sequence[str]
    prices: Sequence[NDArray[np.int64]]
    shares: NDArray[np.int64]
    ratio: NDArray[np.float64]
    renames: Mapping[int, tuple[int, int]]

    @classmethod
    def draw(cls, days: int, names: int, seed: int = 7) -> Market:
        panel = simulate(SyntheticConfig(seed=seed, days=days, names=names, delistings=0.25)).panel
        ratio = panel.fields["close_raw"] / panel.fields["close"]
        opens, highs, lows, closes = (
            np.rint(np.nan_to_num(panel.fields[name] * ratio) * PRICE_UNITS).astype(np.int64)
            for name in ("open", "high", "low", "close")
        )
        volume = np.rint(np.nan_to_num(panel.fields["volume"])).astype(np.int64)
        market = cls(panel.dates.tolist(), panel.symbols, (opens, highs, lows, closes), volume, ratio, {})
        for number, row in enumerate(range(30, days, RENAMES_EVERY)):
            market = market.rename(row, 7 * number % names)
        return market

    def rename(self, row: int, start: int) -> Market:
        """Return the market with a new symbol from a row on, of the first name from a column on that trades then."""
        count = len(self.assets)
        places = [(start + step) % count for step in range(count)]
        split = {place for place, _ in self.splits.get(row, ())}
        old = next(place for place in places if self.prices[3][row - 1 : row + 1, place].all() and place not in split)
        fields = []
        for field in (*self.prices, self.shares):
            wide = np.column_stack([field, field[:, old]])
            wide[row:, old], wide[:row, count] = 0, 0
            fields.append(wide)
        return Market(
            self.days,
            [*self.assets, f"{self.assets[old].partition('.')[0]}.{row}"],
            fields[:-1],
            fields[-1],
            np.column_stack([self.ratio, self.ratio[:, old]]),
            {**self.renames, row: (old, count)},
        )

    @cached_property
    def gone(self) -> Mapping[int, list[str]]:
        """The symbols that never trade again, by the row after their last one."""
        found: dict[int, list[str]] = {}
        renamed = {old for old, _ in self.renames.values()}
        for place, asset in enumerate(self.assets):
            if place in renamed:
                continue
            last = int(np.flatnonzero(self.prices[3][:, place])[-1])
            if last + 1 < len(self.days):
                found.setdefault(last + 1, []).append(asset)
        return found

    def list_last(self, row: int) -> NDArray[np.int64]:
        """Return the last close of each symbol before a row, in the shares of that row; 0 without one."""
        last = np.zeros(len(self.assets), dtype=np.int64)
        for earlier in range(max(row - RECENT, 0), row):
            traded = self.prices[3][earlier] > 0
            last[traded] = self.prices[3][earlier][traded]
        for at, (old, new) in self.renames.items():
            if row - RECENT < at <= row:
                last[new], last[old] = last[new] or last[old], 0
        for asset in self.gone.get(row, ()):
            last[self.assets.index(asset)] = 0
        for place, (new_shares, old_shares) in self.splits.get(row, ()):
            last[place] = last[place] * old_shares // new_shares
        return last

    def list_events(self, row: int) -> list[PositionEvent]:
        """Return the corporate actions before the open of a row, in the order in which they hold."""
        opens, closes, assets = self.prices[0][row], self.prices[3][row - 1], self.assets
        events = [
            PositionEvent(asset, "delisting", int(closes[assets.index(asset)])) for asset in self.gone.get(row, ())
        ]
        if row in self.renames:
            old, new = self.renames[row]
            events.append(PositionEvent(assets[old], "rename", to=assets[new]))
        events += [
            PositionEvent(assets[place], "cash", int(closes[place]) * DIVIDEND_BP // BP)
            for place in range(row % DIVIDENDS_EVERY, len(assets), DIVIDENDS_EVERY)
            if opens[place] and closes[place]
        ]
        return events + [
            PositionEvent(assets[place], "split", int(opens[place]), *ratio)
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

    def write_opens(self, path: Path) -> None:
        """Write the quoted prices as a panel's file, for a venue that fills at its opening prices."""
        rows, places = np.nonzero(self.prices[0])
        named = zip(("open", "high", "low", "close"), self.prices, strict=True)
        frame = pd.DataFrame(
            {
                "date": [self.days[row] for row in rows.tolist()],
                "symbol": [self.assets[place] for place in places.tolist()],
                **{name: field[rows, places] / PRICE_UNITS for name, field in named},
                "volume": self.shares[rows, places],
            }
        )
        frame.to_parquet(path, index=False)

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
