"""The paper venue of a schedule: a simulated session of each name, pinned to its open, high, low, close and volume.

A panel of days has no price between open and close, so a slice at noon needs one that is made up. The path of each
name is drawn from its seed, and touches the four prices of its day. Its market has the day's volume in the usual shape,
and what our orders take and move stays taken and moved (`execution/simulation`): a later slice pays for earlier ones.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from ...risk import BP
from ..orders import US_PER_SECOND, ChildOrder, ExecutionReport
from ..schedule.slippage import Benchmark
from ..simulation.day import MarketRules, SimulatedVenue, draw_day
from ..simulation.market import SimulatedMarket
from .paper import NO_OPEN, NO_VOLUME

LEAST_STEP_US: Final = 60 * US_PER_SECOND
LEAST_STEPS: Final = 26
STEP_SHARES: Final = 100
"""Usual volume of a step: where a name trades less in a minute, steps are longer, so that each displays some shares."""
LEVEL_BP: Final = 1_500
USUAL_TICK_BP: Final = 2.0
USUAL_VOLATILITY_BP: Final = 150.0
"""At a tick of 2 bp and a volatility of 150 bp a level displays 15 % of a step's volume; wider ticks more, wilder names
less. So the markets in `bench/execution` are."""


@dataclass(frozen=True)
class NameSession:
    """What a panel says of one name's session, and what its market is made with.

    Attributes
    ----------
    open_e4, high_e4, low_e4, close_e4
        Its prices in 1e-4.
    day_shares
        Its volume, above 0.
    volatility_bp
        Standard deviation of its price from open to close, above 0: it scales depth and permanent impact.
    seed
        Of its path.
    room_shares
        Whole shares that may be traded; None: no limit.
    """

    open_e4: int
    high_e4: int
    low_e4: int
    close_e4: int
    day_shares: int
    volatility_bp: float
    seed: int
    room_shares: int | None = None


@dataclass(frozen=True)
class MarketTerms:
    """What the markets of all names share.

    Attributes
    ----------
    spans
        Opening and closing of each part of the session, microseconds since 1970 in UTC. A break has no trade.
    cost_bp
        Cost of trading beside spread, impact and the venues' fees, in basis points of the value.
    half_spread_bp
        Expected half of the spread.
    participation_bp
        Largest share of the volume so far that orders of a name may fill.
    venues
        At least one. `depth_bp` is the share of a usual market's display.
    """

    spans: tuple[tuple[int, int], ...]
    cost_bp: float
    half_spread_bp: float
    participation_bp: int = BP
    venues: tuple[SimulatedVenue, ...] = (SimulatedVenue("X", BP),)

    @property
    def open_us(self) -> int:
        """Return the opening."""
        return self.spans[0][0]

    @property
    def length_us(self) -> int:
        """Return how long it is open."""
        return sum(closes - opens for opens, closes in self.spans)

    def find_market_us(self, at_us: int) -> int:
        """Return a time on a clock that stands still in breaks."""
        return self.open_us + sum(min(max(at_us - opens, 0), closes - opens) for opens, closes in self.spans)


class Clock(Protocol):
    """Tells the time of a session."""

    def now_us(self) -> int:
        """Return the present, microseconds since 1970 in UTC."""
        ...


class SimulatedPaper:
    """A venue that answers each order at once and for good: what it answers follows from the session and its orders.

    Parameters
    ----------
    names
        By symbol; one that does not trade has none, and its orders expire.
    terms
        What their markets share.
    time
        The clock of the session.
    """

    name = "paper"

    def __init__(self, names: Mapping[str, NameSession], terms: MarketTerms, time: Clock) -> None:
        self._names = names
        self._time = time
        self._terms = terms
        self._markets: dict[str, SimulatedMarket] = {}
        self._traded: dict[str, int] = {}
        self._reports: list[ExecutionReport] = []

    def send(self, orders: Sequence[ChildOrder]) -> None:
        """Trade orders now."""
        for order in orders:
            self._trade(order, max(order.at_us, self._time.now_us()))

    def replay(self, orders: Sequence[tuple[ChildOrder, int]]) -> None:
        """Trade all that an earlier process sent, each at its time: the same markets give the same reports."""
        for order, at_us in orders:
            self._trade(order, max(order.at_us, at_us))

    def find_room(self, asset: str, at_us: int) -> int | None:
        """Return the shares that may be filled now, by the volume so far with ours; None of one that does not trade."""
        if asset not in self._names:
            return None
        market = self._find(asset)
        volume = market.traded_shares(self._terms.find_market_us(at_us))
        return max(volume * self._terms.participation_bp // BP - self._traded.get(asset, 0), 0)

    def list_prices(self, assets: Collection[str], at_us: int) -> dict[str, int]:
        """Return the middle of the market of each asset that trades, with what our orders moved it, in 1e-4."""
        then_us = self._terms.find_market_us(at_us)
        return {name: round(self._find(name).mid_e4(then_us)) for name in sorted(assets) if name in self._names}

    def find_benchmark(self, asset: str, benchmark: Benchmark, until_us: int) -> int | None:
        """Return the mean price of a market without us up to a time, in 1e-4; None of "arrival" and without a trade."""
        if benchmark == "arrival" or asset not in self._names:
            return None
        market = self._find(asset)
        until = (self._terms.find_market_us(until_us) - self._terms.open_us) / self._terms.length_us
        day = market.day
        return round(day.mean_e4(until) if benchmark == "twap" else day.weighted_e4(market.rules, until))

    def cancel(self, ids: Sequence[str]) -> None:
        """Do nothing: an order has ended when it was sent."""

    def read_reports(self, timeout_s: float) -> Sequence[ExecutionReport]:
        """Return what was answered since the last call."""
        reports, self._reports = self._reports, []
        return reports

    def close(self) -> None:
        """Do nothing: nothing is open."""

    def _find(self, asset: str) -> SimulatedMarket:
        """Return the market of an asset, drawn when it is first asked for."""
        if asset not in self._markets:
            one = self._names[asset]
            rules = make_rules(one, self._terms)
            self._markets[asset] = SimulatedMarket(rules, draw_day(rules, one.seed))
        return self._markets[asset]

    def _trade(self, order: ChildOrder, at_us: int) -> None:
        one = self._names.get(order.asset)
        if one is None:
            self._expire(order, at_us, NO_OPEN)
            return
        traded = self._traded.get(order.asset, 0)
        room = order.shares if one.room_shares is None else min(max(one.room_shares - traded, 0), order.shares)
        filled, why = 0, NO_VOLUME
        if room:
            market, then_us = self._find(order.asset), self._terms.find_market_us(at_us)
            market.send([replace(order, shares=room, at_us=then_us)])
            for report in market.read_reports(0.0):
                if report.kind == "expired":
                    why = report.reason
                    continue
                filled += report.shares
                cost_e4 = report.cost_e4 + round(report.shares * report.price_e4 * self._terms.cost_bp / BP)
                fill = report.shares, report.price_e4, cost_e4
                filled_us = at_us + report.at_us - then_us
                self._reports.append(ExecutionReport(order.id, "filled", report.exec_id, filled_us, *fill))
        self._traded[order.asset] = traded + filled
        if filled < order.shares:
            self._expire(order, at_us, why if filled < room else NO_VOLUME)

    def _expire(self, order: ChildOrder, at_us: int, why: str) -> None:
        self._reports.append(ExecutionReport(order.id, "expired", f"{order.id}-expired", at_us, reason=why))


def make_rules(one: NameSession, terms: MarketTerms) -> MarketRules:
    """Return the market of a name: a level of its book is half a usual spread, and its depth follows its volume."""
    length_us = terms.length_us
    steps = max(min(length_us // LEAST_STEP_US, one.day_shares // STEP_SHARES), LEAST_STEPS)
    tick_e4 = max(round(one.open_e4 * terms.half_spread_bp / BP), 1)
    tick_bp = tick_e4 * BP / one.open_e4
    level_bp = LEVEL_BP * tick_bp / USUAL_TICK_BP * USUAL_VOLATILITY_BP / one.volatility_bp
    venues = tuple(replace(venue, depth_bp=round(level_bp * venue.depth_bp / BP)) for venue in terms.venues)
    return MarketRules(
        terms.open_us,
        terms.open_us + length_us,
        max(length_us // steps, 1),
        one.open_e4,
        one.close_e4,
        one.high_e4,
        one.low_e4,
        tick_e4,
        one.volatility_bp,
        one.day_shares,
        volume_noise=0.0,
        venues=venues,
    )
