"""A small market whose columns belong together: opens between lows and highs, money that is price times volume."""

from __future__ import annotations

import numpy as np

from alphaloom.market import Panel


def small_market(seed: int, days: int, names: int, *, gaps: float = 0.02) -> Panel:
    """Draw a market; prices are rounded to the cent, so that ties occur.

    Half of the names have no gaps, for one gap empties a window of 250 days, and the other half have theirs on the same
    days. With 16 names, as many as a power of two are then there each day: their ranks, and sums of those, are exact in
    float32, and which of two ranks is larger is never left to the last digit.
    """
    rng = np.random.default_rng(seed)
    close = np.round(20 * np.exp(np.cumsum(rng.normal(0, 0.02, (days, names)), axis=0)), 2)
    opening = np.round(close * np.exp(rng.normal(0, 0.01, (days, names))), 2)
    high = np.round(np.maximum(close, opening) * (1 + rng.exponential(0.005, (days, names))), 2)
    low = np.round(np.minimum(close, opening) * (1 - rng.exponential(0.005, (days, names))), 2)
    volume = np.round(1e5 * np.exp(rng.normal(0, 0.7, (days, names))))
    vwap = low + (high - low) * rng.uniform(0.3, 0.7, (days, names))
    columns = {"open": opening, "high": high, "low": low, "close": close, "volume": volume, "vwap": vwap,
               "cap": close * rng.uniform(1e6, 1e7, names)}  # fmt: skip  # a table
    missing = np.repeat(rng.random((days, 1)) < gaps, names, axis=1)
    missing[:, names // 2 :] = False
    columns = {name: np.where(missing, np.nan, values) for name, values in columns.items()}
    columns["amount"] = columns["vwap"] * columns["volume"]
    before = np.vstack([np.full(names, np.nan), columns["close"][:-1]])
    columns["returns"] = columns["close"] / before - 1
    return Panel(
        dates=np.datetime64("2020-01-01") + np.arange(days),
        symbols=tuple(f"S{place:02}" for place in range(names)),
        fields={name: values.astype(np.float32).astype(np.float64) for name, values in columns.items()},
        universe=np.ones((days, names), bool),
        groups={"sector": (np.arange(names) % 2).astype(np.int16), "industry": (np.arange(names) % 4).astype(np.int16)},
    )
