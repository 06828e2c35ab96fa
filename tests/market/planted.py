"""Clean markets, and the same markets with one trap in them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from alphaloom.market import DataWarning, Panel, SyntheticConfig, find_data_warnings, simulate

Fields = dict[str, NDArray[np.float64]]
PRICES = ("open", "high", "low", "close", "vwap")


@cache
def clean(seed: int = 0, days: int = 500, names: int = 60) -> Panel:
    """Return a market with none of the traps: names vanish, and no level knows a later day."""
    return simulate(SyntheticConfig(seed=seed, days=days, names=names)).panel


def changed(panel: Panel, change: Callable[[Fields], None]) -> Panel:
    """Return a panel whose fields were changed in place; returns are derived again."""
    fields = {name: values.copy() for name, values in panel.fields.items() if name != "returns"}
    change(fields)
    return Panel.build(panel.dates, panel.symbols, fields, panel.universe)


def steady(panel: Panel, seed: int, span: int = 60) -> tuple[int, int]:
    """Return a row and a column around which a name trades without a break for `span` days either way."""
    alive = np.cumsum(panel.universe, axis=0)
    whole = np.zeros(panel.universe.shape, np.bool_)
    whole[span:-span] = alive[2 * span :] - alive[: -2 * span] == 2 * span
    cells = np.argwhere(whole)
    day, name = cells[np.random.default_rng(seed).integers(len(cells))]
    return int(day), int(name)


def found(panel: Panel) -> dict[str, DataWarning]:
    """Return what is suspected, by trap."""
    return {warning.kind: warning for warning in find_data_warnings(panel)}
