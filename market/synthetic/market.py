"""A simulated market whose only predictable returns are those of planted alphas.

The core. With i a symbol, t a day, and each move split into a night (close to open, 25 % of the variance) and a day:

    log return   r[i,t] = beta[i] m[t] + load[i] s[sector(i),t] + g[industry(i),t] + e[i,t] + planted drift
    each shock   = level x mood[t] x sqrt(h[t]) x z[t],   z = night + day, both Student-t with 5 degrees of freedom
    variance     h[t+1] = 0.02 + h[t] (0.92 + 0.06 z[t]^2), kept within [0.2, 16]
    mood         1 for the market m; h_market[t]^(1/4) for sectors s, industries g and symbols e

Betas are normal around 1 (deviation 0.3), sector loadings uniform in [0.6, 1.4], levels of e lognormal (0.35).

There is no market drift, no leverage effect (volatility is an even function of past shocks) and no premium for beta,
size or volatility: every log return is symmetric about the same median 0, given the past. So without plants nothing
known at t predicts the ranks of later returns, over any horizon. Means differ: a simple return is exp(r) - 1, whose
mean rises with half the variance, so volatile symbols have the higher *mean* return, without effect on ranks.

Around the core. Symbols list late, are delisted and miss days at random, independent of returns. High and low reach
beyond open and close by a half-normal of half the day's own volatility. Turnover rises with the day's absolute move,
and is persistent. A split follows a quoted close above 180, a consolidation one below 4; prices are adjusted from the
first day on, so no level contains a later split (back-adjusted real prices do). Symbols spell the seed. Equal
configurations give equal bytes.

The plants. A plant's signal, known at the close of t, becomes the normal score of its cross-sectional rank, and adds

    strength x decay[t] x (median own volatility of day t) x score[i,t]

to the log return from open[t+1] to open[t+2]: three quarters in the day of t+1, one quarter in the night after it.
The strength is such that the mean daily RankIC of the signal against the whole return open[t+6] / open[t+1] - 1, market
and sector moves included, nothing neutralised, is the target in expectation at full life (each plant is calibrated
with its own drift alone; `joint_rank_ic` is the expectation with all of them). A signal reads prices that contain the
drift, so signals and drift are computed in three passes, each on the panel of the pass before; the remaining difference
is measured as `consistency`.

The calibration. A signal known at the close of t becomes a score: its rank among the symbols of that day, as a normal
quantile. The strength follows from the market itself: with the unit push D (five days of it, so a persistent signal
collects more) and the noise R of the same five days, the expected RankIC at strength k is

    [ RankIC(score, k D + R) + RankIC(score, k D - R) ] / 2

because R and -R are equally likely given everything known at t. The luck of the drawn noise cancels, so the strength
does not depend on the particular future on which it is used, and the realised RankIC scatters around the target as it
should.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from ..errors import MarketError
from ..panel import Panel
from .price_process import (
    Listings,
    NoiseReturns,
    Trading,
    Turnover,
    Volatilities,
    build_quoted_panel,
    draw_listings,
    draw_noise,
    draw_trading,
)

CALIBRATION_PASSES = 3
MAX_RANK_IC = 0.08
REVERSING_SHARE = 0.05
"""Share of the target RankIC below which a signal, at the first guess, reverses its own push within five days."""
DRIFT_HORIZON_DAYS = 5
MIN_MEASURED_NAMES = 10
"""Symbols below which a day has no rank correlation."""


class SyntheticConfig(BaseModel):
    """Settings of a synthetic market; volatilities are daily, in log units; shares are of all symbols over the span."""

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
    """An alpha to be planted.

    Attributes
    ----------
    text : str
        A label, usually the expression that `signal` computes.
    signal : Callable[[Panel], NDArray]
        Values `[T, N]` known at the close of each day; NaN means no opinion. It must not look ahead.
    rank_ic : float
        Target mean daily RankIC against the five-day return from the next open, in (0, 0.08], by its own drift alone.
        Plants with similar signals add up: plant distinct ones, and read `joint_rank_ic` of the result.
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
    """A planted alpha: rows `first_day` up to, not including, `end_day`, and its strength.

    `strength` is the drift in own volatilities of the median name for a score of one; `rank_ic` the target at full
    life; `joint_rank_ic` the expected mean RankIC over the whole span with all plants and decays;
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
    """A simulated panel and the truth about it.

    `expected_return` `[T, N]`, decimal, read-only: the simple return from open[t+1] to open[t+2] that the plants imply
    at the close of t, without noise. The half variance that raises the mean of every simple return is left out, so it
    is 0 where nothing is planted.
    """

    panel: Panel
    expected_return: NDArray[np.float64]
    plants: tuple[PlantedAlpha, ...]


@dataclass(frozen=True)
class World:
    """All random draws; prices follow from them and the drift."""

    listings: Listings
    noise: NoiseReturns
    trading: Trading
    drift_scale: DriftScale
    notes: tuple[str, ...]

    def build_panel(self, drift: NDArray[np.float64] | None = None) -> Panel:
        """Return the panel with this log drift `[T, N]`."""
        return build_quoted_panel(self.listings, self.noise, self.trading, drift, self.notes)


def simulate(config: SyntheticConfig, plants: Sequence[Plant] = ()) -> SyntheticMarket:
    """Simulate a market.

    Parameters
    ----------
    config : SyntheticConfig
        Equal configurations (and plants) give panels of equal digest.
    plants : Sequence[Plant]
        The alphas to plant; none for a null market. A plant changes returns and the fields that follow from prices
        (amount, cap, splits), but no listing, halt, turnover or range.

    Raises
    ------
    MarketError
        A null market with plants, a plant with numbers out of range, or a signal with a wrong shape, no values, or such
        fast reversal that no push can give it a five-day RankIC.
    """
    return plant_alphas(config, draw_world(config), plants)


def plant_alphas(config: SyntheticConfig, world: World, plants: Sequence[Plant]) -> SyntheticMarket:
    """Return what `simulate` returns, in a world that `draw_world` drew by the same configuration."""
    check_plants(config, plants)
    drift = np.zeros(world.listings.listed.shape)
    if not plants:
        return SyntheticMarket(world.build_panel(), _freeze_array(drift), ())
    panel = world.build_panel()
    strengths = [1.5 * plant.rank_ic for plant in plants]
    scores: list[NDArray[np.float64]] = []
    for number in range(CALIBRATION_PASSES):
        scores = [compute_plant_scores(plant, panel) for plant in plants]
        strengths = [
            calibrate(world.drift_scale, plant, score, strength, steps=2 if number == 0 else 1)
            for plant, score, strength in zip(plants, scores, strengths, strict=True)
        ]
        drift = sum_drift(world, plants, scores, strengths)
        panel = world.build_panel(drift)
    planted = tuple(
        describe_planted(world, plant, score, strength, drift, panel)
        for plant, score, strength in zip(plants, scores, strengths, strict=True)
    )
    return SyntheticMarket(panel, _freeze_array(np.expm1(drift)), planted)


def draw_world(config: SyntheticConfig) -> World:
    """Draw everything random, each part from its own stream, so that one part does not change another."""
    streams = [np.random.default_rng(child) for child in np.random.SeedSequence(config.seed).spawn(3)]
    turnover = Turnover(config.late_listings, config.delistings, config.halts)
    listings = draw_listings(streams[0], config.seed, config.days, config.names, turnover)
    levels = Volatilities(
        config.market_volatility, config.sector_volatility, config.industry_volatility, config.name_volatility
    )
    noise = draw_noise(streams[1], listings, levels)
    note = f"synthetic market, seed {config.seed}" + (", null: nothing is in it" if config.nothing else "")
    return World(listings, noise, draw_trading(streams[2], noise), measure_drift_scale(listings, noise), (note,))


def check_plants(config: SyntheticConfig, plants: Sequence[Plant]) -> None:
    """Refuse plants on a null market, and numbers out of range."""
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


def compute_plant_scores(plant: Plant, panel: Panel) -> NDArray[np.float64]:
    """Return the plant's normal scores `[T, N]` on this panel, NaN outside the universe."""
    signal = np.asarray(plant.signal(panel), dtype=np.float64)
    if signal.shape != panel.universe.shape:
        got, allowed = list(signal.shape), list(panel.universe.shape)
        text = f"plant {plant.text!r}: its signal does not fit the panel"
        raise MarketError(text, field="signal", got=got, allowed=allowed)
    scores = compute_normal_scores(np.where(panel.universe, signal, np.nan))
    if not np.nanmax(np.abs(scores), initial=0.0) > 0:
        raise MarketError(f"plant {plant.text!r}: its signal orders no names", field="signal")
    return scores


