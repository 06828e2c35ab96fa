"""The panel of the benchmark: a random walk of daily bars, some of them missing, the same for every engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alphaloom.market import Panel

Columns = dict[str, NDArray[np.float32]]

MISSING, SUSPENSION = 0.01, 3
"""The share of cells without a bar, and how many days in a row a name is missing."""
SECTORS = 11


def draw(days: int, names: int, seed: int) -> Columns:
    """Draw open, high, low, close, vwap, volume and returns ``[days, names]`` float32, and the sector ``[1, names]``.

    Prices carry full float32 digits, so that ties come from formulas and not from a price tick.
    """
    rng = np.random.default_rng(seed)
    shape = (days, names)
    spread = rng.uniform(0.01, 0.03, names)
    moves = rng.standard_normal(shape) * spread + rng.standard_normal((days, 1)) * 0.008
    close = rng.uniform(5, 200, names) * np.exp(np.cumsum(moves - moves.mean(0), axis=0))
    opening = close * np.exp(-moves * rng.uniform(0.2, 1.0, shape))
    reach = 1 + np.abs(rng.standard_normal((2, *shape))) * spread * 0.4 + 0.001
    high, low = np.maximum(opening, close) * reach[0], np.minimum(opening, close) / reach[1]
    volume = np.exp(rng.uniform(11, 16, names) + rng.standard_normal(shape) * 0.5 + 12 * np.abs(moves))
    vwap = low + (high - low) * rng.uniform(0.2, 0.8, shape)
    columns = {"open": opening, "high": high, "low": low, "close": close, "vwap": vwap, "volume": np.round(volume)}
    gone = _gaps(rng, shape)
    narrow = {name: np.where(gone, np.nan, values).astype(np.float32) for name, values in columns.items()}
    exact = narrow["close"].astype(np.float64)
    narrow["returns"] = np.full(shape, np.nan, np.float32)
    narrow["returns"][1:] = exact[1:] / exact[:-1] - 1
    narrow["sector"] = rng.integers(0, SECTORS, (1, names)).astype(np.float32)
    return narrow


def _gaps(rng: np.random.Generator, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Tell which cells have no bar: suspensions of a few days that begin anywhere."""
    begins = rng.random(shape) < MISSING / SUSPENSION
    gone = begins.copy()
    for later in range(1, SUSPENSION):
        gone[later:] |= begins[:-later]
    return gone


def store(columns: Columns, folder: Path) -> None:
    """Write one file a column, for engines in other processes."""
    for name, values in columns.items():
        np.save(folder / f"{name}.npy", values)


def panel(columns: Columns) -> Panel:
    """Make alphaloom's panel of the columns; every cell is in the universe, so no engine is spared a cell."""
    days, names = columns["close"].shape
    fields: Any = {name: values for name, values in columns.items() if name != "sector"}
    return Panel(
        dates=np.arange(days).astype("datetime64[D]"),
        symbols=tuple(f"N{place:05d}" for place in range(names)),
        fields=fields,
        universe=np.ones((days, names), np.bool_),
        groups={"sector": columns["sector"][0].astype(np.int16)},
        group_labels={"sector": tuple(f"S{place:02d}" for place in range(SECTORS))},
    )
