"""Measure the names of a day by their median, which no outlier moves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...kernels.cells import Array, Members, Sums
from ...language.declare import LINEAR, across
from ...language.obvious import Values
from ...language.signature import Argument, Prose

NORMAL_MAD_FACTOR = 1.482602218505602
"""What the median absolute deviation of a normal variable is multiplied by to give its standard deviation."""


def _row_medians(rows: NDArray[np.floating]) -> Sums:
    """Return the median of each row as a column; numpy's sort puts missing values last."""
    ordered = np.sort(rows, axis=1)
    count = np.isfinite(ordered).sum(axis=1, keepdims=True)
    low, high = np.maximum(count - 1, 0) // 2, count // 2 * (count > 0)
    two = np.take_along_axis(ordered, np.hstack([low, high]), axis=1).astype(np.float64)
    middle: Sums = two.mean(axis=1, keepdims=True)
    return middle


def _member_values(values: Array, member: Members, lo: int, hi: int) -> Array:
    return np.where(member[lo:hi], values[lo:hi], np.float32(np.nan))


def median_across(out: Array, values: Array, member: Members, lo: int, hi: int) -> None:
    """Give the median of each day to each name with a value."""
    rows = _member_values(values, member, lo, hi)
    out[lo:hi] = np.where(np.isnan(rows), np.nan, _row_medians(rows))


def winsorize_mad(out: Array, values: Array, member: Members, limit: float, lo: int, hi: int) -> None:
    """Hold within some median absolute deviations, scaled to the normal, of the median of the day."""
    rows = _member_values(values, member, lo, hi).astype(np.float64)
    centre = _row_medians(rows)
    reach = limit * NORMAL_MAD_FACTOR * _row_medians(np.abs(rows - centre))
    out[lo:hi] = np.clip(rows, centre - reach, centre + reach)


def _winsorize_mad_reference(x: Values, limit: float) -> Values:
    reach = limit * NORMAL_MAD_FACTOR * np.median(np.abs(x - np.median(x)))
    return np.clip(x, np.median(x) - reach, np.median(x) + reach)


MEDIAN_ACROSS = across(
    "median_across", "x", "same",
    Prose("Median of x over the names, on each of them.", "the cross-sectional median of {x}", "median_across(returns)"),
    median_across, cost=8.0, scaling=LINEAR, reference=lambda x: np.full(len(x), np.median(x)),
)  # fmt: skip
WINSORIZE_MAD = across(
    "winsorize_mad", "x", "same",
    Prose("x held within `limit` robust standard deviations of the median of the names: 1.4826 times the median absolute "
          "deviation from it.",
          "{x} held within {limit} median absolute deviations of its median", "winsorize_mad(returns, 3)"),
    winsorize_mad, Argument("limit", "number", 3.0, low=1e-9), cost=25.0, scaling=LINEAR,
    nan="Where more than half are equal, all become that value.", reference=_winsorize_mad_reference,
)  # fmt: skip
