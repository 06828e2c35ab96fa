"""A market that can be simulated, with as much truth in it as its configuration says, and none besides.

The core. With i a name, t a day, and each move split into a night (close to open, 25 % of the variance) and a day:

    log return   r[i,t] = beta[i] m[t] + load[i] s[sector(i),t] + g[industry(i),t] + e[i,t] + planted drift
    each shock   = level x mood[t] x sqrt(h[t]) x z[t],   z = night + day, both Student-t with 5 degrees of freedom
    variance     h[t+1] = 0.02 + h[t] (0.92 + 0.06 z[t]^2), kept within [0.2, 16]
    mood         1 for the market m; h_market[t]^(1/4) for sectors s, industries g and names e

Betas are normal around 1 (deviation 0.3), sector loadings uniform in [0.6, 1.4], levels of e lognormal (0.35).

There is no market drift, no leverage effect (volatility is an even function of past shocks) and no premium for beta, size
or volatility: every name's log return is symmetric about the one median 0, given all that came before. So without
plants nothing known at t orders later returns in ranks, over any horizon. It is not so for means: a simple return
is exp(r) - 1, whose mean rises with half the variance, so volatile names have the higher *mean* return while the
ranks know nothing of it.

Around the core. Names list late, vanish and miss days by chances that know no return. High and low reach beyond open
and close by a half-normal of half the day's own volatility. Turnover rises with the day's absolute move, and remembers.
A split follows a quoted close above 180, a consolidation one below 4; prices are adjusted from the first day on, so no
level knows a later split (back-adjusted real prices do). Symbols spell the seed. Equal configurations give equal bytes.

The plants. A plant's signal, known at the close of t, becomes the normal score of its cross-sectional rank, and adds

    strength x decay[t] x (median own volatility of day t) x score[i,t]

to the log return from open[t+1] to open[t+2]: three quarters in the day of t+1, one quarter in the night after it.
The strength is such that the mean daily RankIC of the signal against the whole return open[t+6] / open[t+1] - 1, market
and sector moves included, nothing neutralised, is the target in expectation at full life (`market/synthetic/drift.py` says how;
each plant is calibrated with its own drift alone, `joint_rank_ic` is the expectation with all of them at work). A
signal reads prices that hold the drift, so signals and drift are computed in three passes, each on the panel of the pass
before; what is left of the difference is measured and stated as `consistency`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from ..errors import MarketError
from ..panel import Panel
from .drift import DriftScale, make_yardstick, mean_rank_ic, normal_scores
from .listings import Listings, Turnover, draw_listings
from .noise import NoiseReturns, Volatilities, draw_noise
from .quotes import Trading, draw_trading, quote

CALIBRATION_PASSES = 3
MAX_RANK_IC = 0.08
REVERSING_SHARE = 0.05
"""A signal that reaches less than this share of its target at the first guess takes its own push back within five days."""


class SyntheticConfig(BaseModel):
    """States a synthetic market; volatilities are daily, in log units; shares are of all names over the whole span."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int = Field(default=7, ge=0, description="every random draw follows from it")
    days: int = Field(default=1500, ge=60, le=50_000, description="business days from 2010-01-04 on")
    names: int = Field(default=400, ge=20, le=5_000, description="names that trade on at least one day")
    nothing: bool = Field(default=False, description="true: a market with nothing in it; plants are refused")
    market_volatility: float = Field(default=0.010, gt=0, le=0.1)
    sector_volatility: float = Field(default=0.006, gt=0, le=0.1)
    industry_volatility: float = Field(default=0.003, gt=0, le=0.1)
    name_volatility: float = Field(default=0.016, gt=0, le=0.1, description="own volatility of the median name")
    late_listings: float = Field(default=0.15, ge=0, le=0.9, description="share of names that list after the first day")
    delistings: float = Field(default=0.15, ge=0, le=0.9, description="share of names that vanish before the last day")
    halts: float = Field(default=0.001, ge=0, le=0.1, description="chance that a halt of 1 to 4 days begins on a day")


