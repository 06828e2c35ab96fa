"""Smart routing: one child order over venues that differ in price, fee, depth, latency and hidden liquidity.

What a route costs, above the value at `reference_e4`, in 1e-6 of the currency:

- price: each share at the level that it takes, against the reference,
- fee: `fee_e6` a share, below 0 where a venue pays a rebate, and `order_fee_e6` for each venue that gets an order,
- wait: `wait_e6` a share and millisecond until the slowest venue in the route is reached. Orders are held back so that
  they arrive together: a fill at the first venue then warns nobody at the next.

Given the set of venues, the cheapest shares are taken first, which is exact: a venue's levels get worse with depth, and
fee and wait are the same for each share. Every set of venues is tried, so the route is the cheapest there is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

from .orders import ChildOrder, refuse_unless

E6_PER_E4: Final = 100
"""Units of 1e-6 of the currency in one of 1e-4."""
US_PER_MS: Final = 1_000
MOST_VENUES: Final = 12
"""Venues of one route: all 4,096 sets are tried."""


@dataclass(frozen=True, slots=True)
class VenueQuote:
    """What one venue offers to an order of one side.

    Attributes
    ----------
    venue
        Its name.
    levels
        Price in 1e-4 and displayed shares of each level, the best first.
    fee_e6
        Fee of one share, in 1e-6 of the currency; below 0 is a rebate.
    order_fee_e6
        Fee of one order, in 1e-6 of the currency.
    latency_us
        Time until an order arrives.
    hidden_shares, hidden_e4
        Shares that are expected without being displayed, and their price in 1e-4; 0 where none are.
    most_shares
        Most shares of one order there; None for no limit.
    """

    venue: str
    levels: tuple[tuple[int, int], ...]
    fee_e6: int = 0
    order_fee_e6: int = 0
    latency_us: int = 0
    hidden_shares: int = 0
    hidden_e4: int = 0
    most_shares: int | None = None


@dataclass(frozen=True, slots=True)
class RouteSlice:
    """The part of a route that goes to one venue.

    Attributes
    ----------
    venue
        Its name.
    shares
        Whole shares.
    limit_e4
        Worst price that the route counts on there, in 1e-4.
    hold_us
        How long the order is held back, so that all arrive together.
    """

    venue: str
    shares: int
    limit_e4: int
    hold_us: int


@dataclass(frozen=True, slots=True)
class VenueRoute:
    """Where the shares of one child go.

    Attributes
    ----------
    slices
        One for each venue that gets an order, by name.
    cost_e6
        Expected cost above the value at the reference price, in 1e-6 of the currency.
    unrouted_shares
        Shares for which no venue shows liquidity within the limit.
    """

    slices: tuple[RouteSlice, ...]
    cost_e6: int
    unrouted_shares: int

    def split(self, child: ChildOrder) -> tuple[tuple[str, ChildOrder], ...]:
        """Return each venue with its limit order: ids are the child's with a dot and a number, `0f3a2b1c4d5e-3.1`."""
        return tuple(
            (
                one.venue,
                replace(
                    child,
                    id=f"{child.id}.{number}",
                    shares=one.shares,
                    kind="limit",
                    limit_e4=one.limit_e4,
                    at_us=child.at_us + one.hold_us,
                ),
            )
            for number, one in enumerate(self.slices, 1)
        )


def route_order(child: ChildOrder, quotes: Sequence[VenueQuote], reference_e4: int, wait_e6: int = 0) -> VenueRoute:
    """Return the cheapest route of a child.

    As many shares are routed as the venues have within the child's limit; among the routes of that many, the cheapest
    is returned, and among equal ones that with fewer venues, then the one that comes first by name.

    Parameters
    ----------
    child
        The order.
    quotes
        At most 12 venues, names unique.
    reference_e4
        Price from which cost is counted, in 1e-4: the middle of the market.
    wait_e6
        Expected loss of a share for each millisecond of waiting, in 1e-6 of the currency, 0 or more.
    """
    names = [quote.venue for quote in quotes]
    refuse_unless(len(set(names)) == len(names) <= MOST_VENUES, "quotes", names, f"at most {MOST_VENUES} unique names")
    refuse_unless(wait_e6 >= 0, "wait_e6", wait_e6, "0 or more")
    steps = {quote.venue: list(_list_steps(quote, child, reference_e4)) for quote in quotes}
    room = {venue: sum(step.shares for step in found) for venue, found in steps.items()}
    usable = sorted((quote for quote in quotes if room[quote.venue]), key=lambda quote: quote.venue)
    wanted = min(child.shares, sum(room.values()))
    best = VenueRoute((), 0, child.shares)
    for count in range(1, len(usable) + 1):
        for chosen in combinations(usable, count):
            if sum(room[quote.venue] for quote in chosen) < wanted:
                continue
            found = _fill(child, chosen, sorted(step for quote in chosen for step in steps[quote.venue]), wanted)
            cost = found.cost_e6 + _count_fixed(chosen, wanted, wait_e6)
            if not best.slices or cost < best.cost_e6:
                best = replace(found, cost_e6=cost)
    return best


@dataclass(frozen=True, slots=True, order=True)
class _Step:
    """Shares at one venue that cost the same, in 1e-6 a share above the reference; they sort by cost, then venue."""

    cost_e6: int
    venue: str
    price_e4: int
    shares: int


def _list_steps(quote: VenueQuote, child: ChildOrder, reference_e4: int) -> Iterator[_Step]:
    """Yield what a venue has within the child's limit, the best first, up to the venue's own limit."""
    sign = 1 if child.side == "buy" else -1
    left = child.shares if quote.most_shares is None else min(quote.most_shares, child.shares)
    offered = [*quote.levels, (quote.hidden_e4, quote.hidden_shares)]
    for price, shares in sorted(offered, key=lambda level: sign * level[0]):
        taken = min(shares, left)
        if taken <= 0 or (child.limit_e4 is not None and sign * (price - child.limit_e4) > 0):
            continue
        left -= taken
        yield _Step(sign * (price - reference_e4) * E6_PER_E4 + quote.fee_e6, quote.venue, price, taken)


def _count_fixed(chosen: Sequence[VenueQuote], wanted: int, wait_e6: int) -> int:
    """Return what a set of venues costs whatever the split: their orders, and the wait for the slowest."""
    slowest_us = max(quote.latency_us for quote in chosen)
    return sum(quote.order_fee_e6 for quote in chosen) + wanted * wait_e6 * slowest_us // US_PER_MS


def _fill(child: ChildOrder, chosen: Sequence[VenueQuote], steps: Sequence[_Step], wanted: int) -> VenueRoute:
    """Return the route that takes the cheapest steps first, at the price of its shares and their fees alone."""
    sign = 1 if child.side == "buy" else -1
    shares: dict[str, int] = {}
    limits: dict[str, int] = {}
    cost, left = 0, wanted
    for step in steps:
        taken = min(step.shares, left)
        if taken == 0:
            break
        left -= taken
        cost += taken * step.cost_e6
        shares[step.venue] = shares.get(step.venue, 0) + taken
        limits[step.venue] = sign * max(sign * step.price_e4, sign * limits.get(step.venue, step.price_e4))
    slowest_us = max(quote.latency_us for quote in chosen)
    slices = tuple(
        RouteSlice(quote.venue, shares[quote.venue], limits[quote.venue], slowest_us - quote.latency_us)
        for quote in chosen
        if quote.venue in shares
    )
    return VenueRoute(slices, cost, child.shares - wanted)
