"""One session of a simulated market without us: its price, its trades, and what its venues hide.

A seed gives the same session whatever is traded in it, so that algorithms are compared on the same days.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...risk import BP
from ..orders import refuse_unless
from ..schedule.curve import VolumeCurve, make_u_curve

LEAST_PRINT_SHARES = 50
"""Mean size of a print where a session has few shares: there are fewer prints then."""
ROUND_SHARE = 0.6
"""Share of prints in round hundreds."""
SIZE_SPREAD = 1.0
"""Standard deviation of the logarithm of a print's size."""
SIDE_DRIFT = 0.1
"""Standard deviation of the share of buys around a half; it decays with a half-life of about 14 steps."""
SIDE_MEMORY = 0.95
SHAPE_NOISE = 0.3
"""Standard deviation of the logarithm of a step's volume around the usual curve, with the same memory."""


@dataclass(frozen=True, slots=True)
class SimulatedVenue:
    """A venue of the simulated market.

    Attributes
    ----------
    name
        Its name.
    depth_bp
        Shares displayed at each price level, in bp of the volume that the whole market usually trades in a step.
    fee_e6, order_fee_e6
        Fee of a share, and of an order, in 1e-6 of the currency; a fee of a share below 0 is a rebate.
    latency_us
        Time until an order arrives.
    hidden_bp
        Mean of the shares that wait at the middle of the market without being displayed, in bp of the volume that the
        whole market usually trades in a step; drawn anew for each step.
    """

    name: str
    depth_bp: int
    fee_e6: int = 0
    order_fee_e6: int = 0
    latency_us: int = 0
    hidden_bp: int = 0


ONE_VENUE = (SimulatedVenue("X", 1_500),)


@dataclass(frozen=True, slots=True)
class MarketRules:
    """A simulated market.

    Attributes
    ----------
    open_us, close_us, step_us
        The session, and the steps in which its price moves.
    start_e4, end_e4
        First price, and the price at the close where it is given, in 1e-4.
    high_e4, low_e4
        Highest and lowest price of a session whose close is given too; None: as the walk goes.
    tick_e4
        Distance of two price levels, in 1e-4; the spread is one of them or two.
    volatility_bp
        Standard deviation of the price from open to close, in bp.
    day_shares
        Usual volume of a session.
    volume_noise
        Standard deviation of the logarithm of a session's volume around the usual one.
    prints
        Usual number of trades in a session.
    permanent_share
        What trading a whole session's usual volume moves the price for good, in units of the volatility.
    recovery_us
        Half-life of what an order took from the displayed depth.
    fade_bp
        Part of its display that a venue takes away once another venue filled a part of the same order before.
    venues
        At least one, names unique.
    """

    open_us: int
    close_us: int
    step_us: int
    start_e4: int
    end_e4: int | None = None
    high_e4: int | None = None
    low_e4: int | None = None
    tick_e4: int = 100
    volatility_bp: float = 150.0
    day_shares: int = 2_000_000
    volume_noise: float = 0.4
    prints: int = 4_000
    permanent_share: float = 0.314
    recovery_us: int = 120_000_000
    fade_bp: int = 0
    venues: tuple[SimulatedVenue, ...] = ONE_VENUE

    def __post_init__(self) -> None:
        """Refuse a market without steps, shares or venues."""
        refuse_unless(0 < self.step_us <= self.close_us - self.open_us, "step_us", self.step_us, "1 to the session")
        names = {venue.name for venue in self.venues}
        refuse_unless(0 < len(names) == len(self.venues), "venues", names, "at least one, names unique")
        for name in ("start_e4", "tick_e4", "day_shares", "prints", "recovery_us"):
            refuse_unless(getattr(self, name) > 0, name, getattr(self, name), "above 0")

    @property
    def steps(self) -> int:
        """Return the number of whole steps."""
        return (self.close_us - self.open_us) // self.step_us

    def usual_curve(self, intervals: int) -> VolumeCurve:
        """Return the usual volume of equal intervals: what a trader expects of this market."""
        return make_u_curve(self.open_us, self.close_us, intervals, self.day_shares)


@dataclass(frozen=True)
class SimulatedDay:
    """A session without us.

    Attributes
    ----------
    mid_e4
        Middle of the market in each step `[S]`, in 1e-4.
    usual_shares
        Usual volume of each step `[S]`.
    hidden_shares
        Undisplayed shares of each step and venue, on either side `[S, V]`.
    times_us, print_shares, print_signs
        Each trade of the others `[P]`: when, the earliest first; whole shares; 1 where a buyer took, -1 a seller.
    """

    mid_e4: NDArray[np.float64]
    usual_shares: NDArray[np.int64]
    hidden_shares: NDArray[np.int64]
    times_us: NDArray[np.int64]
    print_shares: NDArray[np.int64]
    print_signs: NDArray[np.int64]

    @cached_property
    def sums(self) -> NDArray[np.int64]:
        """Return the volume before each trade, and at the end `[P + 1]`."""
        return np.concatenate([[0], np.cumsum(self.print_shares)])

    def traded_shares(self, at_us: int) -> int:
        """Return the volume of the others up to and with a time."""
        return int(self.sums[np.searchsorted(self.times_us, at_us, side="right")])

    def mean_e4(self, until: float = 1.0) -> float:
        """Return the price's mean over time, in 1e-4, up to a share of the session."""
        return float(self.mid_e4[: self._count_steps(until)].mean())

    def weighted_e4(self, rules: MarketRules, until: float = 1.0) -> float:
        """Return the mean of the others' prices by their volume, in 1e-4, up to a share of the session."""
        steps = (self.times_us - rules.open_us) // rules.step_us
        counted = steps < self._count_steps(until)
        if not counted.any():
            return self.mean_e4(until)
        places = np.minimum(steps[counted], len(self.mid_e4) - 1)
        return float(np.average(self.mid_e4[places], weights=self.print_shares[counted]))

    def _count_steps(self, until: float) -> int:
        return min(max(int(np.ceil(until * len(self.mid_e4))), 1), len(self.mid_e4))


