"""Small panels with everything that real ones have: gaps, ties, constants, outliers, absent names."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from alphaloom.market import Panel

FLAVOURS = ("plain", "ties", "constant runs", "missing runs", "outliers", "prices")
NAMES = ("open", "high", "low", "close", "volume", "returns", "vwap", "amount", "cap")


def column(rng: np.random.Generator, days: int, names: int, flavour: str) -> NDArray[np.float64]:
    """Draw one column; float32 holds its values exactly."""
    x = rng.normal(size=(days, names))
    if flavour == "ties":
        x = np.round(x * 2) / 2
    if flavour == "constant runs":
        x = np.where(rng.random((days, names)) < 0.15, x, np.nan)
        x = np.array([series_filled(x[:, j]) for j in range(names)]).T
    if flavour == "outliers":
        x[rng.random((days, names)) < 0.03] = 1e6
    if flavour == "prices":
        x = 50 * np.exp(np.cumsum(x * 0.02, axis=0))
    x[rng.random((days, names)) < 0.04] = np.nan
    if flavour == "missing runs":
        x[(np.arange(days)[:, None] + rng.integers(0, 40, names)) % 40 < 12] = np.nan
    return x.astype(np.float32).astype(np.float64)


def series_filled(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Repeat the last value over the gaps."""
    last = np.maximum.accumulate(np.where(np.isnan(x), 0, np.arange(len(x))))
    return np.nan_to_num(x[last])


def draw(seed: int, days: int, names: int, flavour: str, *, all_members: bool = False) -> Panel:
    """Draw a panel whose columns are all of one flavour, in a universe with holes."""
    rng = np.random.default_rng(seed)
    fields = {name: column(rng, days, names, flavour) for name in NAMES}
    groups = {name: rng.integers(-1, 3, names).astype(np.int16) for name in ("sector", "industry")}
    return of(fields, np.ones((days, names), bool) if all_members else rng.random((days, names)) < 0.9, groups)


def of(
    fields: dict[str, NDArray[np.float64]],
    universe: NDArray[np.bool_] | None = None,
    groups: dict[str, NDArray[np.int16]] | None = None,
) -> Panel:
    """Return a panel of some columns, ones for those that every panel has, all names in the universe unless told."""
    days, names = next(iter(fields.values())).shape
    every = ("open", "high", "low", "close", "volume", "returns")
    fields = {name: np.ones((days, names)) for name in every} | fields
    return Panel(
        dates=np.datetime64("2020-01-01") + np.arange(days),
        symbols=tuple(f"S{j:03}" for j in range(names)),
        fields=fields,
        universe=np.ones((days, names), bool) if universe is None else universe,
        groups=groups or {},
    )
