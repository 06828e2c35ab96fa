"""Compare the names of one day: means, spreads and gross sums over the members of the universe."""

from __future__ import annotations

import math

import numpy as np

from ...kernels.cells import NAN, Array, Members, finite, is_constant
from ...kernels.kernel_cache import kernel
from ...language.declare import DDOF, LINEAR, ODD, across
from ...language.obvious import Values, score, variance
from ...language.signature import Argument, Prose


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
def zscore(out: Array, values: Array, member: Members, ddof: int, lo: int, hi: int) -> None:
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


def _winsorize_reference(x: Values, limit: float) -> Values:
    reach = limit * math.sqrt(variance(x, 1)) if len(x) > 1 else math.inf
    return np.clip(x, x.mean() - reach, x.mean() + reach)


ZSCORE = across(
    "zscore", "x", "ratio",
    Prose("x less the mean of the names, over their standard deviation.", "the cross-sectional z-score of {x}",
          "zscore(returns)"),
    zscore, DDOF, scaling=ODD, nan="A day on which all are equal gives NaN.",
    reference=lambda x, ddof: np.array([score(each, x, ddof) for each in x]),
)  # fmt: skip
SCALE = across(
    "scale", "x", "ratio",
    Prose("x scaled so that the absolute values of the day sum to `to`.", "{x} scaled to a gross sum of {to}",
          "scale(returns)"),
    scale, Argument("to", "number", 1.0, True, low=1e-9), cost=2.0, scaling=ODD,
    nan="A day on which all are zero gives NaN.", reference=lambda x, to: x * to / np.abs(x).sum(),
)  # fmt: skip
WINSORIZE = across(
    "winsorize", "x", "same",
    Prose("x held within `limit` standard deviations (ddof 1) of the mean of the names.",
          "{x} held within {limit} standard deviations of its mean", "winsorize(returns, 3)"),
    winsorize, Argument("limit", "number", 3.0, low=1e-9), scaling=LINEAR, reference=_winsorize_reference,
)  # fmt: skip
DEMEAN = across(
    "demean", "x", "same",
    Prose("x less the mean of the names.", "{x} less its cross-sectional mean", "demean(returns)"),
    demean, scaling=LINEAR, reference=lambda x: x - x.mean(),
)  # fmt: skip
