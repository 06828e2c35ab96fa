"""Lay a panel out in tiles: blocks of columns over all days, each contiguous, so that what is computed stays in the cache.

Operators that look along time, or at one cell, work on a tile at a time: their intermediate values never leave the
processor's cache. Operators that compare the names of a day need whole rows, which `kernels.moves` collects from the
tiles and puts back, a few rows at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..kernels.cells import Array

TILE_BYTES = 3 << 20
"""Small enough for some tiles to share the third cache, wide enough for the loop over the columns to pay."""
TILE_LANES = 16
ROWS_TOGETHER = 16
"""Rows of a tile that an operator on single cells takes for one."""
MIN_TILE_COLUMNS = 64
"""Columns below which the loop over the days costs more than the cells."""

Flat = NDArray[np.float32]
"""Values of a whole panel, tile after tile."""


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
        """Choose tiles of about the cache's size, as many for one thread as for another."""
        wanted = max(TILE_BYTES // (4 * max(days, 1)), MIN_TILE_COLUMNS)
        count = max(1, round(names / wanted))
        count = -(-count // threads) * threads
        each = -(-names // count)
        return cls(days, names, max(TILE_LANES, -(-each // TILE_LANES) * TILE_LANES))

    @property
    def count(self) -> int:
        """Return how many tiles there are."""
        return -(-self.names // self.width)

    def columns(self, tile: int) -> tuple[int, int]:
        """Return the first column of a tile, and the one after its last."""
        return tile * self.width, min((tile + 1) * self.width, self.names)

    def empty(self) -> Flat:
        """Return room for a panel, with anything in it."""
        return np.empty(self.days * self.names, np.float32)

    def tile(self, flat: Flat, tile: int) -> Array:
        """Return one tile of a panel as an array of days and columns, not copied."""
        lo, hi = self.columns(tile)
        return flat[self.days * lo : self.days * hi].reshape(self.days, hi - lo)

    def cut(self, rows: Array) -> Flat:
        """Return an array of days and names tile after tile."""
        flat = self.empty()
        for tile in range(self.count):
            lo, hi = self.columns(tile)
            self.tile(flat, tile)[:] = rows[:, lo:hi]
        return flat