@dataclass(frozen=True)
class Plant:
    """Asks for a planted alpha.

    Attributes
    ----------
    text : str
        A label, usually the expression that `signal` computes.
    signal : Callable[[Panel], NDArray]
        Values `[T, N]` known at the close of each day; NaN means no opinion. It must not look ahead.
    rank_ic : float
        Target mean daily RankIC against the five-day return from the next open, in (0, 0.08], by its own drift alone.
        Plants whose signals are alike add up: plant distinct ones, and read `joint_rank_ic` of what was planted.
    start, end : float
        The part of the days on which it lives, as shares of the span.
    half_life_days : float, optional
        Days in which its strength halves, counted from its start; None for an alpha that does not fade.
    """

    text: str
    signal: Callable[[Panel], NDArray[np.floating]]
    rank_ic: float
    start: float = 0.0
    end: float = 1.0
    half_life_days: float | None = None


@dataclass(frozen=True)
class PlantedAlpha:
    """States what was planted: rows `first_day` up to, not including, `end_day`, and how strong.

    `strength` is the drift in own volatilities of the median name for a score of one; `rank_ic` the target at full
    life; `joint_rank_ic` the expected mean RankIC over the whole span with every plant and every decay at work;
    `consistency` the mean rank correlation between the signal that drives the drift and the signal on the final panel.
    """

    text: str
    rank_ic: float
    first_day: int
    end_day: int
    half_life_days: float | None
    strength: float
    joint_rank_ic: float
    consistency: float


@dataclass(frozen=True)
class SyntheticMarket:
    """Holds a simulated panel and the truth about it.

    `expected_return` `[T, N]`, decimal, read-only: the simple return from open[t+1] to open[t+2] that the plants make
    one expect at the close of t, free of noise; market drift (there is none) and the half variance that lifts the mean
    of every simple return are left out, so it is 0 everywhere where nothing is planted.
    """

    panel: Panel
    expected_return: NDArray[np.float64]
    plants: tuple[PlantedAlpha, ...]


@dataclass(frozen=True)
class World:
    """Holds all that was drawn; prices follow from it and the drift."""

    listings: Listings
    noise: NoiseReturns
    trading: Trading
    yardstick: DriftScale
    notes: tuple[str, ...]

    def panel(self, drift: NDArray[np.float64] | None = None) -> Panel:
        """Return the panel with this log drift in it."""
        return quote(self.listings, self.noise, self.trading, drift, self.notes)


def simulate(config: SyntheticConfig, plants: Sequence[Plant] = ()) -> SyntheticMarket:
    """Simulate a market.

    Parameters
    ----------
    config : SyntheticConfig
        Equal configurations (and plants) give panels of equal digest.
    plants : Sequence[Plant]
        What to plant; must be empty for a null market. A plant changes returns and what follows from prices (amount,
        cap, splits), and no listing, halt, turnover or range.

    Raises
    ------
    MarketError
        If a null market is asked to hold plants, a plant's numbers are out of range, its signal has the wrong shape or
        no values, or it reverses so fast that no push can give it a five-day RankIC.
    """
    check_plants(config, plants)
    world = draw_world(config)
    drift = np.zeros(world.listings.listed.shape)
    if not plants:
        return SyntheticMarket(world.panel(), _freeze_array(drift), ())
    panel = world.panel()
    strengths = [1.5 * plant.rank_ic for plant in plants]
    scores: list[NDArray[np.float64]] = []
    for done in range(CALIBRATION_PASSES):
        scores = [plant_scores(plant, panel) for plant in plants]
        strengths = [
            calibrate(world.yardstick, plant, score, strength, steps=2 if done == 0 else 1)
            for plant, score, strength in zip(plants, scores, strengths, strict=True)
        ]
        drift = total_drift(world, plants, scores, strengths)
        panel = world.panel(drift)
    stated = tuple(
        state_planted(world, plant, score, strength, drift, panel)
        for plant, score, strength in zip(plants, scores, strengths, strict=True)
    )
    return SyntheticMarket(panel, _freeze_array(np.expm1(drift)), stated)


def draw_world(config: SyntheticConfig) -> World:
    """Draw everything that is random, each part from its own stream, so that no part shifts another."""
    streams = [np.random.default_rng(child) for child in np.random.SeedSequence(config.seed).spawn(3)]
    turnover = Turnover(config.late_listings, config.delistings, config.halts)
    listings = draw_listings(streams[0], config.seed, config.days, config.names, turnover)
    levels = Volatilities(
        config.market_volatility, config.sector_volatility, config.industry_volatility, config.name_volatility
    )
    noise = draw_noise(streams[1], listings, levels)
    note = f"synthetic market, seed {config.seed}" + (", null: nothing is in it" if config.nothing else "")
    return World(listings, noise, draw_trading(streams[2], noise), make_yardstick(listings, noise), (note,))


