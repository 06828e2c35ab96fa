"""Generators of manipulative patterns: each plays one on a desk and yields the ruling on every order that it sends.

The definitions are in `execution/gate/patterns.py`. A generator gives up at the first refusal, as the gate intends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from alphaloom.execution import ChildOrder, OrderRuling

from .market import CLOSE, MINUTE, NOW, PRICE, SECOND, Desk

Generator = Callable[[Desk, Random], Iterator[OrderRuling]]


def layer(desk: Desk, draw: Random) -> Iterator[OrderRuling]:
    """Show interest on one side, trade on the other, and take the interest away; in either order."""
    shown, traded = draw.sample(["buy", "sell"], 2)
    away = -1 if shown == "buy" else 1
    layers = [desk.order(shown, 100, PRICE + away * (20 + place)) for place in range(draw.randint(6, 9))]  # type: ignore[arg-type]
    genuine = desk.order(traded, 50, PRICE)  # type: ignore[arg-type]
    steps = [genuine, *layers] if draw.random() < 0.5 else [*layers, genuine]
    at, live = NOW, []
    for order in steps:
        at += draw.randint(1, SECOND)
        ruling = desk.send(order, at)
        yield ruling
        if ruling.passed and order is not genuine:
            live.append(order)
    for order in live:
        desk.cancel(order, at)


def spoof_after_cancel(desk: Desk, draw: Random) -> Iterator[OrderRuling]:
    """Take the layers away just before the trade that they were for."""
    layers = [desk.order("sell", 100, PRICE + 20 + place) for place in range(draw.randint(6, 9))]
    for place, order in enumerate(layers):
        yield desk.send(order, NOW + place)
    for order in layers:
        desk.cancel(order, NOW + SECOND)
    yield desk.send(desk.order("buy", 100, PRICE), NOW + 2 * SECOND)


def stuff(desk: Desk, draw: Random) -> Iterator[OrderRuling]:
    """Send and cancel on one side as fast as it goes."""
    at, buys = NOW, draw.random() < 0.5
    for _ in range(100):
        at += draw.randint(1, 50_000)
        order = desk.order("buy" if buys else "sell", draw.randint(1, 50), PRICE - 50 if buys else PRICE + 50)
        ruling = desk.send(order, at)
        yield ruling
        if ruling.passed:
            desk.cancel(order, at + 1)


def mark_the_close(desk: Desk, draw: Random) -> Iterator[OrderRuling]:
    """Buy in the last minutes, small order by small order."""
    at = CLOSE - 10 * MINUTE
    for _ in range(40):
        at += draw.randint(1, 10 * SECOND)
        desk.gate.quote("AAA", PRICE, at)
        order = desk.order("buy", draw.randint(40, 90), None)
        ruling = desk.send(order, at)
        yield ruling
        if ruling.passed:
            desk.fill(order, at=at)


def push_through_stops(desk: Desk, draw: Random) -> Iterator[OrderRuling]:
    """Sell, see the price fall by the sale, and sell because it fell."""
    price, at = PRICE, NOW
    for _ in range(12):
        at += draw.randint(1, 10 * SECOND)
        desk.gate.quote("AAA", price, at)
        order = desk.order("sell", draw.randint(50, 100), None)
        ruling = desk.send(order, at)
        yield ruling
        if ruling.passed:
            desk.fill(order, price=price, at=at)
        price -= price * draw.randint(30, 60) // 10_000


def wash_trade(desk: Desk, draw: Random) -> Iterator[OrderRuling]:
    """Buy and sell the same shares at the same price."""
    at = NOW
    for place in range(8):
        at += draw.randint(1, 20 * SECOND)
        order: ChildOrder = desk.order("sell" if place % 2 else "buy", 80 + place, PRICE)
        ruling = desk.send(order, at)
        yield ruling
        if ruling.passed:
            desk.fill(order, price=PRICE + draw.randint(-100, 100), at=at)


PATTERNS: dict[str, tuple[str, Generator]] = {
    "layering": ("layering", layer),
    "spoofing": ("layering", spoof_after_cancel),
    "quote_stuffing": ("quote_stuffing", stuff),
    "marking_the_close": ("marking_the_close", mark_the_close),
    "stop_cascade": ("stop_cascade", push_through_stops),
    "wash": ("wash", wash_trade),
}
"""The rule that refuses it, and the generator, by pattern."""