def calibrate(drift_scale: DriftScale, plant: Plant, score: NDArray[np.float64], strength: float, steps: int) -> float:
    """Return the strength at which the score has the plant's RankIC, after `steps` proportional corrections."""
    unit = np.nan_to_num(score) * drift_scale.scale[:, None]
    for _ in range(steps):
        reached = drift_scale.compute_rank_ic(score, strength * unit)
        if reached < REVERSING_SHARE * plant.rank_ic:
            text = f"plant {plant.text!r}: its signal takes its own push back within five days"
            raise MarketError(
                text, field="signal", hint="Plant a signal that lasts longer, or its average over a week."
            )
        strength *= plant.rank_ic / reached
    return strength


def sum_drift(
    world: World, plants: Sequence[Plant], scores: Sequence[NDArray[np.float64]], strengths: Sequence[float]
) -> NDArray[np.float64]:
    """Return the log drift `[T, N]` of all plants on the return from open[t+1] to open[t+2], 0 where there is none."""
    drift = np.zeros(world.listings.listed.shape)
    for plant, score, strength in zip(plants, scores, strengths, strict=True):
        weight = strength * compute_life(plant, len(drift)) * world.drift_scale.scale
        drift += weight[:, None] * np.nan_to_num(score)
    return drift


def compute_life(plant: Plant, days: int) -> NDArray[np.float64]:
    """Return the strength of a plant on each day `[T]` as a share of its full strength."""
    first, end = find_life_span(plant, days)
    age = np.arange(days) - first
    fading = np.ones(days) if plant.half_life_days is None else 0.5 ** (np.maximum(age, 0) / plant.half_life_days)
    return np.where((age >= 0) & (np.arange(days) < end), fading, 0.0)