def check_plants(config: SyntheticConfig, plants: Sequence[Plant]) -> None:
    """Refuse plants that cannot be."""
    if config.nothing and plants:
        hint = "Leave out the plants, or set nothing to false."
        raise MarketError("a null market holds nothing", field="plants", got=[p.text for p in plants], hint=hint)
    for plant in plants:
        if not 0 < plant.rank_ic <= MAX_RANK_IC:
            allowed = f"above 0, at most {MAX_RANK_IC}"
            raise MarketError(f"plant {plant.text!r}", field="rank_ic", got=plant.rank_ic, allowed=allowed)
        if not 0 <= plant.start < plant.end <= 1:
            allowed = "0 <= start < end <= 1"
            raise MarketError(f"plant {plant.text!r}", field="start", got=[plant.start, plant.end], allowed=allowed)
        if plant.half_life_days is not None and not plant.half_life_days > 0:
            got = plant.half_life_days
            raise MarketError(f"plant {plant.text!r}", field="half_life_days", got=got, allowed="above 0")


def plant_scores(plant: Plant, panel: Panel) -> NDArray[np.float64]:
    """Return the plant's normal scores `[T, N]` on this panel, NaN outside the universe."""
    signal = np.asarray(plant.signal(panel), dtype=np.float64)
    if signal.shape != panel.universe.shape:
        got, allowed = list(signal.shape), list(panel.universe.shape)
        text = f"plant {plant.text!r}: its signal does not fit the panel"
        raise MarketError(text, field="signal", got=got, allowed=allowed)
    scores = normal_scores(np.where(panel.universe, signal, np.nan))
    if not np.nanmax(np.abs(scores), initial=0.0) > 0:
        raise MarketError(f"plant {plant.text!r}: its signal orders no names", field="signal")
    return scores


def calibrate(yardstick: DriftScale, plant: Plant, score: NDArray[np.float64], strength: float, steps: int) -> float:
    """Return the strength at which the score has the plant's RankIC, by as many proportional steps."""
    unit = np.nan_to_num(score) * yardstick.scale[:, None]
    for _ in range(steps):
        reached = yardstick.rank_ic(score, strength * unit)
        if reached < REVERSING_SHARE * plant.rank_ic:
            text = f"plant {plant.text!r}: its signal takes its own push back within five days"
            raise MarketError(
                text, field="signal", hint="Plant a signal that lasts longer, or its average over a week."
            )
        strength *= plant.rank_ic / reached
    return strength


def total_drift(
    world: World, plants: Sequence[Plant], scores: Sequence[NDArray[np.float64]], strengths: Sequence[float]
) -> NDArray[np.float64]:
    """Return the log drift `[T, N]` of all plants on the return from open[t+1] to open[t+2], 0 where there is none."""
    drift = np.zeros(world.listings.listed.shape)
    for plant, score, strength in zip(plants, scores, strengths, strict=True):
        weight = strength * life(plant, len(drift)) * world.yardstick.scale
        drift += weight[:, None] * np.nan_to_num(score)
    return drift


def life(plant: Plant, days: int) -> NDArray[np.float64]:
    """Return the share of its full strength that a plant has on each day `[T]`."""
    first, end = life_span(plant, days)
    age = np.arange(days) - first
    fading = np.ones(days) if plant.half_life_days is None else 0.5 ** (np.maximum(age, 0) / plant.half_life_days)
    return np.where((age >= 0) & (np.arange(days) < end), fading, 0.0)


def life_span(plant: Plant, days: int) -> tuple[int, int]:
    """Return the first row on which a plant lives, and the row after the last."""
    return int(plant.start * days), int(plant.end * days)


def state_planted(
    world: World,
    plant: Plant,
    score: NDArray[np.float64],
    strength: float,
    drift: NDArray[np.float64],
    panel: Panel,
) -> PlantedAlpha:
    """State what was planted, measured on the final panel."""
    final = plant_scores(plant, panel)
    first, end = life_span(plant, panel.days)
    days = world.yardstick.days
    return PlantedAlpha(
        text=plant.text,
        rank_ic=plant.rank_ic,
        first_day=first,
        end_day=end,
        half_life_days=plant.half_life_days,
        strength=strength,
        joint_rank_ic=world.yardstick.rank_ic(final, drift),
        consistency=mean_rank_ic(score[days], final[days]),
    )


def _freeze_array(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the array, frozen."""
    values.setflags(write=False)
    return values
