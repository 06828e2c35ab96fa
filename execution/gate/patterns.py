"""Manipulative patterns: what an order would look like beside own orders and fills, each with its definition.

These are pre-trade controls on one account, not surveillance of a market. Each measures what a supervisor looks for
and errs on the strict side; a desk that makes markets sets the limit to null and watches by other means.

Layering and spoofing
    Own limit orders wait on one side of an asset, to show interest, while the other side trades. Measured: own limit
    orders on one side of which nothing was filled, those cancelled within `pattern_s` included, when own orders on the
    other side are open, just cancelled, or the order itself.
Quote stuffing
    Many orders are sent and cancelled, none to be filled. Measured: own limit orders of the asset, either side,
    cancelled without a fill within `stuffing_s`.
Marking the close
    Trading shortly before the close moves the closing price. Measured: own shares sent within `close_minutes` of the
    close with this order, of the shares of a usual day; cancelled ones count.
Stop cascade
    Own orders push the price, and the price triggers further own orders. Measured: levels of `cascade_step_bp` by which
    the price moved in the order's direction between own orders on its side, none later than `pattern_s` after the one
    before.
Wash trade
    Own buying and selling cancel each other out, and volume is shown that is none. Measured: own shares filled on the
    other side within `pattern_s` at a price within `wash_bp` of the order's. An own open order that it would cross is
    the rule `self_trade`.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from ...risk import BP
from ..orders import ChildOrder
from .state import AssetState, SideState

_BUY: Final = "buy"


def count_crossing(order: ChildOrder, other: SideState) -> int:
    """Return the own open shares on the other side that an order would trade with."""
    limit, buys, crossing = order.limit_e4, order.side == _BUY, 0
    for live in other.open.values():
        rest = live.order.limit_e4
        if limit is None or rest is None or (limit >= rest if buys else limit <= rest):
            crossing += live.remaining
    return crossing


def count_layers(order: ChildOrder, own: SideState, other: SideState, since_us: int) -> int:
    """Return the unfilled limit orders that wait on one side while the other side trades."""
    if not other.open and not other.cancelled:
        return 0
    behind = other.waiting + _count_since(other.cancelled, since_us)
    if not behind and not other.open:
        return 0
    ahead = own.waiting + _count_since(own.cancelled, since_us) + (order.limit_e4 is not None)
    return max(ahead, behind)


def count_stuffing(asset: AssetState, since_us: int) -> int:
    """Return the orders of an asset that were cancelled without a fill since a time."""
    return _count_since(asset.buys.cancelled, since_us) + _count_since(asset.sells.cancelled, since_us)


def measure_levels(own: SideState, quote_e4: int, rises: bool, step_bp: int, since_us: int) -> tuple[int, int]:
    """Return the levels that the price has moved between own orders on a side, and its value at the last level.

    A move back by a level, or no own order within the window, begins again.
    """
    if own.level_us <= since_us:
        return 0, quote_e4
    moved = (quote_e4 - own.level_e4 if rises else own.level_e4 - quote_e4) * BP
    step = own.level_e4 * step_bp
    if moved >= step:
        return own.levels + moved // step, quote_e4
    return (0, quote_e4) if moved <= -step else (own.levels, own.level_e4)


def count_washed(other: SideState, price_e4: int, near_bp: int, since_us: int) -> int:
    """Return the own shares that were filled on the other side since a time at a like price."""
    fills = other.fills
    while fills and fills[0][0] <= since_us:
        fills.popleft()
    return sum(
        shares for time, shares, filled in fills if time > since_us and abs(filled - price_e4) * BP <= filled * near_bp
    )


def drop_cancels(asset: AssetState, since_us: int) -> None:
    """Forget cancels that no window reaches any more."""
    for times in (asset.buys.cancelled, asset.sells.cancelled):
        while times and times[0] <= since_us:
            times.popleft()


def _count_since(times: deque[int], since_us: int) -> int:
    return sum(time > since_us for time in times) if times else 0
