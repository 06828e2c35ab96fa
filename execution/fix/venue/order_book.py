"""An order book with price-time priority, and the synthetic depth that it begins with."""

from __future__ import annotations

import hashlib
from bisect import insort
from collections import deque
from dataclasses import dataclass
from typing import Final

from ...orders import PRICE_UNITS, Side

DEPTH_LEVELS: Final = 10
DEPTH_LOT: Final = 100
DEPTH_LOTS: Final = 20
"""Most lots at the best price; a level further away has more, in proportion to its distance."""
TICK_E4: Final = 100
SMALL_TICK_E4: Final = 1


@dataclass(slots=True)
class RestingOrder:
    """Shares that rest at a price.

    Attributes
    ----------
    id
        Unique in the book.
    side
        "buy" or "sell".
    price_e4
        In 1e-4 of the currency.
    shares
        Shares that are left, above 0.
    synthetic
        Whether it is depth that no client sent.
    """

    id: str
    side: Side
    price_e4: int
    shares: int
    synthetic: bool


@dataclass(frozen=True, slots=True)
class BookFill:
    """Shares that an incoming order took from a resting one, at the price of the resting one."""

    resting: RestingOrder
    shares: int
    price_e4: int


def draw(seed: int, *words: str) -> int:
    """Return a whole number from 0 to 2**32 - 1 that depends on the seed and the words alone."""
    text = "\n".join((str(seed), *words)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=4).digest(), "big")


def make_depth(symbol: str, reference_e4: int, seed: int) -> list[RestingOrder]:
    """Return ten levels a side around a price, one tick apart."""
    tick = TICK_E4 if reference_e4 >= PRICE_UNITS else SMALL_TICK_E4
    depth = []
    for level in range(1, DEPTH_LEVELS + 1):
        sides: tuple[tuple[Side, int], ...] = (("buy", -1), ("sell", 1))
        for side, sign in sides:
            price = reference_e4 + sign * level * tick
            lots = 1 + draw(seed, "depth", symbol, side, str(level)) % DEPTH_LOTS
            if price > 0:
                depth.append(RestingOrder(f"depth-{side}-{level}", side, price, lots * level * DEPTH_LOT, True))
    return depth


class OrderBook:
    """The orders of one symbol: the best price first, the oldest first at a price.

    Synthetic depth that was taken returns before the next order, behind what rests at its price, and only where it
    meets no client's order: each order finds the same depth, whatever came before it.

    Parameters
    ----------
    depth
        The synthetic depth.
    """

    def __init__(self, depth: list[RestingOrder]) -> None:
        self._depth = {order.id: (order.side, order.price_e4, order.shares) for order in depth}
        self._orders: dict[str, RestingOrder] = {}
        self._queues: dict[Side, dict[int, deque[str]]] = {"buy": {}, "sell": {}}
        self._prices: dict[Side, list[int]] = {"buy": [], "sell": []}
        self.refill()

    def refill(self) -> None:
        """Bring the synthetic depth back to its full size."""
        for id, (side, price, shares) in self._depth.items():
            there = self._orders.get(id)
            if there is not None:
                there.shares = shares
                continue
            best = self.find_best("sell" if side == "buy" else "buy")
            if best is None or (best > price if side == "buy" else best < price):
                self.rest(RestingOrder(id, side, price, shares, True))

    def find_best(self, side: Side) -> int | None:
        """Return the best price of a side; None where nothing rests there."""
        prices = self._prices[side]
        return abs(prices[0]) if prices else None

    def rest(self, order: RestingOrder) -> None:
        """Add an order behind those at its price."""
        self._orders[order.id] = order
        queue = self._queues[order.side].get(order.price_e4)
        if queue is None:
            queue = self._queues[order.side][order.price_e4] = deque()
            insort(self._prices[order.side], -order.price_e4 if order.side == "buy" else order.price_e4)
        queue.append(order.id)

    def remove(self, id: str) -> None:
        """Take an order out of the book; nothing happens where it is gone."""
        order = self._orders.pop(id, None)
        if order is None:
            return
        queue = self._queues[order.side][order.price_e4]
        queue.remove(id)
        if not queue:
            del self._queues[order.side][order.price_e4]
            self._prices[order.side].remove(-order.price_e4 if order.side == "buy" else order.price_e4)

    def match(self, side: Side, shares: int, limit_e4: int | None) -> list[BookFill]:
        """Return what an incoming order takes, best price and oldest order first, and take it out of the book."""
        other: Side = "sell" if side == "buy" else "buy"
        fills = []
        while shares:
            best = self.find_best(other)
            if best is None:
                break
            if limit_e4 is not None and (best > limit_e4 if side == "buy" else best < limit_e4):
                break
            resting = self._orders[self._queues[other][best][0]]
            taken = min(shares, resting.shares)
            fills.append(BookFill(resting, taken, best))
            shares -= taken
            resting.shares -= taken
            if not resting.shares:
                self.remove(resting.id)
        return fills
