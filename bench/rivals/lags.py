"""Rolling operators that neither pandas nor bottleneck has, as a user of numpy writes them: one pass for each lag."""

from __future__ import annotations

import numpy as np

from .wire import Array


def shift(x: Array, window: int) -> Array:
    """Return x as it was `window` rows ago."""
    out = np.full_like(x, np.nan)
    if window < len(x):
        out[window:] = x[: len(x) - window]
    return out


def weighted(x: Array, weights: Array) -> Array:
    """Return the weighted sum of the window, `weights[0]` for today."""
    total = x * x.dtype.type(weights[0])
    for lag in range(1, len(weights)):
        total += shift(x, lag) * x.dtype.type(weights[lag])
    return total


def decay(x: Array, window: int) -> Array:
    """Return the mean with weights `window` (today) down to 1."""
    weights = np.arange(window, 0, -1.0)
    return weighted(x, weights / weights.sum())


def product(x: Array, window: int) -> Array:
    """Return the product of the window."""
    total = x.copy()
    for lag in range(1, window):
        total *= shift(x, lag)
    return total


def since_highest(x: Array, window: int) -> Array:
    """Return how many rows ago the highest value of the window was; the oldest wins a tie."""
    best, since = x.copy(), np.zeros_like(x)
    missing = np.isnan(x)
    for lag in range(1, window):
        older = shift(x, lag)
        missing |= np.isnan(older)
        higher = older >= best
        best, since = np.where(higher, older, best), np.where(higher, x.dtype.type(lag), since)
    since[missing] = np.nan
    return since


def slope(x: Array, window: int) -> Array:
    """Return the slope of the least-squares line on time."""
    days = np.arange(window)[::-1] - (window - 1) / 2
    return weighted(x, days / (days**2).sum())


def residual(x: Array, window: int) -> Array:
    """Return today's distance from the least-squares line on time."""
    mean = weighted(x, np.full(window, 1 / window))
    return x - mean - slope(x, window) * x.dtype.type((window - 1) / 2)


def rsquare(x: Array, window: int) -> Array:
    """Return the R squared of the least-squares line on time."""
    mean = weighted(x, np.full(window, 1 / window))
    squares = np.zeros_like(x)
    for lag in range(window):
        squares += (shift(x, lag) - mean) ** 2
    days = np.arange(window) - (window - 1) / 2
    return slope(x, window) ** 2 * x.dtype.type((days**2).sum()) / squares
