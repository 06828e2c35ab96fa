"""Lay a panel out in tiles: contiguous blocks of columns over all days, which fit in the processor's cache.

Operators along time, or on one cell, work on a tile at a time: their intermediate values never leave the cache.
Operators that compare the names of a day need whole rows, which `kernels.cells` gathers from the tiles and scatters
back, a few rows at a time. `LeafStore` holds the columns, numbers and groupings of a panel in this layout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import FactorError, PanelLacksField, nearest_name
from ..kernels.cells import Array, Codes, Flat
from ..language.node import Node

if TYPE_CHECKING:
    from ...market import Panel

TILE_BYTES = 3 << 20
"""Small enough for some tiles to share the L3 cache, wide enough for the loop over the columns to pay."""
TILE_LANES = 16
ROWS_TOGETHER = 16
"""Rows of a tile that an operator on single cells processes as one row."""
MIN_TILE_COLUMNS = 64
"""Columns below which the loop over the days costs more than the cells."""

MAX_PANEL_NAMES = 1 << 16
DERIVATION_RULES = {"vwap": "typical", "amount": "close*volume"}
"""How the loader can derive a column from others: the line to write under `derive`."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How the columns of a panel are cut.

    Attributes
    ----------
    days, names : int
        Size of the panel.
    width : int
        Columns of a tile; the last one may have fewer.
    """

    days: int
    names: int
    width: int

    @classmethod
    def of(cls, days: int, names: int, threads: int) -> Layout:
        """Choose tiles of about the cache's size, an equal number for each thread."""
        target = max(TILE_BYTES // (4 * max(days, 1)), MIN_TILE_COLUMNS)
        count = max(1, round(names / target))
        count = -(-count // threads) * threads
        columns = -(-names // count)
        return cls(days, names, max(TILE_LANES, -(-columns // TILE_LANES) * TILE_LANES))

    @property
    def count(self) -> int:
        """Return the number of tiles."""
        return -(-self.names // self.width)

    def columns(self, tile: int) -> tuple[int, int]:
        """Return the first column of a tile, and the one after its last."""
        return tile * self.width, min((tile + 1) * self.width, self.names)

    def empty(self) -> Flat:
        """Return an uninitialised array for a panel."""
        return np.empty(self.days * self.names, np.float32)

    def tile(self, flat: Flat, tile: int) -> Array:
        """Return one tile of a panel as a view, days x columns."""
        lo, hi = self.columns(tile)
        return flat[self.days * lo : self.days * hi].reshape(self.days, hi - lo)

    def cut(self, rows: Array) -> Flat:
        """Return a copy of an array of days x names, tile after tile."""
        flat = self.empty()
        for tile in range(self.count):
            lo, hi = self.columns(tile)
            self.tile(flat, tile)[:] = rows[:, lo:hi]
        return flat


class LeafStore:
    """The leaves of expressions as the kernels take them: tile after tile, writeable, float32."""

    def __init__(self, panel: Panel, threads: int) -> None:
        if len(panel.symbols) > MAX_PANEL_NAMES:
            raise FactorError(
                "The panel has too many names.", got=len(panel.symbols), allowed=f"up to {MAX_PANEL_NAMES}"
            )
        self._panel = panel
        self.member = np.array(panel.universe, np.bool_, order="C")
        self.layout = Layout.of(len(panel.dates), len(panel.symbols), threads)
        self._columns: dict[str, Flat] = {}
        self._codes: dict[str, Codes] = {}

    def number(self, node: Node) -> Array:
        """Return a number as a row that serves every day: as wide as the panel, or as some rows of a tile."""
        width = max(ROWS_TOGETHER * self.layout.width, self.layout.names)
        return _to_float32(np.full((1, width), node.value, np.float64))

    def flat(self, node: Node) -> Flat:
        """Return a column of the panel, tile after tile."""
        if node.name not in self._columns:
            if node.name not in self._panel.fields:
                raise _missing_error("column", node.name, tuple(self._panel.fields))
            self._columns[node.name] = self.layout.cut(_to_float32(self._panel.fields[node.name]))
        return self._columns[node.name]

    def codes(self, node: Node) -> Codes:
        """Return the group code of each name; -1 where it is unknown."""
        if node.name not in self._codes:
            if node.name not in self._panel.groups:
                raise _missing_error("grouping", node.name, tuple(self._panel.groups))
            self._codes[node.name] = np.array(self._panel.groups[node.name], np.int16, order="C")
        return self._codes[node.name]


def _to_float32(values: NDArray[np.float64]) -> Array:
    """Return values as float32, NaN where they are not finite."""
    with np.errstate(over="ignore"):
        narrow = np.array(values, np.float32, order="C")
    narrow[~np.isfinite(narrow)] = np.nan
    return narrow


def _missing_error(kind: str, name: str, available: tuple[str, ...]) -> PanelLacksField:
    """Build the error that names the missing column, the available ones, and how to add it."""
    near = nearest_name(name, available)
    hints = [f"Did you mean {near}?"] if near else []
    if kind == "grouping":
        hints.append(f"Give the {name} of each symbol in a file (--sectors FILE).")
    else:
        hints.append(f"Add a column {name} to the prices.")
    if name in DERIVATION_RULES:
        hints.append(f"Or let it be derived: `derive: {{{name}: {DERIVATION_RULES[name]}}}` in the campaign file.")
    return PanelLacksField(
        f"The panel has no {kind} {name}.", field=name, allowed=available or "none", hint=" ".join(hints)
    )
