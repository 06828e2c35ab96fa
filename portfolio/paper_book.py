"""A paper book that lives: what it holds, how a day's targets are filled, and what it is worth at the close.

Prices of a panel may be adjusted anew with every file, so a book keeps the last two closes of each holding, with their
days, and the number of its shares in their units. Before a day is traded, shares are carried over to the panel at hand.
If it has both closes changed by one factor, they were adjusted, and the number of shares changes so that the value
stays: a split, a dividend and a vendor's new adjustment are the same, and nothing is paid twice. If they changed
otherwise, a price was corrected: the shares stay, and the difference is profit or loss.

Two changes count as one factor if they differ by no more than the rounding of the four prices: of prices of a cent or
two, a split may look like anything from half to three times it. Then the value stays, too. A holding whose symbol
changed goes on under the new one.

Everything is a function of its arguments, with symbols in sorted order, so a step repeated gives the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, TypeVar

from ..evidence.scoring import Costs
from ..market import bound_ratio

ADJUSTED_ALIKE: Final = 1e-3
"""Relative difference of two closes' changes, beside their rounding, up to which they were adjusted alike."""
MIN_NOTED_CORRECTION: Final = 0.05
"""Change of a price that was not adjusted from which on a step notes it."""
SILENT_DAYS: Final = 20
"""Trading days without a price after which a holding is sold at its last one: a name that is gone is told so late."""


@dataclass(frozen=True)
class DayPrices:
    """The prices of one day, as a panel has them; a symbol without a price has no key.

    Attributes
    ----------
    day
        ISO date.
    opens, closes
        Prices of the day.
    volumes
        Shares traded, or whatever the panel counts.
    earlier
        Of each symbol that is held, as it was called: the panel's closes on the two days whose closes the book keeps.
    previous
        Of each symbol: the panel's last close before this day, and the ISO day of it.
    renamed
        The new symbol of each one that changed since the step before, by the old one; other keys than those of
        `earlier` are new symbols.
    """

    day: str
    opens: Mapping[str, float]
    closes: Mapping[str, float]
    volumes: Mapping[str, float]
    earlier: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    previous: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Holding:
    """Shares of one symbol, negative for short, their last price and its day.

    `silent_days` are days without a price since; `before` is its close before that on `before_day`, 0 for none. `best`
    is the highest price since it was opened, the lowest of a short.
    """

    shares: float
    price: float
    day: str
    silent_days: int = 0
    before: float = 0.0
    best: float = 0.0
    before_day: str = ""

    @property
    def fall(self) -> float:
        """Return its loss from its best price, as a share of that."""
        side = 1 if self.shares > 0 else -1
        return max(side * (self.best - self.price) / self.best, 0.0) if self.best else 0.0

    @property
    def value(self) -> float:
        """Return what it is worth at its last price."""
        return self.shares * self.price


@dataclass(frozen=True)
class Fill:
    """What was bought or sold at the open, and what that cost; `short_of` is the part of the order that was not."""

    symbol: str
    shares: float
    price: float
    cost: float
    short_of: float = 0.0


@dataclass(frozen=True)
class ExecutedFill:
    """What venues filled of one symbol in a session.

    Attributes
    ----------
    symbol, shares, price, cost, short_of
        As of `Fill`, in the units of the panel on which the orders were made.
    close, day, before, before_day
        The last two closes of that panel before the session, and their ISO days; `before` is 0 where there is one.
        A later panel that has both changed by one factor was adjusted.
    """

    symbol: str
    shares: float
    price: float
    cost: float
    short_of: float
    close: float
    day: str
    before: float = 0.0
    before_day: str = ""


@dataclass(frozen=True)
class PaperAccount:
    """A book at the close of a day.

    Attributes
    ----------
    day
        ISO date of the close; empty before the first.
    cash
        Money, after costs.
    holdings
        By symbol.
    high_water
        Highest equity of any close so far.
    pnl
        Change of equity since the close before, without the money that people paid in or took out.
    borrow
        What was paid for being short over night, in `pnl`.
    """

    day: str
    cash: float
    holdings: Mapping[str, Holding]
    high_water: float
    pnl: float = 0.0
    borrow: float = 0.0

    @classmethod
    def of_cash(cls, cash: float) -> PaperAccount:
        """Return a new account that holds only cash."""
        return cls("", cash, MappingProxyType({}), cash)

    @property
    def equity(self) -> float:
        """Return cash and holdings at their last prices."""
        return self.cash + math.fsum(holding.value for holding in self.holdings.values())

    def with_flow(self, amount: float) -> PaperAccount:
        """Return the account after money was paid in after its close, or taken out where it is negative.

        The highest equity changes by the same factor as equity, so that the fall from it stays the same share.
        """
        before = self.equity
        after = before + amount
        grown = self.high_water * after / before if before > 0 and after > 0 else self.high_water + amount
        return replace(self, cash=self.cash + amount, high_water=max(grown, after)) if amount else self

    def weights(self) -> dict[str, float]:
        """Return each holding as a share of equity; of a book that is ruined, as a share of all that it holds."""
        whole = self.equity if self.equity > 0 else math.fsum(abs(one.value) for one in self.holdings.values())
        return {symbol: holding.value / whole for symbol, holding in self.holdings.items()} if whole else {}

    def rename(self, renamed: Mapping[str, str]) -> PaperAccount:
        """Return the account with holdings under new symbols; prices must be of one panel."""
        return replace(self, holdings=MappingProxyType(_merge(self.holdings, renamed))) if renamed else self

    def record(self) -> dict[str, Any]:
        """Return the account as a JSON-able object, from which `restore` makes it again."""
        holdings = {
            symbol: [one.shares, one.price, one.day, one.silent_days, one.before, one.best, one.before_day]
            for symbol, one in sorted(self.holdings.items())
        }
        return {
            "day": self.day,
            "cash": self.cash,
            "high_water": self.high_water,
            "pnl": self.pnl,
            "borrow": self.borrow,
            "holdings": holdings,
        }

    @classmethod
    def restore(cls, record: Mapping[str, Any]) -> PaperAccount:
        """Return an account from its record."""
        holdings = {symbol: Holding(*row) for symbol, row in record["holdings"].items()}
        money = (record[name] for name in ("high_water", "pnl", "borrow"))
        return cls(record["day"], record["cash"], MappingProxyType(holdings), *money)