def find_life_span(plant: Plant, days: int) -> tuple[int, int]:
    """Return the first row of a plant's life, and the row after the last."""
    return int(plant.start * days), int(plant.end * days)


def describe_planted(
    world: World,
    plant: Plant,
    score: NDArray[np.float64],
    strength: float,
    drift: NDArray[np.float64],
    panel: Panel,
) -> PlantedAlpha:
    """Return the record of a plant, measured on the final panel."""
    final = compute_plant_scores(plant, panel)
    first, end = find_life_span(plant, panel.days)
    days = world.drift_scale.days
    return PlantedAlpha(
        text=plant.text,
        rank_ic=plant.rank_ic,
        first_day=first,
        end_day=end,
        half_life_days=plant.half_life_days,
        strength=strength,
        joint_rank_ic=world.drift_scale.compute_rank_ic(final, drift),
        consistency=compute_mean_rank_ic(score[days], final[days]),
    )


def _freeze_array(values: NDArray[np.float64]) -> NDArray[np.float64]:
    values.setflags(write=False)
    return values


@dataclass(frozen=True)
class DriftScale:
    """Noise against which scores are measured, on every fifth day so that labels do not overlap.

    `noise` is the five-day log return `[D, N]` from open[t+1] to open[t+6] without drift, NaN unless the symbol trades
    on t, t+1 and t+6; `days` are the values of t; `scale` `[T]` is the median own volatility of that day.
    """

    noise: NDArray[np.float64]
    days: NDArray[np.intp]
    scale: NDArray[np.float64]

    def compute_rank_ic(self, score: NDArray[np.float64], drift: NDArray[np.float64]) -> float:
        """Return the expected mean daily RankIC of a score `[T, N]` under a log drift `[T, N]`."""
        total = np.cumsum(np.nan_to_num(drift), axis=0)
        pushed = total[self.days + DRIFT_HORIZON_DAYS - 1] - total[self.days] + np.nan_to_num(drift[self.days])
        known = score[self.days]
        both = [compute_mean_rank_ic(known, pushed + sign * self.noise) for sign in (1.0, -1.0)]
        return float(np.mean(both))


