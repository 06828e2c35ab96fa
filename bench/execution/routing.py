"""Smart routing beside simpler routers: children of a VWAP schedule over four simulated venues.

python -m bench.execution routing [--sessions 200] [--size 2]

The venues differ in fees, depth, latency and hidden shares. A venue that has not been reached yet takes away half of
its display once another one filled a part of the same order.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from alphaloom.execution import PRICE_UNITS, ChildOrder, VenueQuote, VenueRoute, route_order
from alphaloom.execution.schedule import CostModel, ScheduleRules
from alphaloom.execution.simulation import MarketRules, Router, SimulatedMarket, SimulatedVenue, draw_day
from alphaloom.risk import BP
from bench.execution.trading import CLOSE_US, INTERVALS, MINUTE_US, OPEN_US, Way, show, trade

VENUES = (
    SimulatedVenue("maker", 600, fee_e6=3_000, latency_us=300),
    SimulatedVenue("inverted", 200, fee_e6=-1_500, latency_us=500),
    SimulatedVenue("far", 600, fee_e6=2_000, order_fee_e6=20_000, latency_us=4_000),
    SimulatedVenue("dark", 0, fee_e6=1_000, latency_us=900, hidden_bp=1_000),
)
RULES = MarketRules(OPEN_US, CLOSE_US, MINUTE_US, 500_000, venues=VENUES, fade_bp=5_000)
MODEL = CostModel(half_spread_bp=2.0, volatility_bp=RULES.volatility_bp)
SMART = "smart"


def keep_one(venue: str, child: ChildOrder, quotes: Sequence[VenueQuote], mid_e4: int) -> VenueRoute:
    """Send all to one venue."""
    return route_order(child, [quote for quote in quotes if quote.venue == venue], mid_e4)


def share_out(child: ChildOrder, quotes: Sequence[VenueQuote], mid_e4: int) -> VenueRoute:
    """Send to each displaying venue its part of what all display, whatever the price and the fee."""
    lit = [quote for quote in quotes if quote.levels]
    shown = [sum(shares for _, shares in quote.levels) for quote in lit]
    parts = [-(-child.shares * one // max(sum(shown), 1)) for one in shown]
    return route_order(
        child, [replace(quote, most_shares=part) for quote, part in zip(lit, parts, strict=True)], mid_e4
    )


def ignore_fees(child: ChildOrder, quotes: Sequence[VenueQuote], mid_e4: int) -> VenueRoute:
    """Take the best prices, whatever the fees."""
    return route_order(child, [replace(quote, fee_e6=0, order_fee_e6=0) for quote in quotes], mid_e4)


def ignore_hidden(child: ChildOrder, quotes: Sequence[VenueQuote], mid_e4: int) -> VenueRoute:
    """Count on displayed shares alone."""
    return route_order(child, [replace(quote, hidden_shares=0) for quote in quotes], mid_e4)


def send_at_once(child: ChildOrder, quotes: Sequence[VenueQuote], mid_e4: int) -> VenueRoute:
    """Route as the smart router does, and hold no order back."""
    route = route_order(child, quotes, mid_e4)
    return replace(route, slices=tuple(replace(one, hold_us=0) for one in route.slices))


ROUTERS: Mapping[str, Router] = {
    SMART: route_order,
    "smart, all sent at once": send_at_once,
    "smart, blind to hidden shares": ignore_hidden,
    "best price, blind to fees": ignore_fees,
    "in proportion to the display": share_out,
    "one venue (maker)": partial(keep_one, "maker"),
}


def main(given: Sequence[str]) -> int:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sessions", type=int, default=200, help="sessions, seeds from 0")
    options.add_argument("--size", type=float, default=2.0, help="order in %% of a usual day")
    asked = options.parse_args(given)
    shares, curve = int(RULES.day_shares * asked.size / 100), RULES.usual_curve(INTERVALS)
    way = Way(ScheduleRules("vwap", BP))
    days = [draw_day(RULES, seed) for seed in range(asked.sessions)]
    print(f"{shares} shares at {RULES.start_e4 / PRICE_UNITS:.0f}, {asked.sessions} sessions\n")
    print("| router | impact and fees, bp | less smart, bp | unfilled, % |")
    print("|---|---|---|---|")
    smart = np.zeros(len(days))
    for name, router in ROUTERS.items():
        found = [
            trade(SimulatedMarket(RULES, day, router), shares if seed % 2 else -shares, way, curve, MODEL)
            for seed, day in enumerate(days)
        ]
        paid = np.array([one.impact_bp for one in found])
        smart = paid if name == SMART else smart
        unfilled = np.mean([one.unfilled_bp for one in found]) / 100
        print(f"| {name} | {show(paid)} | {'-' if name == SMART else show(paid - smart)} | {unfilled:.1f} |")
    return 0