@dataclass(frozen=True)
class TradingTerms:
    """What trading costs, and the largest share of a day's volume that is traded; 0 for no limit on it."""

    costs: Costs
    max_volume_share: float = 0.0


def trade_day(
    account: PaperAccount,
    targets: Mapping[str, float],
    prices: DayPrices,
    trading: TradingTerms,
    reducing: Collection[str] = (),
) -> tuple[PaperAccount, tuple[Fill, ...]]:
    """Fill targets at a day's opens, and value the book at its closes.

    Parameters
    ----------
    account
        The book at the close before.
    targets
        Share of equity of each new symbol that was approved, negative for short. One without a target keeps its shares.
    prices
        The day.
    trading
        Costs are charged on what is bought and sold. Borrowing is charged once a day on what is short over night.
    reducing
        Symbols that may only be reduced: whatever their prices did over night, they end with no more shares than they
        had, on the same side.

    Returns
    -------
    tuple
        The book at the close, and what was bought and sold, by symbol. A symbol without an open is not traded. A
        holding without a price for `SILENT_DAYS` days is sold at its last one, with costs.
    """
    opened = _merge(carry_over(account, prices), prices.renamed)
    at_open = {symbol: prices.opens.get(symbol, one.price) for symbol, one in opened.items()}
    equity = account.cash + math.fsum(one.shares * at_open[symbol] for symbol, one in opened.items())
    fills = []
    for symbol in sorted({*targets, *opened}):
        wanted = _want(symbol, opened.get(symbol), targets.get(symbol), equity, prices)
        if wanted is not None and symbol in reducing:
            wanted = _clamp(wanted, opened.get(symbol))
        fill = _fill(symbol, opened.get(symbol), wanted, prices, trading)
        if fill is not None:
            fills.append(fill)
    return _close_day(account, opened, fills, prices, trading), tuple(fills)


def book_fills(
    account: PaperAccount, executed: Sequence[ExecutedFill], prices: DayPrices, trading: TradingTerms
) -> tuple[PaperAccount, tuple[Fill, ...]]:
    """Book what venues filled in a session, and value the book at its close.

    Parameters
    ----------
    account
        The book at the close before.
    executed
        What was filled, in any order; of two under one symbol both are booked.
    prices, trading
        As for `trade_day`: borrowing is charged, and a holding that is gone is sold at its last price.
    """
    opened = _merge(carry_over(account, prices), prices.renamed)
    fills = sorted((_carry_fill(fill, prices) for fill in executed), key=attrgetter("symbol"))
    there = {fill.symbol for fill in fills}
    left = [_fill(symbol, one, None, prices, trading) for symbol, one in opened.items() if symbol not in there]
    fills += [fill for fill in left if fill is not None]
    return _close_day(account, opened, fills, prices, trading), tuple(fills)


def _close_day(
    account: PaperAccount,
    opened: Mapping[str, Holding],
    fills: Sequence[Fill],
    prices: DayPrices,
    trading: TradingTerms,
) -> PaperAccount:
    """Return an account after the fills of a day, valued at its closes."""
    borrow = math.fsum(-one.value for one in account.holdings.values() if one.value < 0) * trading.costs.borrow
    holdings, cash = dict(opened), account.cash
    for fill in fills:
        cash -= fill.shares * fill.price + fill.cost
        held = holdings.get(fill.symbol)
        shares = fill.shares + (held.shares if held else 0.0)
        best = held.best if held and held.shares * shares > 0 else fill.price
        holdings[fill.symbol] = Holding(shares, fill.price, prices.day, best=best)
    cash -= borrow
    closed = {symbol: _value_at_close(one, symbol, prices) for symbol, one in holdings.items() if one.shares}
    after = replace(account, day=prices.day, cash=cash, holdings=MappingProxyType(dict(sorted(closed.items()))))
    worth = after.equity
    pnl = worth - account.equity
    return replace(after, high_water=max(account.high_water, worth), pnl=pnl, borrow=borrow)