def draw_day(rules: MarketRules, seed: int) -> SimulatedDay:
    """Return one session; the same seed gives the same one."""
    rng = np.random.default_rng(seed)
    steps = rules.steps
    usual = np.array(rules.usual_curve(steps).volume_shares, np.int64)
    noise = draw_memory(rng, steps, SHAPE_NOISE)
    weights = usual * np.exp(noise)
    volume = rules.day_shares * np.exp(rules.volume_noise * rng.standard_normal() - rules.volume_noise**2 / 2)
    count = max(1, min(rules.prints, int(volume / LEAST_PRINT_SHARES)))
    counts = rng.multinomial(count, weights / weights.sum())
    step = np.repeat(np.arange(steps), counts)
    times = rules.open_us + step * rules.step_us + rng.integers(0, rules.step_us, count)
    buys = rng.random(count) < (0.5 + draw_memory(rng, steps, SIDE_DRIFT))[step]
    order = np.argsort(times, kind="stable")
    return SimulatedDay(
        mid_e4=_draw_mid(rng, rules),
        usual_shares=usual,
        hidden_shares=_draw_hidden(rng, rules, usual),
        times_us=times[order],
        print_shares=_draw_sizes(rng, volume, count),
        print_signs=np.where(buys, 1, -1)[order].astype(np.int64),
    )


def draw_memory(rng: np.random.Generator, steps: int, deviation: float) -> NDArray[np.float64]:
    """Return a series `[S]` of mean 0 that forgets slowly, with the given standard deviation."""
    shocks = rng.standard_normal(steps) * deviation
    series = np.empty(steps)
    fresh = np.sqrt(1 - SIDE_MEMORY**2)
    last = shocks[0]
    for place in range(steps):
        series[place] = last
        last = SIDE_MEMORY * last + fresh * shocks[(place + 1) % steps]
    return series


def _draw_mid(rng: np.random.Generator, rules: MarketRules) -> NDArray[np.float64]:
    """Return the price `[S]`: a random walk, or one tied to the close where that is given."""
    steps = rules.steps
    walk = (
        np.concatenate([[0.0], np.cumsum(rng.standard_normal(steps - 1))]) * rules.volatility_bp / BP / np.sqrt(steps)
    )
    if rules.end_e4 is not None:
        share = np.arange(steps) / max(steps - 1, 1)
        walk += share * (np.log(rules.end_e4 / rules.start_e4) - walk[-1])
    mid = np.asarray(rules.start_e4 * np.exp(walk), np.float64)
    return mid if rules.high_e4 is None or rules.low_e4 is None else pin_range(mid, rules.low_e4, rules.high_e4)


def pin_range(mid: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    """Return a path `[S]` whose lowest and highest prices are those given; its first and last ones stay.

    What lies above both ends is stretched to the high, what lies below both to the low. A path that never leaves the
    range of its ends touches each bound in its highest and lowest step between them.
    """
    above, below = max(mid[0], mid[-1]), min(mid[0], mid[-1])
    high, low = max(high, above), min(low, below)
    top, bottom = mid.max(), mid.min()
    found = mid.copy()
    if top > above:
        found = np.where(mid > above, above + (mid - above) * ((high - above) / (top - above)), found)
    if bottom < below:
        found = np.where(mid < below, below + (mid - below) * ((low - below) / (bottom - below)), found)
    if len(mid) > 3:
        inner = mid[1:-1]
        found[1 + int(inner.argmax())] = high
        found[1 + int(inner.argmin())] = low
    return found


def _draw_sizes(rng: np.random.Generator, volume: float, count: int) -> NDArray[np.int64]:
    """Return whole sizes `[P]` of trades that sum to about `volume`, most in round hundreds."""
    sizes = np.exp(SIZE_SPREAD * rng.standard_normal(count))
    sizes = np.maximum(sizes / sizes.sum() * volume, 1.0)
    rounded = np.maximum(np.round(sizes / 100) * 100, 100)
    is_round = (rng.random(count) < ROUND_SHARE) & (sizes >= 50)
    return np.asarray(np.where(is_round, rounded, np.floor(sizes)), np.int64)


def _draw_hidden(rng: np.random.Generator, rules: MarketRules, usual: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the undisplayed shares `[S, V]`: exponential, so that most steps have little."""
    means = usual[:, None] * np.array([venue.hidden_bp for venue in rules.venues]) / BP
    return np.asarray(np.floor(rng.exponential(1.0, means.shape) * means), np.int64)
