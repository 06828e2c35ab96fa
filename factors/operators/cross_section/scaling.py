"""Put the values of one day on a common scale: centred, standardised, bounded, or with a fixed gross sum.

Only members of the universe count. `winsorize_mad` sets its bounds by the median, which no outlier moves.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ...kernels.cells import NAN, Array, Members, Sums, finite, is_constant
from ...kernels.kernel_cache import kernel
from ...language.operator import DDOF, LINEAR, ODD, Argument, Prose, across
from ..reference import Values, score, variance


@kernel
def _centre(row: Array, member: Members) -> tuple[float, float, float]:
    """Return count, mean and squared deviations of a day, in two passes."""
    count, total, squares = 0.0, 0.0, 0.0
    for j in range(row.size):
        if member[j] and row[j] == row[j]:
            count += 1.0
            total += np.float64(row[j])
    mean = total / count
    for j in range(row.size):
        if member[j] and row[j] == row[j]:
            squares += (np.float64(row[j]) - mean) ** 2
    return count, mean, squares


@kernel
def _write_scaled(out: Array, row: Array, member: Members, centre: float, factor: float) -> None:
    """Write the members' distances from a centre times a factor; NaN for the others."""
    for j in range(out.size):
        out[j] = finite((np.float64(row[j]) - centre) * factor) if member[j] else NAN


@kernel
def demean(out: Array, values: Array, member: Members, lo: int, hi: int) -> None:
    """Subtract the mean of the day."""
    for day in range(lo, hi):
        _, mean, _ = _centre(values[day], member[day])
        _write_scaled(out[day], values[day], member[day], mean, 1.0)


@kernel
def zscore(out: Array, values: Array, member: Members, ddof: int, lo: int, hi: int) -> None:
    """Subtract the mean of the day and divide by its standard deviation."""
    for day in range(lo, hi):
        count, mean, squares = _centre(values[day], member[day])
        flat = count <= ddof or is_constant(squares, mean, count)
        factor = np.nan if flat else 1.0 / math.sqrt(squares / (count - ddof))
        _write_scaled(out[day], values[day], member[day], mean, factor)


@kernel
def winsorize(out: Array, values: Array, member: Members, limit: float, lo: int, hi: int) -> None:
    """Clip to some standard deviations around the mean of the day; a single name is unchanged."""
    for day in range(lo, hi):
        row, o = values[day], out[day]
        count, mean, squares = _centre(row, member[day])
        reach = limit * math.sqrt(squares / (count - 1.0)) if count > 1.0 else np.inf
        for j in range(o.size):
            clipped = min(max(np.float64(row[j]), mean - reach), mean + reach)
            o[j] = np.float32(clipped) if member[day, j] and row[j] == row[j] else NAN


@kernel
def scale(out: Array, values: Array, member: Members, gross: float, lo: int, hi: int) -> None:
    """Scale so that the absolute values of the day sum to `gross`."""
    for day in range(lo, hi):
        row, total = values[day], 0.0
        for j in range(row.size):
            if member[day, j] and row[j] == row[j]:
                total += abs(np.float64(row[j]))
        _write_scaled(out[day], row, member[day], 0.0, gross / total)


def _winsorize_reference(x: Values, limit: float) -> Values:
    reach = limit * math.sqrt(variance(x, 1)) if len(x) > 1 else math.inf
    return np.clip(x, x.mean() - reach, x.mean() + reach)


ZSCORE = across(
    "zscore", "x", "ratio",
    Prose("x less the mean of the names, over their standard deviation.", "the cross-sectional z-score of {x}",
          "zscore(returns)"),
    zscore, DDOF, scaling=ODD, nan="A day on which all are equal gives NaN.",
    reference=lambda x, ddof: np.array([score(value, x, ddof) for value in x]),
)  # fmt: skip  # a table
SCALE = across(
    "scale", "x", "ratio",
    Prose("x scaled so that the absolute values of the day sum to `to`.", "{x} scaled to a gross sum of {to}",
          "scale(returns)"),
    scale, Argument("to", "number", 1.0, True, low=1e-9), cost=2.0, scaling=ODD,
    nan="A day on which all are zero gives NaN.", reference=lambda x, to: x * to / np.abs(x).sum(),
)  # fmt: skip  # a table
WINSORIZE = across(
    "winsorize", "x", "same",
    Prose("x held within `limit` standard deviations (ddof 1) of the mean of the names.",
          "{x} held within {limit} standard deviations of its mean", "winsorize(returns, 3)"),
    winsorize, Argument("limit", "number", 3.0, low=1e-9), scaling=LINEAR, reference=_winsorize_reference,
)  # fmt: skip  # a table
DEMEAN = across(
    "demean", "x", "same",
    Prose("x less the mean of the names.", "{x} less its cross-sectional mean", "demean(returns)"),
    demean, scaling=LINEAR, reference=lambda x: x - x.mean(),
)  # fmt: skip  # a table