def _carry_fill(fill: ExecutedFill, prices: DayPrices) -> Fill:
    """Return a fill in the units of a panel's prices, under its symbol there: its value stays."""
    kept = Holding(fill.shares, fill.close, fill.day, 0, fill.before, 0.0, fill.before_day)
    told, adjusted = _read_again(kept, prices.earlier.get(fill.symbol, {}))
    factor = fill.close / told if adjusted else 1.0
    symbol = prices.renamed.get(fill.symbol, fill.symbol)
    return Fill(symbol, fill.shares * factor, fill.price / factor, fill.cost, fill.short_of * factor)


def carry_over(account: PaperAccount, prices: DayPrices) -> dict[str, Holding]:
    """Return the holdings in the units of a panel's prices, by their symbols of before: their values stay."""
    carried = {}
    for symbol, one in sorted(account.holdings.items()):
        told, adjusted = _read_again(one, prices.earlier.get(symbol, {}))
        factor = one.price / told if adjusted else 1.0
        carried[symbol] = replace(one, shares=one.shares * factor, price=told, best=one.best / factor)
    return carried


def _read_again(one: Holding, closes: Mapping[str, float]) -> tuple[float, bool]:
    """Return a holding's last price as a panel has it, and whether it was adjusted, and not corrected."""
    told, before = closes.get(one.day, one.price), closes.get(one.before_day)
    factor = one.price / told
    if math.isclose(factor, 1.0, rel_tol=1e-9):
        return one.price, False
    if not one.before or before is None:
        return told, False
    (least, most), (low, high) = bound_ratio(one.price, told), bound_ratio(one.before, before)
    return told, max(least, low) <= min(most, high) * (1.0 + ADJUSTED_ALIKE)


def find_corrections(account: PaperAccount, prices: DayPrices) -> list[tuple[str, float, float]]:
    """Return what a panel corrected by more than 5 %, which is profit or loss: symbol, price that was, price now."""
    found = []
    for symbol, one in sorted(account.holdings.items()):
        told, adjusted = _read_again(one, prices.earlier.get(symbol, {}))
        if not adjusted and abs(told / one.price - 1.0) > MIN_NOTED_CORRECTION:
            found.append((symbol, one.price, told))
    return found


def _merge(holdings: Mapping[str, Holding], renamed: Mapping[str, str]) -> dict[str, Holding]:
    """Return holdings under new symbols; of two of one symbol the price is the later one."""
    merged: dict[str, Holding] = {}
    for symbol, one in sorted(holdings.items()):
        name = renamed.get(symbol, symbol)
        other = merged.get(name, one)
        later = max(one, other, key=lambda each: each.day)
        merged[name] = one if other is one else replace(later, shares=one.shares + other.shares)
    return dict(sorted(merged.items()))


Number = TypeVar("Number", int, float)


def rename_keys(values: Mapping[str, Number], renamed: Mapping[str, str]) -> dict[str, Number]:
    """Return values by new symbol; values of one symbol are added."""
    found: dict[str, Number] = {}
    for symbol, value in values.items():
        name = renamed.get(symbol, symbol)
        found[name] = found[name] + value if name in found else value
    return found


def _want(symbol: str, held: Holding | None, target: float | None, equity: float, prices: DayPrices) -> float | None:
    """Return the shares to buy, negative to sell; None where nothing was decided or there is no open."""
    price = prices.opens.get(symbol)
    if target is None or price is None:
        return None
    return target * equity / price - (held.shares if held else 0.0)


def _clamp(wanted: float, held: Holding | None) -> float:
    """Return an order that only reduces: neither more shares than are held, nor the other side."""
    shares = held.shares if held else 0.0
    return min(max(wanted, -shares), 0.0) if shares >= 0 else max(min(wanted, -shares), 0.0)


def _fill(
    symbol: str, held: Holding | None, wanted: float | None, prices: DayPrices, trading: TradingTerms
) -> Fill | None:
    """Return what is traded of one symbol; None for nothing."""
    price = prices.opens.get(symbol)
    if price is None:
        gone = held is not None and symbol not in prices.closes and held.silent_days + 1 >= SILENT_DAYS
        if held is None or not gone:
            return None
        return Fill(symbol, -held.shares, held.price, abs(held.value) * trading.costs.side)
    if wanted is None:
        return None
    room = trading.max_volume_share * prices.volumes.get(symbol, 0.0) if trading.max_volume_share else abs(wanted)
    shares = math.copysign(min(abs(wanted), room), wanted)
    if not shares:
        return None
    return Fill(symbol, shares, price, abs(shares * price) * trading.costs.side, wanted - shares)


def _value_at_close(one: Holding, symbol: str, prices: DayPrices) -> Holding:
    close = prices.closes.get(symbol)
    if close is not None:
        best = max(one.best, close) if one.shares > 0 else min(one.best, close)
        before, before_day = prices.previous.get(symbol, (0.0, ""))
        return Holding(one.shares, close, prices.day, 0, before, best, before_day)
    return one if one.day == prices.day else replace(one, silent_days=one.silent_days + 1)
