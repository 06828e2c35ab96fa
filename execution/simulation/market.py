"""A simulated market that our own orders move, to measure algorithms with: several venues, one price.

Each venue displays the same shares at every price level beyond half a spread. An order takes the nearest ones. What it
took comes back with a half-life; until then the next order pays more: the temporary impact. Each share also moves the
price for good: the permanent impact. It is a model, and no queue: an order fills at once, and what no venue has for it
expires.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ...risk import BP
from ..orders import ChildOrder, ExecutionReport, Side, refuse_unless
from ..routing import E6_PER_E4, VenueQuote, VenueRoute, route_order
from ..schedule.plan import SchedulePlan
from .day import MarketRules, SimulatedDay, SimulatedVenue

MOST_LEVELS = 40
"""Price levels that a venue displays."""
MOST_ROUTES = 8
"""Times that the rest of an order is routed."""

Router = Callable[[ChildOrder, Sequence[VenueQuote], int], VenueRoute]


class SimulatedMarket:
    """One session that can be traded once; a `Venue`, whose orders are due in the order in which they are sent.

    Parameters
    ----------
    rules, day
        The market, and the session without us.
    router
        From a child, quotes and the middle of the market to a route.
    """

    name = "simulation"

    def __init__(self, rules: MarketRules, day: SimulatedDay, router: Router = route_order) -> None:
        self.rules = rules
        self.day = day
        self.moved_e4 = 0.0
        """What our trades moved the price for good."""
        self.own_prints: list[tuple[int, int, int]] = []
        """When we traded, how many shares, and the sign, as the tape shows it: one for each child and venue."""
        self._router = router
        self._taken: dict[tuple[str, Side], tuple[int, float]] = {}
        self._hidden: dict[tuple[str, int], int] = {}
        self._reports: list[ExecutionReport] = []
        self._fills = 0
        self._last_us = rules.open_us

    def mid_e4(self, at_us: int) -> float:
        """Return the middle of the market with what our trades moved it, in 1e-4."""
        return max(float(self.day.mid_e4[self._step(at_us)]) + self.moved_e4, float(self.rules.tick_e4))

    def traded_shares(self, at_us: int) -> int:
        """Return the session's volume up to and with a time, ours with it: what the tape shows."""
        return self.day.traded_shares(at_us) + sum(shares for at, shares, _ in self.own_prints if at <= at_us)

    def list_quotes(self, side: Side, at_us: int) -> list[VenueQuote]:
        """Return what each venue displays to an order of one side, and what it hides on average."""
        step = self._step(at_us)
        usual = int(self.day.usual_shares[step])
        return [
            VenueQuote(
                venue.name,
                self._list_levels(venue, side, at_us),
                venue.fee_e6,
                venue.order_fee_e6,
                venue.latency_us,
                usual * venue.hidden_bp // BP,
                round(self.mid_e4(at_us)),
            )
            for venue in self.rules.venues
        ]

    def send(self, orders: Sequence[ChildOrder]) -> None:
        """Route each order and fill it at once, as far as its venues have shares within its limit."""
        for order in orders:
            refuse_unless(order.at_us >= self._last_us, "at_us", order.at_us, f"{self._last_us} or later")
            self._last_us = order.at_us
            self._trade(order)

    def cancel(self, ids: Sequence[str]) -> None:
        """Return at once: every order has ended when `send` returns."""

    def read_reports(self, timeout_s: float) -> Sequence[ExecutionReport]:
        """Return the reports since the last call."""
        found, self._reports = self._reports, []
        return found

    def close(self) -> None:
        """End the session: nothing is open."""

    def _step(self, at_us: int) -> int:
        """Return the place of a time among the steps."""
        return min(max((at_us - self.rules.open_us) // self.rules.step_us, 0), len(self.day.mid_e4) - 1)

    def _list_levels(self, venue: SimulatedVenue, side: Side, at_us: int) -> tuple[tuple[int, int], ...]:
        """Return price and shares of each level, the nearest first, without what was taken and is not back yet."""
        tick, sign = self.rules.tick_e4, 1 if side == "buy" else -1
        depth = int(self.day.usual_shares[self._step(at_us)]) * venue.depth_bp // BP
        # The nearest whole tick beyond the middle of the market by at least half a tick.
        first = -(-(sign * self.mid_e4(at_us) + tick / 2) // tick)
        if depth == 0:
            return ()
        gone, part = divmod(round(self._count_taken(venue.name, side, at_us)), depth)
        levels = []
        for place in range(gone, MOST_LEVELS):
            price = sign * int(first + place) * tick
            if price > 0:
                levels.append((price, depth - part if place == gone else depth))
        return tuple(levels)

    def _count_taken(self, venue: str, side: Side, at_us: int) -> float:
        """Return the shares that earlier orders took and that are not back yet."""
        then_us, shares = self._taken.get((venue, side), (at_us, 0.0))
        return float(shares * 0.5 ** (max(at_us - then_us, 0) / self.rules.recovery_us))

    def _trade(self, order: ChildOrder) -> None:
        """Route one order, fill its slices, route the rest again until nothing more fills; what is left expires.

        Hidden shares that were expected and not found are left out of further routes. Their orders have the order's id
        with the number of the round: `0f3a2b1c4d5e-3.r1.1`.
        """
        quotes, at_us, left = self.list_quotes(order.side, order.at_us), order.at_us, order.shares
        slowest_us = max(quote.latency_us for quote in quotes)
        for number in range(MOST_ROUTES):
            name = f"{order.id}.r{number}" if number else order.id
            filled = self._take(replace(order, id=name, shares=left, at_us=at_us), quotes)
            left -= filled
            if left == 0 or (number and not filled):
                break
            at_us += slowest_us
            quotes = [replace(quote, hidden_shares=0) for quote in self.list_quotes(order.side, at_us)]
        if left:
            reason = "no more shares within the limit"
            self._reports.append(
                ExecutionReport(order.id, "expired", f"{order.id}:expired", order.at_us, reason=reason)
            )

    def _take(self, order: ChildOrder, quotes: Sequence[VenueQuote]) -> int:
        """Route one order, fill its slices, and return the shares."""
        route = self._router(order, quotes, round(self.mid_e4(order.at_us)))
        venues = {venue.name: venue for venue in self.rules.venues}
        arrivals = [(part.at_us + venues[name].latency_us, name, part) for name, part in route.split(order)]
        first_us, filled = min((at_us for at_us, _, _ in arrivals), default=0), 0
        for at_us, name, part in sorted(arrivals, key=lambda one: one[:2]):
            filled += self._fill(venues[name], part, at_us, warned=filled > 0 and at_us > first_us)
        return filled

    def _fill(self, venue: SimulatedVenue, order: ChildOrder, at_us: int, warned: bool) -> int:
        """Fill one slice as it arrives at its venue, hidden shares first, and return the shares."""
        step, sign = self._step(at_us), 1 if order.side == "buy" else -1
        hidden = self._hidden.setdefault((venue.name, step), self._find_hidden(venue, step))
        levels = self._list_levels(venue, order.side, at_us)
        if warned:
            levels = tuple((price, count * (BP - self.rules.fade_bp) // BP) for price, count in levels)
        taken = take_shares(order, [(round(self.mid_e4(at_us)), hidden), *levels])
        filled = sum(taken)
        if filled == 0:
            return 0
        self._hidden[venue.name, step] -= taken[0]
        before = self._count_taken(venue.name, order.side, at_us)
        self._taken[venue.name, order.side] = (at_us, before + filled - taken[0])
        self.own_prints.append((at_us, filled, sign))
        per_day_e4 = self.rules.permanent_share * self.rules.volatility_bp / BP * self.rules.start_e4
        prices = [round(self.mid_e4(at_us)), *(price for price, _ in levels)]
        self.moved_e4 += sign * per_day_e4 * filled / self.rules.day_shares
        fee_e6 = venue.order_fee_e6
        for price, shares in zip(prices, taken, strict=True):
            if shares:
                cost_e4 = round((shares * venue.fee_e6 + fee_e6) / E6_PER_E4)
                fee_e6 = 0  # an order's own fee is paid once, with its first fill
                self._fills += 1
                exec_id = f"{order.id}:{venue.name}:{self._fills}"
                self._reports.append(ExecutionReport(order.id, "filled", exec_id, at_us, shares, price, cost_e4))
        return filled

    def _find_hidden(self, venue: SimulatedVenue, step: int) -> int:
        """Return the shares that a venue hid at the start of a step."""
        return int(self.day.hidden_shares[step, self.rules.venues.index(venue)])


def take_shares(order: ChildOrder, levels: Sequence[tuple[int, int]]) -> list[int]:
    """Return the shares that an order takes of each level, price and shares, within its limit."""
    sign = 1 if order.side == "buy" else -1
    left, taken = order.shares, []
    for price, shares in levels:
        within = order.limit_e4 is None or sign * (price - order.limit_e4) <= 0
        taken.append(min(shares, left) if within else 0)
        left -= taken[-1]
    return taken


def trade_plan(market: SimulatedMarket, plan: SchedulePlan) -> list[ExecutionReport]:
    """Send a plan's children when they are due, whatever the market trades, and return the reports."""
    market.send(plan.children)
    return list(market.read_reports(0))
