"""The market's regimes, each known at the close of its day, and what a daily series did in them."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ...market import Panel
from ..windows import Window
from .exposures import market_return
from .metrics import round_significant

Series = NDArray[np.float64]
Flags = NDArray[np.bool_]
TREND_DAYS = 60
STORM_DAYS = 20


def market_regimes(panel: Panel, window: Window) -> dict[str, Flags]:
    """Return the days of a window that belong to each regime, ``[window.days]`` each.

    Notes
    -----
    `rising` and `falling`: sign of the market's return over 60 days, the market being the equal-weighted universe.
    `calm`, `usual` and `stormy`: thirds of the window by the standard deviation of the market's last 20 days. Bounds of
    the thirds are those of the whole window, so they describe and cannot be traded on. Days before the first whole
    stretch belong to none.
    """
    market = market_return(panel)
    trend, storm = (window.cut(series) for series in (_sum(np.log1p(market), TREND_DAYS), _deviation(market)))
    low, high = np.nanquantile(storm, [1 / 3, 2 / 3]) if not np.isnan(storm).all() else (np.nan, np.nan)
    return {
        "rising": trend > 0,
        "falling": trend <= 0,
        "calm": storm <= low,
        "usual": (storm > low) & (storm <= high),
        "stormy": storm > high,
    }


def mean_by_regime(daily: Series, regimes: Mapping[str, Flags], lag: int) -> dict[str, dict[str, float | int | None]]:
    """Return the mean of a daily series in each regime: ``{rank_ic, t, days}``.

    Parameters
    ----------
    daily
        ``[D]``, NaN on days without a value, which are left out.
    regimes
        As of `market_regimes`.
    lag
        Newey-West lag in days; neighbours count as such only where no other regime lies between, as in a regression of
        the series on a dummy for each regime.
    """
    return {name: _mean(daily, days & ~np.isnan(daily), lag) for name, days in regimes.items()}


def _mean(daily: Series, chosen: Flags, lag: int) -> dict[str, float | int | None]:
    days = int(np.count_nonzero(chosen))
    if days < 2:
        return {"rank_ic": None, "t": None, "days": days}
    mean = float(daily[chosen].mean())
    score = np.where(chosen, daily - mean, 0.0)
    variance = float(score @ score)
    for step in range(1, min(lag, len(score) - 1) + 1):
        variance += 2.0 * (1.0 - step / (lag + 1)) * float(score[step:] @ score[:-step])
    error = math.sqrt(max(variance, 0.0)) / days
    return {
        "rank_ic": round_significant(mean),
        "t": round_significant(mean / error) if error > 0 else None,
        "days": days,
    }


def _sum(series: Series, days: int) -> Series:
    """Add up the last `days` values, NaN before there are so many."""
    out = np.full(len(series), np.nan)
    if len(series) >= days:
        out[days - 1 :] = np.lib.stride_tricks.sliding_window_view(series, days).sum(axis=1)
    return out


def _deviation(market: Series) -> Series:
    out = np.full(len(market), np.nan)
    if len(market) >= STORM_DAYS:
        out[STORM_DAYS - 1 :] = np.lib.stride_tricks.sliding_window_view(market, STORM_DAYS).std(axis=1, ddof=1)
    return out
