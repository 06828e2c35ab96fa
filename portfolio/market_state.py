"""The state of the market as one may know it at the close of a day: how wild, how spread, which way."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..evidence.scoring import market_return
from ..market import Panel

Series = NDArray[np.float64]

STATE_NAMES = ("volatility", "dispersion", "trend")
SHORT_DAYS, LONG_DAYS = 20, 60
LOOK_BACK_DAYS = 756
"""Days with which a day is compared, three years; at least `LONG_DAYS` of them must be there."""
UNKNOWN_STATE = 0.5


def market_states(panel: Panel) -> Series:
    """Return where each day stands among those before it, ``[3, T]`` in [0, 1]; 0.5 where too little is known.

    Notes
    -----
    `volatility`: deviation of the market's last 20 daily returns. `dispersion`: mean over 20 days of the deviation of
    names' returns within a day. `trend`: the market's log return over 60 days. Each is told as the share of the last 756
    days, that day included, on which it was lower: unlike the thirds of `evidence/scoring/profile.py` it reads no later day.
    """
    market = market_return(panel)
    spread = _spread(np.where(panel.universe, panel.fields["returns"], np.nan))
    wild = _trailing_statistic(market, SHORT_DAYS, np.std)
    trend = _trailing_statistic(np.log1p(market), LONG_DAYS, np.sum)
    return np.stack([_trailing_share(each) for each in (wild, _trailing_statistic(spread, SHORT_DAYS, np.mean), trend)])


def _spread(returns: Series) -> Series:
    """Return the deviation of a day's returns; 0 on a day with fewer than two."""
    seen = ~np.isnan(returns)
    count = np.maximum(seen.sum(axis=1), 1)
    mean = np.where(seen, returns, 0.0).sum(axis=1) / count
    apart = np.where(seen, returns - mean[:, None], 0.0)
    found: Series = np.sqrt((apart**2).sum(axis=1) / count)
    return found


def _trailing_statistic(series: Series, days: int, of: object) -> Series:
    """Return a statistic of the last `days` values, NaN before there are so many."""
    out = np.full(len(series), np.nan)
    if len(series) >= days:
        windows = np.lib.stride_tricks.sliding_window_view(series, days)
        out[days - 1 :] = of(windows, axis=1)  # type: ignore[operator]
    return out


def _trailing_share(series: Series) -> Series:
    """Return the share of the last `LOOK_BACK_DAYS` known values that lie below each."""
    out = np.full(len(series), UNKNOWN_STATE)
    for day in np.flatnonzero(~np.isnan(series)):
        before = series[max(day - LOOK_BACK_DAYS + 1, 0) : day + 1]
        before = before[~np.isnan(before)]
        if len(before) >= LONG_DAYS:
            out[day] = np.mean(before < series[day])
    return out
