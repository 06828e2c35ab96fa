"""Draw daily bars as Qlib would meet them: coarse ticks, suspended days, a late listing, a flat stretch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from alphaloom.market import Panel

Columns = dict[str, NDArray[np.float64]]


def bars(seed: int, days: int, names: int, *, gaps: bool = True) -> Columns:
    """Return consistent bars; float32 holds their values exactly."""
    rng = np.random.default_rng(seed)
    shape = days, names
    close = np.round(20 * np.exp(np.cumsum(rng.normal(0, 0.02, shape), axis=0)), 1)
    close[40:60, -1] = close[min(40, days - 1), -1]
    start = np.where(rng.random(shape) < 0.2, close, np.round(close + rng.normal(0, 0.1, shape), 1))
    start[40:60, -1] = close[40:60, -1]
    above, below = (np.round(np.abs(rng.normal(0, 0.2, shape)), 1) for _ in range(2))
    above[40:60, -1] = below[40:60, -1] = 0
    volume = np.round(np.exp(rng.normal(9, 0.5, shape)) / 100) * 100
    volume[rng.random(shape) < 0.02] = 0
    found = {
        "open": start,
        "high": np.maximum(start, close) + above,
        "low": np.minimum(start, close) - below,
        "close": close,
        "volume": volume,
        "vwap": (start + close) / 2,
    }
    missing = suspended(rng, days, names) if gaps else np.zeros(shape, bool)
    return {name: np.where(missing, np.nan, x).astype(np.float32).astype(np.float64) for name, x in found.items()}


def suspended(rng: np.random.Generator, days: int, names: int) -> NDArray[np.bool_]:
    """Draw days without any value: single ones, a late listing and a long pause."""
    missing = rng.random((days, names)) < 0.03
    missing[:12, 0] = True
    missing[30:45, names // 2] = True
    return missing


def panel_of(columns: Columns) -> Panel:
    """Make a panel, everyone a member; returns are derived."""
    days, names = columns["close"].shape
    dates = np.datetime64("2020-01-01") + np.arange(days)
    built = Panel.build(dates, [f"S{j:03}" for j in range(names)], columns)
    return Panel(built.dates, built.symbols, built.fields, np.ones((days, names), bool))
