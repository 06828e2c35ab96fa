"""The order of the labels of each day, made once for many factors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ..factors import RowOrder

Columns = NDArray[np.uint16] | NDArray[np.uint32]
Flags = NDArray[np.bool_]
Counts = NDArray[np.int64]
Stack = tuple[Columns, Flags, Counts, Flags]
"""Columns, ties and counts by horizon and day, and where there is a tie."""


@dataclass(frozen=True, eq=False)
class Orders:
    """The order of labels at one horizon or several, made once for many factors.

    Attributes
    ----------
    horizons : tuple of int
        In days.
    step : int
        Row k is day ``k * step`` of the window.
    columns, tied, counts
        As in `RowOrder`, stacked by horizon: ``[H, D / step, N]``, ``[H, D / step]``; columns in as few bytes as will do.
    any_tie
        Where the day has equal labels, ``[H, D / step]``.
    """

    horizons: tuple[int, ...]
    step: int
    columns: Columns
    tied: Flags
    counts: Counts
    any_tie: Flags

    @classmethod
    def stack(cls, orders: Sequence[tuple[int, RowOrder]], step: int) -> Orders:
        """Stack the orders of every ``step``-th day's labels, given by horizon; at least one."""
        horizons, rows = zip(*orders, strict=True)
        small = np.uint16 if rows[0].columns.shape[1] <= 1 << 16 else np.uint32
        counts = np.stack([each.counts for each in rows])
        tied = np.stack([each.tied for each in rows]) & (np.arange(rows[0].tied.shape[1]) < counts[:, :, None])
        columns = cast("Columns", np.stack([each.columns for each in rows]).astype(small))
        return cls(tuple(horizons), step, columns, tied, counts, np.asarray(tied.any(axis=2)))

    @property
    def arrays(self) -> Stack:
        """Return what the kernel reads."""
        return self.columns, self.tied, self.counts, self.any_tie
