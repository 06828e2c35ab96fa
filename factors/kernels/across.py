"""Compare the names of one day: means, spreads and gross sums over the members of the universe."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .cells import NAN, Array, finite, is_constant
from .kernel_cache import kernel

Members = NDArray[np.bool_]
Codes = NDArray[np.int16]


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
def _set(out: Array, row: Array, member: Members, centre: float, factor: float) -> None:
    """Write the members' distances from a centre times a factor; NaN for the others."""
    for j in range(out.size):
        out[j] = finite((np.float64(row[j]) - centre) * factor) if member[j] else NAN


@kernel
def demean(out: Array, values: Array, member: Members, lo: int, hi: int) -> None:
    """Subtract the mean of the day."""
    for day in range(lo, hi):
        _, mean, _ = _centre(values[day], member[day])
        _set(out[day], values[day], member[day], mean, 1.0)


@kernel
def zscore(out: Array, values: Array, member: Members, ddof: float, lo: int, hi: int) -> None:
    """Subtract the mean of the day and divide by its standard deviation."""
    for day in range(lo, hi):
        count, mean, squares = _centre(values[day], member[day])
        flat = count <= ddof or is_constant(squares, mean, count)
        factor = np.nan if flat else 1.0 / math.sqrt(squares / (count - ddof))
        _set(out[day], values[day], member[day], mean, factor)


@kernel
def winsorize(out: Array, values: Array, member: Members, limit: float, lo: int, hi: int) -> None:
    """Hold within some standard deviations of the mean of the day; a single name is left as it is."""
    for day in range(lo, hi):
        row, o = values[day], out[day]
        count, mean, squares = _centre(row, member[day])
        reach = limit * math.sqrt(squares / (count - 1.0)) if count > 1.0 else np.inf
        for j in range(o.size):
            held = min(max(np.float64(row[j]), mean - reach), mean + reach)
            o[j] = np.float32(held) if member[day, j] and row[j] == row[j] else NAN


@kernel
def scale(out: Array, values: Array, member: Members, gross: float, lo: int, hi: int) -> None:
    """Scale so that the absolute values of the day have a given sum."""
    for day in range(lo, hi):
        row, total = values[day], 0.0
        for j in range(row.size):
            if member[day, j] and row[j] == row[j]:
                total += abs(np.float64(row[j]))
        _set(out[day], row, member[day], 0.0, gross / total)


@kernel
def _group_centres(row: Array, codes: Codes, member: Members, sums: NDArray[np.float64]) -> None:
    """Fill count, mean and squared deviations of each group, in two passes."""
    sums[:] = 0.0
    for j in range(row.size):
        if member[j] and codes[j] >= 0 and row[j] == row[j]:
            sums[0, codes[j]] += 1.0
            sums[1, codes[j]] += np.float64(row[j])
    for g in range(sums.shape[1]):
        sums[1, g] /= sums[0, g]
    for j in range(row.size):
        if member[j] and codes[j] >= 0 and row[j] == row[j]:
            sums[2, codes[j]] += (np.float64(row[j]) - sums[1, codes[j]]) ** 2


@kernel
def group_demean(out: Array, values: Array, codes: Codes, member: Members, lo: int, hi: int) -> None:
    """Subtract the mean of the group."""
    sums = np.empty((3, max(codes.max(), 0) + 1))
    for day in range(lo, hi):
        row, o = values[day], out[day]
        _group_centres(row, codes, member[day], sums)
        for j in range(o.size):
            known = member[day, j] and codes[j] >= 0
            o[j] = finite(np.float64(row[j]) - sums[1, codes[j]]) if known else NAN


@kernel
def group_zscore(out: Array, values: Array, codes: Codes, member: Members, ddof: float, lo: int, hi: int) -> None:
    """Subtract the mean of the group and divide by its standard deviation."""
    sums = np.empty((3, max(codes.max(), 0) + 1))
    for day in range(lo, hi):
        row, o = values[day], out[day]
        _group_centres(row, codes, member[day], sums)
        for g in range(sums.shape[1]):
            count, mean, squares = sums[0, g], sums[1, g], sums[2, g]
            flat = count <= ddof or is_constant(squares, mean, count)
            sums[2, g] = np.nan if flat else 1.0 / math.sqrt(squares / (count - ddof))
        for j in range(o.size):
            known = member[day, j] and codes[j] >= 0
            o[j] = finite((np.float64(row[j]) - sums[1, codes[j]]) * sums[2, codes[j]]) if known else NAN
