"""The unpredictable part of the synthetic market: log returns that are symmetric about zero, whatever came before.

Every shock is drawn symmetric about zero and every volatility is an even function of past shocks (no leverage effect),
so flipping the signs of all shocks after day t changes no volatility and has the same probability. Therefore, given
everything up to t, the sign of the difference between any two names' later log returns is a fair coin, over any horizon
and whatever their betas and volatilities: nothing known at t can order later returns in ranks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .listings import INDUSTRIES_PER_SECTOR, SECTORS, Listings

ARCH, GARCH = 0.06, 0.92
"""Weights of the last squared shock and of the last variance; with five degrees of freedom the kurtosis stays finite."""
MIN_RELATIVE_VARIANCE, MAX_RELATIVE_VARIANCE = 0.2, 16.0
"""Bounds of a variance relative to its long-run level."""
DEGREES_OF_FREEDOM = 5.0
OVERNIGHT_SHARE = 0.25
"""Share of a day's variance that falls between yesterday's close and today's open."""
COMMON_POWER = 0.25
"""Power of the market's relative variance in every other volatility: all names are wilder when the market is."""


@dataclass(frozen=True)
class Volatilities:
    """Daily volatilities in log units: of the market, of a sector, of an industry, and the median one of a name."""

    market: float
    sector: float
    industry: float
    name: float


@dataclass(frozen=True)
class NoiseReturns:
    """Holds the log returns `[T, N]` from close to open and from open to close, and what drives them.

    `volatility` is each name's own (idiosyncratic) volatility of that day, known the evening before. `surprise` is the
    absolute close-to-close move in units of a usual one; it drives volume.
    """

    overnight: NDArray[np.float64]
    intraday: NDArray[np.float64]
    volatility: NDArray[np.float64]
    surprise: NDArray[np.float64]
    beta: NDArray[np.float64]


def draw_noise(rng: np.random.Generator, listings: Listings, levels: Volatilities) -> NoiseReturns:
    """Draw the symmetric core of the market."""
    days, names = listings.listed.shape
    beta = np.clip(rng.normal(1.0, 0.3, names), 0.2, 2.2)
    own = levels.name * np.exp(rng.normal(0.0, 0.35, names))
    sector_loading = rng.uniform(0.6, 1.4, names)
    market = draw_shocks(rng, days, np.array([levels.market]))
    mood = (market.volatility / levels.market) ** (2 * COMMON_POWER)
    sectors = draw_shocks(rng, days, np.full(len(SECTORS), levels.sector), mood)
    industries = draw_shocks(rng, days, np.full(len(SECTORS) * INDUSTRIES_PER_SECTOR, levels.industry), mood)
    single = draw_shocks(rng, days, own, mood)
    parts = []
    for half in ("overnight", "intraday"):
        move = getattr(single, half)
        move += beta * getattr(market, half)
        move += sector_loading * getattr(sectors, half)[:, listings.sector]
        move += getattr(industries, half)[:, listings.industry]
        parts.append(move)
    usual = np.sqrt(own**2 + (beta * levels.market) ** 2 + levels.sector**2 + levels.industry**2)
    surprise = np.abs(parts[0] + parts[1]) / usual
    return NoiseReturns(parts[0], parts[1], single.volatility, surprise, beta)


@dataclass(frozen=True)
class Shocks:
    """Holds the two halves of a day's shock `[T, K]` and the volatility that scaled them."""

    overnight: NDArray[np.float64]
    intraday: NDArray[np.float64]
    volatility: NDArray[np.float64]


def draw_shocks(
    rng: np.random.Generator, days: int, level: NDArray[np.float64], mood: NDArray[np.float64] | float = 1.0
) -> Shocks:
    """Draw K independent GARCH(1,1) series with Student-t shocks and long-run volatilities `level` `[K]`.

    `mood` `[T, 1]` multiplies every volatility of a day.
    """
    unit = np.sqrt((DEGREES_OF_FREEDOM - 2.0) / DEGREES_OF_FREEDOM)
    overnight = rng.standard_t(DEGREES_OF_FREEDOM, (days, len(level))) * (unit * np.sqrt(OVERNIGHT_SHARE))
    intraday = rng.standard_t(DEGREES_OF_FREEDOM, (days, len(level))) * (unit * np.sqrt(1.0 - OVERNIGHT_SHARE))
    squared = (overnight + intraday) ** 2
    relative = relative_variance(squared, np.exp(rng.normal(0.0, 0.4, len(level))))
    volatility = np.sqrt(relative) * level * mood
    return Shocks(overnight * volatility, intraday * volatility, volatility)


def relative_variance(squared: NDArray[np.float64], first: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the GARCH variance `[T, K]` of each day over its long-run level, from squared unit shocks before it."""
    out = np.empty_like(squared)
    now = np.clip(first, MIN_RELATIVE_VARIANCE, MAX_RELATIVE_VARIANCE)
    for day in range(len(squared)):
        out[day] = now
        now = np.clip(
            (1.0 - ARCH - GARCH) + now * (GARCH + ARCH * squared[day]), MIN_RELATIVE_VARIANCE, MAX_RELATIVE_VARIANCE
        )
    return out
