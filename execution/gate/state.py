"""What the order gate knows: positions, last prices, own open orders and fills. It changes with each order and report.

Shares of an order count when it passes, before the venue has seen it, and are released when the venue ends it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final

from ...risk import MODES
from ..errors import ExecutionError
from ..orders import FINAL_REPORTS, ChildOrder, ExecutionReport, refuse_unless

_FILLED: Final = "filled"


class LiveOrder:
    """An order that passed, with what became of it.

    Attributes
    ----------
    order
        The order.
    remaining
        Shares that may still be filled; 0 once it ended.
    filled
        Shares that were filled.
    unit_e4
        Price at which a share counts, the worst that it may cost.
    credit_e4
        What it counts towards credit: remaining shares at that price and filled ones at the worse of both.
    increases
        Whether it counts towards credit at all.
    waits
        Whether it is a limit order of which nothing was filled or cancelled yet.
    repeats
        Whether it is among its side's `repeats`.
    """

    __slots__ = ("credit_e4", "filled", "increases", "order", "remaining", "repeats", "unit_e4", "waits")

    def __init__(self, order: ChildOrder, unit_e4: int, increases: bool) -> None:
        self.order = order
        self.remaining = order.shares
        self.filled = 0
        self.unit_e4 = unit_e4
        self.increases = increases
        self.credit_e4 = order.shares * unit_e4 if increases else 0
        self.waits = order.limit_e4 is not None
        self.repeats = True


class SideState:
    """Own orders on one side of one asset.

    Attributes
    ----------
    open
        Open orders by id.
    shares
        Their remaining shares.
    waiting
        Limit orders among them of which nothing was filled or cancelled yet.
    cancelled
        Times at which waiting orders were cancelled.
    fills
        Time, shares and price of each fill.
    repeats
        Orders of the session that were filled in part at least, or are open.
    levels, level_e4, level_us
        Levels that the price moved in this direction between own orders, the price at the last level, and the time of
        the last order.
    """

    __slots__ = ("cancelled", "fills", "level_e4", "level_us", "levels", "open", "repeats", "shares", "waiting")

    def __init__(self) -> None:
        self.open: dict[str, LiveOrder] = {}
        self.shares = self.waiting = self.repeats = self.levels = self.level_e4 = 0
        self.level_us = -1
        self.cancelled: deque[int] = deque()
        self.fills: deque[tuple[int, int, int]] = deque()


class AssetState:
    """One asset: position, prices, and own orders.

    Attributes
    ----------
    held
        Shares, negative where short.
    usual
        Shares traded of it on a usual day; None where that is not known.
    quote_e4, quoted_us, first_e4
        Its last price with its time, and the first one of the session; None before there is one.
    sent, sent_at_close
        Own shares of the session, executed and open; and those sent shortly before the close.
    buys, sells
        Own orders on each side.
    """

    __slots__ = ("buys", "first_e4", "held", "quote_e4", "quoted_us", "sells", "sent", "sent_at_close", "usual")

    def __init__(self, held: int, usual: int | None) -> None:
        self.held = held
        self.usual = usual
        self.quote_e4: int | None = None
        self.first_e4: int | None = None
        self.quoted_us = self.sent = self.sent_at_close = 0
        self.buys, self.sells = SideState(), SideState()

    def own(self, side: str) -> SideState:
        """Return own orders on a side."""
        return self.buys if side == "buy" else self.sells


class GateState:
    """All of it, with the money that the limits are shares of.

    `level` is the state of trading: 0 for active, 1 for reducing, 2 for halted.

    Parameters
    ----------
    equity_e4
        Equity of the book in 1e-4 of the currency.
    positions
        Shares held of each asset, negative where short.
    usual_shares
        Shares traded of each asset on a usual day; of an asset that is missing it is not known.
    located
        Shares that a lender promised of each asset; None: no list of locates is kept, and every asset can be borrowed
        that the policy does not exclude.

    Raises
    ------
    ExecutionError
        A number is malformed.
    """

    def __init__(
        self,
        equity_e4: int,
        positions: Mapping[str, int],
        usual_shares: Mapping[str, int],
        located: Mapping[str, int] | None = None,
    ) -> None:
        refuse_unless(type(equity_e4) is int and equity_e4 > 0, "equity_e4", equity_e4, "a whole number above 0")
        for field, table in (("positions", positions), ("usual_shares", usual_shares), ("located", located or {})):
            for asset, value in table.items():
                fine = type(value) is int and (value >= 0 or field == "positions")
                refuse_unless(fine, field, {asset: value}, "whole shares")
        self.equity_e4 = equity_e4
        self.located = located
        self.usual_shares = usual_shares
        self.assets = {asset: self._make_asset(asset, held) for asset, held in positions.items()}
        self.orders: dict[str, LiveOrder] = {}
        self.level = MODES.index("active")
        self.credit_e4 = 0
        self.last_us = 0
        self.day_ends_us = 0
        self.sent_at: dict[tuple[str, str, int, int | None], int] = {}
        self._reports: set[tuple[str, str]] = set()

    def _make_asset(self, asset: str, held: int) -> AssetState:
        return AssetState(held, self.usual_shares.get(asset))

    def find(self, asset: str) -> AssetState:
        """Return what is known of an asset."""
        found = self.assets.get(asset)
        if found is None:
            found = self.assets[asset] = self._make_asset(asset, 0)
        return found

    def count_sent(self, order: ChildOrder, unit_e4: int, increases: bool, at_us: int) -> LiveOrder:
        """Count an order that passed."""
        live = LiveOrder(order, unit_e4, increases)
        asset = self.find(order.asset)
        side = asset.own(order.side)
        self.orders[order.id] = side.open[order.id] = live
        self.sent_at[order.asset, order.side, order.shares, order.limit_e4] = at_us
        self.credit_e4 += live.credit_e4
        side.shares += order.shares
        side.waiting += live.waits
        side.repeats += 1
        asset.sent += order.shares
        return live

    def note_cancel(self, order_id: str, at_us: int) -> None:
        """Note that the end of an order is asked for: it stays open until the venue says so, but it waits no more."""
        live = self.orders.get(order_id)
        if live is None or not live.waits:
            return
        side = self.assets[live.order.asset].own(live.order.side)
        self._stop_waiting(live, side)
        side.cancelled.append(at_us)

    def apply(self, report: ExecutionReport) -> None:
        """Take a report of the venue; one that comes twice counts once.

        Raises
        ------
        ExecutionError
            The order did not pass this gate, or the numbers of a fill are malformed.
        """
        if (report.order, report.exec_id) in self._reports:
            return
        live = self.orders.get(report.order)
        if live is None:
            raise ExecutionError(
                "A venue reports an order that this gate did not pass.",
                field="order",
                got=report.order,
                hint="Stop, and compare the venue's orders with the record.",
                code="unknown_order",
                exit_code=1,
            )
        if report.kind == _FILLED:
            for field, value in (("shares", report.shares), ("price_e4", report.price_e4)):
                refuse_unless(type(value) is int and value > 0, field, value, "a whole number above 0")
        self._reports.add((report.order, report.exec_id))
        if report.kind == _FILLED:
            self._fill(live, report)
        elif report.kind in FINAL_REPORTS:
            self._end(live)

    def _fill(self, live: LiveOrder, report: ExecutionReport) -> None:
        """Count a fill; shares beyond those that remained count too, for the position is what it is."""
        asset = self.assets[live.order.asset]
        side = asset.own(live.order.side)
        released = min(report.shares, live.remaining)
        if live.increases:
            self._move_credit(live, report.shares * max(live.unit_e4, report.price_e4) - released * live.unit_e4)
        self._stop_waiting(live, side)
        live.remaining -= released
        live.filled += report.shares
        side.shares -= released
        asset.sent += report.shares - released
        asset.held += report.shares if live.order.side == "buy" else -report.shares
        side.fills.append((max(self.last_us, report.at_us), report.shares, report.price_e4))
        if not live.remaining:
            side.open.pop(live.order.id, None)

    def _end(self, live: LiveOrder) -> None:
        """Release what was not filled of an order that ended."""
        asset = self.assets[live.order.asset]
        side = asset.own(live.order.side)
        if side.open.pop(live.order.id, None) is None:
            return
        if live.increases:
            self._move_credit(live, -live.remaining * live.unit_e4)
        self._stop_waiting(live, side)
        side.shares -= live.remaining
        asset.sent -= live.remaining
        side.repeats -= live.repeats and not live.filled
        live.remaining = 0

    def _move_credit(self, live: LiveOrder, change_e4: int) -> None:
        live.credit_e4 += change_e4
        self.credit_e4 += change_e4

    def _stop_waiting(self, live: LiveOrder, side: SideState) -> None:
        side.waiting -= live.waits
        live.waits = False

    def begin_day(self, ends_us: int, repeats_cap: int) -> None:
        """Begin a new day: sums of the session start again with what is open; a side that was stopped stays so."""
        self.day_ends_us = ends_us
        self.sent_at.clear()
        self.credit_e4 = 0
        for asset in self.assets.values():
            asset.first_e4 = None
            asset.sent_at_close = 0
            asset.sent = asset.buys.shares + asset.sells.shares
            for side in (asset.buys, asset.sells):
                is_stopped = side.repeats >= repeats_cap
                side.repeats = side.repeats if is_stopped else len(side.open)
                for live in side.open.values():
                    live.repeats = live.repeats or not is_stopped
                    live.credit_e4 = live.remaining * live.unit_e4 if live.increases else 0
                    self.credit_e4 += live.credit_e4
