"""Rank the names of each day, and correlate ranks; exact, and fast enough to score thousands of factors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..kernels.ranking import Columns, Ties, correlate_orders, percentiles, settle

MIN_NAMES = 10


@dataclass(frozen=True)
class RowOrder:
    """The order of the names on each day, computed once for arrays that are compared often.

    Attributes
    ----------
    columns : NDArray[np.int32]
        ``[T, N]``: on day t, the first ``counts[t]`` entries are the columns of the present values, in ascending order.
    tied : NDArray[np.bool_]
        ``[T, N]``: True where an entry's value equals that of the entry before.
    counts : NDArray[np.int64]
        ``[T]``: the number of present values.
    """

    columns: Columns
    tied: Ties
    counts: NDArray[np.int64]

    def take(self, days: slice) -> RowOrder:
        """Return the order of some of the days."""
        columns, tied, counts = self.columns[days], self.tied[days], self.counts[days]
        return RowOrder(np.ascontiguousarray(columns), np.ascontiguousarray(tied), np.ascontiguousarray(counts))


def order_rows(values: NDArray[np.floating]) -> RowOrder:
    """Sort each day's names.

    Parameters
    ----------
    values : NDArray
        ``[T, N]`` of float32 or float64; NaN is missing. Infinite values are ordered like any other.

    Returns
    -------
    RowOrder
        The exact order; equal values are tied, and so are 0.0 and -0.0.
    """
    values = _prepare_array(values)
    days, names = values.shape
    order = RowOrder(np.empty((days, names), np.int32), np.empty((days, names), np.bool_), np.empty(days, np.int64))
    settle(order.columns, order.tied, order.counts, values)
    return order


def rank_rows(values: NDArray[np.floating] | RowOrder) -> NDArray[np.float64]:
    """Rank the names of each day: ascending, ties averaged, percentile in (0, 1].

    Parameters
    ----------
    values : NDArray or RowOrder
        ``[T, N]`` of float32 or float64, NaN is missing; or their order, to save the sorting.

    Returns
    -------
    NDArray[np.float64]
        ``[T, N]``; the highest of a day has 1, NaN stays NaN. As ``pandas.DataFrame.rank(axis=1, pct=True)``.
    """
    order = values if isinstance(values, RowOrder) else order_rows(values)
    out = np.empty(order.columns.shape, np.float64)
    percentiles(out, order.columns, order.tied, order.counts)
    return out


def row_rank_correlation(
    a: NDArray[np.floating] | RowOrder, b: NDArray[np.floating] | RowOrder, *, min_names: int = MIN_NAMES
) -> NDArray[np.float64]:
    """Correlate two panels' ranks day by day (Spearman's rho, ties averaged).

    Only names that have both values on a day take part, and they are ranked among themselves.

    Parameters
    ----------
    a, b : NDArray or RowOrder
        ``[T, N]`` values, NaN is missing; or their order, to save repeated sorting.
    min_names : int
        Days with fewer joint names give NaN.

    Returns
    -------
    NDArray[np.float64]
        ``[T]`` correlations in [-1, 1]; NaN also where all values of one side are equal. Sums are of whole numbers: the
        only rounding is in the last division and roots.

    Raises
    ------
    ValueError
        If the shapes differ.
    """
    left = a if isinstance(a, RowOrder) else order_rows(a)
    right = b if isinstance(b, RowOrder) else order_rows(b)
    if left.columns.shape != right.columns.shape:
        raise ValueError(f"`a` and `b` must have one shape, got {left.columns.shape} and {right.columns.shape}")
    out = np.empty(len(left.counts), np.float64)
    correlate_orders(out, (left.columns, left.tied, left.counts), (right.columns, right.tied, right.counts), min_names)
    return out


def _prepare_array(values: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return values as the kernels take them: two axes, float32 or float64, contiguous, writeable."""
    values = np.asarray(values)
    if values.ndim != 2:
        raise ValueError(f"`values` must have the axes days and names, got the shape {values.shape}")
    kind = np.float32 if values.dtype == np.float32 else np.float64
    return np.require(values, kind, ["C", "W"])