def measure_drift_scale(listings: Listings, noise: NoiseReturns) -> DriftScale:
    """Measure the five-day noise and the median own volatility."""
    days = np.arange(0, len(listings.dates) - DRIFT_HORIZON_DAYS - 1, DRIFT_HORIZON_DAYS)
    to_open = noise.overnight.copy()
    to_open[1:] += noise.intraday[:-1]
    path = np.cumsum(to_open, axis=0)
    label = path[days + 1 + DRIFT_HORIZON_DAYS] - path[days + 1]
    present = listings.present
    label[~(present[days] & present[days + 1] & present[days + 1 + DRIFT_HORIZON_DAYS])] = np.nan
    scale = np.nanmedian(np.where(listings.listed, noise.volatility, np.nan), axis=1)
    return DriftScale(label, days, scale)


def compute_normal_scores(signal: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each day's ranks as normal quantiles `[T, N]`: average ties; NaN where the signal is not finite."""
    from scipy.special import ndtri

    ranks, count = rank_rows(signal)
    with np.errstate(divide="ignore", invalid="ignore"):
        scores: NDArray[np.float64] = np.asarray(ndtri((ranks - 0.5) / count), dtype=np.float64)
    return scores


def rank_rows(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return ascending ranks 1..n of each row with average ties, NaN where not finite, and n as `[T, 1]`."""
    finite = np.isfinite(values)
    filled = np.where(finite, values, np.inf)
    order = np.argsort(filled, axis=1)
    ordered = np.take_along_axis(filled, order, axis=1)
    place = np.broadcast_to(np.arange(values.shape[1]), values.shape)
    differs = ordered[:, 1:] != ordered[:, :-1]
    edge = np.ones((len(values), 1), dtype=np.bool_)
    first = np.maximum.accumulate(np.where(np.hstack([edge, differs]), place, 0), axis=1)
    backward = np.where(np.hstack([differs, edge]), place, values.shape[1])[:, ::-1]
    last = np.minimum.accumulate(backward, axis=1)[:, ::-1]
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, (first + last) / 2.0 + 1.0, axis=1)
    ranks[~finite] = np.nan
    return ranks, finite.sum(axis=1, keepdims=True).astype(np.float64)


def compute_daily_rank_ic(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each row's Spearman correlation `[T]` over the cells finite in both; NaN for under ten or no variation."""
    both = np.isfinite(first) & np.isfinite(second)
    centred = []
    for values in (first, second):
        ranks, count = rank_rows(np.where(both, values, np.nan))
        centred.append(np.where(both, ranks - (count + 1.0) / 2.0, 0.0))
    product = np.einsum("ij,ij->i", *centred)
    spread = np.sqrt(np.einsum("ij,ij->i", centred[0], centred[0]) * np.einsum("ij,ij->i", centred[1], centred[1]))
    usable = (both.sum(axis=1) >= MIN_MEASURED_NAMES) & (spread > 0)
    daily = np.full(len(first), np.nan)
    daily[usable] = product[usable] / spread[usable]
    return daily


def compute_mean_rank_ic(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return the mean of the daily rank correlations; zero if no day has one."""
    daily = compute_daily_rank_ic(first, second)
    usable = daily[np.isfinite(daily)]
    return float(usable.mean()) if usable.size else 0.0
