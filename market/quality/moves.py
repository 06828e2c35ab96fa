"""Log moves of every symbol, the move of the market, and the usual size of a symbol's moves: the data of all checks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..panel import Panel
from ..traded import measure_traded_money

Frame = NDArray[np.float64]
Mask = NDArray[np.bool_]

MAD_TO_DEVIATION = 1.4826
"""The standard deviation of a normal variable over its median absolute deviation."""
MAX_NAME_SHARE = 0.1
"""Cap of one symbol's log move in the market's move, so that a wrong price cannot move the market."""
SAMPLE_ROWS = 500
"""Rows of a sample, evenly spaced."""
MIN_KNOWN_VALUES = 20
"""Moves below which a symbol has no usual size of its own."""
CLIP_IN_MOVES = 4.0
"""Clip of moves in units of the usual one."""
ROWS_AROUND = 10
"""Rows on each side of an event that give the local size of moves."""


@dataclass(frozen=True)
class LogMoves:
    """Log moves of a panel, each `[T, N]` unless stated otherwise, computed on first use.

    A move needs both prices, on consecutive rows; prices that are not positive count as missing.
    """

    panel: Panel

    @cached_property
    def close(self) -> Frame:
        """Return the log of the close."""
        return compute_logs(self.panel.fields["close"])

    @cached_property
    def open(self) -> Frame:
        """Return the log of the open."""
        return compute_logs(self.panel.fields["open"])

    @cached_property
    def volume(self) -> Frame:
        """Return the log of the volume; NaN where nothing was traded."""
        return compute_logs(self.panel.fields["volume"])

    @cached_property
    def traded(self) -> Frame:
        """Return the money traded."""
        return measure_traded_money(self.panel)

    @cached_property
    def returns(self) -> Frame:
        """Return the log return from close to close; NaN on the first row."""
        return compute_daily_changes(self.close, self.close)

    @cached_property
    def night(self) -> Frame:
        """Return the log return from close to the next open, in the row of that open."""
        return compute_daily_changes(self.open, self.close)

    @cached_property
    def market(self) -> Frame:
        """Return the mean clipped move of each day `[T]`; 0 where none is known."""
        return compute_row_means(np.clip(self.returns, -MAX_NAME_SHARE, MAX_NAME_SHARE))

    @cached_property
    def own(self) -> Frame:
        """Return the move of each symbol less the market's."""
        return np.asarray(self.returns - self.market[:, None])

    @cached_property
    def usual(self) -> Frame:
        """Return the robust deviation of each symbol's own daily move `[N]`; the median for a quiet or new symbol."""
        return compute_usual_size(self.own)

    @cached_property
    def unit(self) -> Frame:
        """Return each symbol's own move in units of its usual one, clipped at ±4."""
        return np.asarray(np.clip(self.own / self.usual, -CLIP_IN_MOVES, CLIP_IN_MOVES))


def compute_logs(values: Frame) -> Frame:
    """Return the natural logarithm in float64; NaN where a value is not positive or not finite."""
    out = np.full(values.shape, np.nan)
    with np.errstate(invalid="ignore"):
        np.log(values, out=out, where=(values > 0) & (values < np.inf))
    return out


def compute_daily_changes(today: Frame, before: Frame) -> Frame:
    """Return each row less the row before of the other frame; NaN on the first row."""
    out = np.full(today.shape, np.nan)
    np.subtract(today[1:], before[:-1], out=out[1:])
    return out


def compute_row_means(values: Frame) -> Frame:
    """Return the mean of the known values of each row `[T]`; 0 where there are none."""
    known = ~np.isnan(values)
    total: Frame = np.where(known, values, 0.0).sum(axis=1)
    return np.asarray(total / np.maximum(known.sum(axis=1), 1))


def compute_medians(values: Frame) -> Frame:
    """Return the median of the known values of each column `[N]`; NaN where there are none."""
    ordered = np.sort(values, axis=0)  # missing values go last
    count = (~np.isnan(values)).sum(axis=0)
    column = np.arange(values.shape[1])
    low, high = np.maximum(count - 1, 0) // 2, np.minimum(count // 2, max(len(values) - 1, 0))
    if not len(values):
        return np.full(values.shape[1], np.nan)
    middle: Frame = (ordered[low, column] + ordered[high, column]) / 2.0
    return middle


def thin_rows(values: Frame) -> Frame:
    """Return at most `SAMPLE_ROWS` evenly spaced rows."""
    return values[:: max(1, -(-len(values) // SAMPLE_ROWS))]


def compute_usual_size(moves: Frame) -> Frame:
    """Return 1.4826 times the median absolute move of each symbol `[N]`, on evenly spaced days.

    A symbol with fewer than twenty moves, or that mostly does not move, gets the median of the others.
    """
    sample = np.abs(thin_rows(moves))
    size = MAD_TO_DEVIATION * compute_medians(sample)
    with np.errstate(invalid="ignore"):
        known = ((~np.isnan(sample)).sum(axis=0) >= MIN_KNOWN_VALUES) & (size > 0)
        other = size[known] if known.any() else size[size > 0]
    return np.where(known, size, float(np.median(other)) if other.size else 1.0)


def list_marked_cells(where: Mask, most: int) -> list[tuple[int, int]]:
    """Return (row, column) of the marked cells, by day and then by symbol, at most `most` of them."""
    return [(int(day), int(name)) for day, name in np.argwhere(where)[:most]]


def format_cell(panel: Panel, day: int, name: int) -> str:
    """Return a cell as `AAPL 2014-06-09`."""
    return f"{panel.symbols[name]} {panel.dates[day]}"


def compute_local_size(moves: Frame, first: int, end: int) -> float:
    """Return 1.4826 times the median absolute move of ten rows before `first` and ten from `end` on; 0 if unknown."""
    around = np.concatenate([moves[max(first - ROWS_AROUND, 0) : first], moves[end : end + ROWS_AROUND]])
    around = np.abs(around[~np.isnan(around)])
    return MAD_TO_DEVIATION * float(np.median(around)) if around.size else 0.0
