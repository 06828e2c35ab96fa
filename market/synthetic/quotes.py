"""From log returns to what an exchange publishes: prices, splits, volume, amount and capitalisation."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..panel import Panel
from .listings import Listings
from .noise import OVERNIGHT_SHARE, NoiseReturns

SPLIT_ABOVE, MERGE_BELOW = 180.0, 4.0
"""A quoted close beyond these leads to a split, or to a consolidation of shares, at the next open."""
SPLIT_RATIO, MERGE_RATIO = 4.0, 0.1
ACTIVITY_PERSISTENCE = 0.9
"""Day-to-day persistence of a name's unusual trading."""


@dataclass(frozen=True)
class Trading:
    """Holds what decides quotes besides returns; drawn once, so that a planted drift changes prices and nothing else.

    `up` and `down` are how far, in log units, a day reached beyond its open and close; `centre` in [-1, 1] places the
    vwap; `turnover` is the log of the share of the capitalisation that is traded; all `[T, N]`. `price` and `shares`
    are each name's first close and its shares then, `[N]`.
    """

    up: NDArray[np.float64]
    down: NDArray[np.float64]
    centre: NDArray[np.float64]
    turnover: NDArray[np.float64]
    price: NDArray[np.float64]
    shares: NDArray[np.float64]


def draw_trading(rng: np.random.Generator, noise: NoiseReturns) -> Trading:
    """Draw ranges, turnover and sizes; turnover rises with the absolute move of the day, never with its sign."""
    days, names = noise.surprise.shape
    reach = 0.5 * noise.volatility
    size = rng.normal(22.0, 1.4, names)
    price = np.exp(rng.normal(3.6, 0.7, names))
    usual = rng.normal(-5.3, 0.5, names) + 0.05 * (size - 22.0)
    unusual = autoregress_shocks(rng.normal(0.0, 0.15, (days, names)))
    return Trading(
        up=reach * np.abs(rng.standard_normal((days, names))),
        down=reach * np.abs(rng.standard_normal((days, names))),
        centre=rng.uniform(-1.0, 1.0, (days, names)),
        turnover=usual + unusual + 0.35 * np.minimum(noise.surprise, 6.0),
        price=price,
        shares=np.exp(size) / price,
    )


def autoregress_shocks(shocks: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the first-order autoregression `[T, N]` that these shocks drive."""
    out = shocks.copy()
    for day in range(1, len(out)):
        out[day] += ACTIVITY_PERSISTENCE * out[day - 1]
    return out


def quote(
    listings: Listings,
    noise: NoiseReturns,
    trading: Trading,
    drift: NDArray[np.float64] | None,
    notes: tuple[str, ...] = (),
) -> Panel:
    """Return the panel of this market; `drift` `[T, N]` is added to the log return from open[t+1] to open[t+2]."""
    opening, closing = log_prices(noise, drift)
    opening += np.log(trading.price)
    closing += np.log(trading.price)
    high = np.maximum(opening, closing) + trading.up
    low = np.minimum(opening, closing) - trading.down
    middle = (opening + closing + high + low) / 4 + 0.1 * trading.centre * (high - low)
    fields = {"open": opening, "high": high, "low": low, "close": closing, "vwap": np.clip(middle, low, high)}
    for values in fields.values():
        np.exp(values, out=values)
    fields["cap"] = fields["close"] * trading.shares
    fields["volume"] = np.rint(fields["cap"] * np.exp(trading.turnover) / fields["vwap"])
    fields["amount"] = fields["volume"] * fields["vwap"]
    fields["close_raw"] = fields["close"] * share_ratio(fields["close"])
    for values in fields.values():
        values[~listings.present] = np.nan
    built = Panel.build(listings.dates, listings.symbols, fields, listings.present, listings.labels(), notes)
    return replace(built, volumes="quoted")


def log_prices(
    noise: NoiseReturns, drift: NDArray[np.float64] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the logs of open and close `[T, N]`, relative to the close before the first day."""
    overnight, intraday = noise.overnight.copy(), noise.intraday.copy()
    if drift is not None:
        intraday[1:] += (1.0 - OVERNIGHT_SHARE) * drift[:-1]
        overnight[2:] += OVERNIGHT_SHARE * drift[:-2]
    closing = np.cumsum(overnight + intraday, axis=0)
    return closing - intraday, closing


def share_ratio(close: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the quoted over the adjusted price `[T, N]`: it falls by four at a split and rises by ten at a merger.

    A split follows from the quoted close of the day before, and prices are adjusted from the first day on. So neither
    the quoted nor the adjusted level knows anything later; in real back-adjusted prices the adjusted level does.
    """
    ratio = np.empty_like(close)
    now = np.ones(close.shape[1])
    for day in range(len(close)):
        ratio[day] = now
        quoted = close[day] * now
        now = now * np.where(
            quoted > SPLIT_ABOVE, 1 / SPLIT_RATIO, np.where(quoted < MERGE_BELOW, 1 / MERGE_RATIO, 1.0)
        )
    return ratio
