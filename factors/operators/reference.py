"""Helpers of the slow reference implementations in float64: windows without gaps, spreads, lines and percentiles."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
EPSILON = float(np.finfo(np.float32).eps)


def known_values(window: Values) -> Values:
    """Return the values that are present."""
    return window[~np.isnan(window)]


def both_known(x: Values, y: Values) -> tuple[Values, Values]:
    """Return the rows where both are present."""
    there = ~np.isnan(x) & ~np.isnan(y)
    return x[there], y[there]


def is_flat(values: Values) -> bool:
    """Return whether values differ by no more than float32 rounding."""
    mean = values.mean()
    return bool(((values - mean) ** 2).sum() <= len(values) * (mean * EPSILON) ** 2)


def variance(values: Values, ddof: float) -> float:
    """Return the variance; NaN if there are no more than `ddof` values."""
    return float(((values - values.mean()) ** 2).sum() / (len(values) - ddof)) if len(values) > ddof else math.nan


def score(now: float, values: Values, ddof: float) -> float:
    """Return the distance of a value from the mean in standard deviations; NaN for flat values."""
    if len(values) <= ddof or is_flat(values):
        return math.nan
    return float((now - values.mean()) / math.sqrt(variance(values, ddof)))


def places(values: Values, ties: float, scaled: float) -> Values:
    """Rank values; `ties` (average, min, max, first) and `scaled` (percent, zero, unit, count) are positions."""
    order = values[:, None]
    below, same = (values < order).sum(axis=1), (values == order).sum(axis=1)
    earlier = np.array([(values[:at] == value).sum() for at, value in enumerate(values)])
    rank = (below + (same + 1) / 2, below + 1.0, below + same + 0.0, below + earlier + 1.0)[int(ties)]
    with np.errstate(all="ignore"):
        count = len(values)
        shares: Values = (rank / count, (rank - 1) / count, (rank - 1) / (count - 1), rank)[int(scaled)]
        return shares


def line(y: Values, x: Values) -> tuple[float, float]:
    """Return slope and intercept of the least-squares line of y on x, over the rows where both are present."""
    y, x = both_known(y, x)
    if is_flat(x):
        return math.nan, math.nan
    slope = ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()
    return float(slope), float(y.mean() - slope * x.mean())


def row_numbers(window: Values) -> Values:
    """Return the number of each row."""
    return np.arange(len(window)).astype(float) + 1000.0


def correlation(x: Values, y: Values) -> float:
    """Return Pearson's correlation over the rows where both are present; NaN if one is constant."""
    x, y = both_known(x, y)
    if is_flat(x) or is_flat(y):
        return math.nan
    a, b = x - x.mean(), y - y.mean()
    return float(np.clip((a * b).sum() / (math.sqrt((a**2).sum()) * math.sqrt((b**2).sum())), -1, 1))


def covariance(x: Values, y: Values, ddof: float) -> float:
    """Return the covariance over the rows where both are present."""
    x, y = both_known(x, y)
    return float(((x - x.mean()) * (y - y.mean())).sum() / (len(x) - ddof)) if len(x) > ddof else math.nan


def weighted_mean(window: Values, weight: Callable[[int], float]) -> float:
    """Return the mean with weights by age, 0 for the newest row, over the present values."""
    weights = np.array([weight(age) for age in range(len(window))])[::-1]
    there = ~np.isnan(window)
    return float((weights[there] * window[there]).sum() / weights[there].sum())
