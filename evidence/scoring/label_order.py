"""The order of the labels of each day, made once for many factors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ...factors import RowOrder
from ...factors.kernels import kernel

Columns = NDArray[np.uint16] | NDArray[np.uint32]
Flags = NDArray[np.bool_]
Counts = NDArray[np.int64]
Ranks = NDArray[np.int32]
Stack = tuple[Columns, Flags, Counts, Flags, Ranks, Counts]
"""Columns, ties and counts by horizon and day, where there is a tie, ranks, and their sums of squares."""


@dataclass(frozen=True, eq=False)
class LabelOrders:
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
    ranks, squares
        What `label_ranks` writes where every name with a label has a value, ``[H, D / step, N]``, and returns.
    """

    horizons: tuple[int, ...]
    step: int
    columns: Columns
    tied: Flags
    counts: Counts
    any_tie: Flags
    ranks: Ranks
    squares: Counts

    @classmethod
    def stack(cls, orders: Sequence[tuple[int, RowOrder]], step: int) -> LabelOrders:
        """Stack the orders of every ``step``-th day's labels, given by horizon; at least one."""
        horizons, rows = zip(*orders, strict=True)
        small = np.uint16 if rows[0].columns.shape[1] <= 1 << 16 else np.uint32
        counts = np.stack([each.counts for each in rows])
        tied = np.stack([each.tied for each in rows]) & (np.arange(rows[0].tied.shape[1]) < counts[:, :, None])
        columns = cast("Columns", np.stack([each.columns for each in rows]).astype(small))
        any_tie = np.asarray(tied.any(axis=2))
        ranks, squares = np.zeros(columns.shape, np.int32), np.zeros(counts.shape, np.int64)
        for at in range(len(horizons)):
            _whole_ranks(ranks[at], squares[at], columns[at], tied[at], counts[at], any_tie[at])
        return cls(tuple(horizons), step, columns, tied, counts, any_tie, ranks, squares)

    @property
    def arrays(self) -> Stack:
        """Return what the kernel reads."""
        return self.columns, self.tied, self.counts, self.any_tie, self.ranks, self.squares


@kernel
def label_ranks(
    packed: Ranks, marks: Flags, columns: Columns, tied: Flags, count: int, any_tie: bool, total: int
) -> int:
    """Write what the walk over the factor's order asks of each name, and return the sum of squares of the ranks.

    Twice the distance of a marked name's rank from the mean rank, doubled, plus one for the mark; 0 for other names.
    """
    packed[:] = 0
    if not any_tie:
        twice = np.int32(1 - total)
        for at in range(count):
            mark = np.int32(marks[columns[at]])
            packed[columns[at]] = 2 * twice * mark + mark
            twice += 2 * mark
        return total * (total * total - 1) // 3
    squares, before, start = 0, 0, 0
    while start < count:
        end, kept = start + 1, int(marks[columns[start]])
        while end < count and tied[end]:
            kept += marks[columns[end]]
            end += 1
        twice = np.int32(2 * before + kept - total)
        for at in range(start, end):
            mark = np.int32(marks[columns[at]])
            packed[columns[at]] = 2 * twice * mark + mark
        squares += kept * int(twice) * int(twice)
        before += kept
        start = end
    return squares


@kernel
def _whole_ranks(out: Ranks, squares: Counts, columns: Columns, tied: Flags, counts: Counts, any_tie: Flags) -> None:
    """Write the ranks of all names with a label, day by day."""
    marks = np.zeros(out.shape[1], np.bool_)
    for day in range(out.shape[0]):
        marks[:] = False
        for at in range(counts[day]):
            marks[columns[day, at]] = True
        squares[day] = label_ranks(out[day], marks, columns[day], tied[day], counts[day], any_tie[day], counts[day])
