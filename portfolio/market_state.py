"""The state of the market at the close of a day: volatility, dispersion and trend."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..evidence.scoring import market_return
from ..market import Panel

Series = NDArray[np.float64]

STATE_NAMES = ("volatility", "dispersion", "trend")
SHORT_DAYS, LONG_DAYS = 20, 60
LOOK_BACK_DAYS = 756
"""Days with which a day is compared (three years); at least `LONG_DAYS` of them must be known."""
UNKNOWN_STATE = 0.5


def market_states(panel: Panel) -> Series:
    """Return the market's states on each day, ``[3, T]`` in [0, 1]; 0.5 with too few known days.

    Notes ----- `volatility`: standard deviation of the market's last 20 daily returns. `dispersion`: mean over 20 days
    of the standard deviation of names' returns within a day. `trend`: the market's log return over 60 days. Each is
    given as the share of the last 756 days, that day included, on which it was lower. Unlike the terciles of
    `evidence/scoring/profile.py` it reads no later day.
    """
    market = market_return(panel)
    dispersion = _measure_dispersion(np.where(panel.universe, panel.fields["returns"], np.nan))
    volatility = _compute_trailing(market, SHORT_DAYS, np.std)
    trend = _compute_trailing(np.log1p(market), LONG_DAYS, np.sum)
    return np.stack(
        [_rank_trailing(series) for series in (volatility, _compute_trailing(dispersion, SHORT_DAYS, np.mean), trend)]
    )


def _measure_dispersion(returns: Series) -> Series:
    """Return the standard deviation of each day's returns; 0 on a day with fewer than two."""
    is_present = ~np.isnan(returns)
    count = np.maximum(is_present.sum(axis=1), 1)
    mean = np.where(is_present, returns, 0.0).sum(axis=1) / count
    deviation = np.where(is_present, returns - mean[:, None], 0.0)
    spread: Series = np.sqrt((deviation**2).sum(axis=1) / count)
    return spread


def _compute_trailing(series: Series, days: int, statistic: object) -> Series:
    """Return a statistic of the last `days` values, NaN before there are so many."""
    out = np.full(len(series), np.nan)
    if len(series) >= days:
        windows = np.lib.stride_tricks.sliding_window_view(series, days)
        out[days - 1 :] = statistic(windows, axis=1)  # type: ignore[operator]
    return out


def _rank_trailing(series: Series) -> Series:
    """Return the share of the last `LOOK_BACK_DAYS` days' known values that are below each."""
    out = np.full(len(series), UNKNOWN_STATE)
    for day in np.flatnonzero(~np.isnan(series)):
        before = series[max(day - LOOK_BACK_DAYS + 1, 0) : day + 1]
        before = before[~np.isnan(before)]
        if len(before) >= LONG_DAYS:
            out[day] = np.mean(before < series[day])
    return out