NORMAL_MAD_FACTOR = 1.482602218505602
"""Ratio of the standard deviation of a normal variable to its median absolute deviation."""


def _take_row_medians(rows: NDArray[np.floating]) -> Sums:
    """Return the median of each row as a column; numpy's sort puts missing values last."""
    ordered = np.sort(rows, axis=1)
    count = np.isfinite(ordered).sum(axis=1, keepdims=True)
    low, high = np.maximum(count - 1, 0) // 2, count // 2 * (count > 0)
    two = np.take_along_axis(ordered, np.hstack([low, high]), axis=1).astype(np.float64)
    middle: Sums = two.mean(axis=1, keepdims=True)
    return middle


def _mask_members(values: Array, member: Members, lo: int, hi: int) -> Array:
    return np.where(member[lo:hi], values[lo:hi], np.float32(np.nan))


def median_across(out: Array, values: Array, member: Members, lo: int, hi: int) -> None:
    """Write the median of each day to each name with a value."""
    rows = _mask_members(values, member, lo, hi)
    out[lo:hi] = np.where(np.isnan(rows), np.nan, _take_row_medians(rows))


def winsorize_mad(out: Array, values: Array, member: Members, limit: float, lo: int, hi: int) -> None:
    """Clip to some median absolute deviations, scaled as for a normal variable, around the median of the day."""
    rows = _mask_members(values, member, lo, hi).astype(np.float64)
    centre = _take_row_medians(rows)
    reach = limit * NORMAL_MAD_FACTOR * _take_row_medians(np.abs(rows - centre))
    out[lo:hi] = np.clip(rows, centre - reach, centre + reach)


def _winsorize_mad_reference(x: Values, limit: float) -> Values:
    reach = limit * NORMAL_MAD_FACTOR * np.median(np.abs(x - np.median(x)))
    return np.clip(x, np.median(x) - reach, np.median(x) + reach)


MEDIAN_ACROSS = across(
    "median_across", "x", "same",
    Prose("Median of x over the names, on each of them.", "the cross-sectional median of {x}",
          "median_across(returns)"),
    median_across, cost=8.0, scaling=LINEAR, reference=lambda x: np.full(len(x), np.median(x)),
)  # fmt: skip  # a table
WINSORIZE_MAD = across(
    "winsorize_mad", "x", "same",
    Prose("x held within `limit` robust standard deviations of the median of the names: 1.4826 times the median "
          "absolute deviation from it.",
          "{x} held within {limit} median absolute deviations of its median", "winsorize_mad(returns, 3)"),
    winsorize_mad, Argument("limit", "number", 3.0, low=1e-9), cost=25.0, scaling=LINEAR,
    nan="Where more than half are equal, all become that value.", reference=_winsorize_mad_reference,
)  # fmt: skip  # a table


def minmax(out: Array, values: Array, member: Members, lo: int, hi: int) -> None:
    """Scale each day so that its lowest value is 0 and its highest 1."""
    rows = np.where(member[lo:hi], values[lo:hi], np.nan).astype(np.float64)
    low, high = np.fmin.reduce(rows, axis=1, keepdims=True), np.fmax.reduce(rows, axis=1, keepdims=True)
    with np.errstate(all="ignore"):
        out[lo:hi] = np.where(high > low, (rows - low) / (high - low), np.nan)


MINMAX = across(
    "minmax", "x", "ratio",
    Prose("x moved and scaled so that the names of the day span 0 to 1.", "{x} scaled to span 0 to 1",
          "minmax(volume)"),
    minmax, nan="Where all are equal it is NaN.", reference=lambda x: (x - x.min()) / (x.max() - x.min()),
)  # fmt: skip  # a table
TRUNCATE = across(
    "truncate", "x", "same",
    Prose("x held within a share of the gross sum of the day: no name is more than `share` of it.",
          "{x} held within {share} of its gross sum", "truncate(scale(returns), 0.01)"),
    None, Argument("share", "number", low=1e-9, high=1), scaling=LINEAR,
    definition="max(min(x, share * sum_across(abs(x))), -share * sum_across(abs(x)))",
)  # fmt: skip  # a table
