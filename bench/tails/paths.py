"""Many series at once, and the Newey-West t of each: independent of the code that it checks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, toeplitz

Paths = NDArray[np.float32]
"""`[paths, days]`."""
Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile a function of arrays and numbers when it is first called."""
    return cast(Function, numba.njit(fastmath=True)(function))


@compiled
def moving_sums(shocks: Paths, horizon: int, out: Paths) -> None:
    """Add up each `horizon` shocks in a row: what a factor that never changes earns over its labels."""
    for path in range(out.shape[0]):
        total = 0.0
        for step in range(horizon):
            total += shocks[path, step]
        out[path, 0] = total
        for day in range(1, out.shape[1]):
            total += shocks[path, day + horizon - 1] - shocks[path, day - 1]
            out[path, day] = total


@compiled
def banded_sums(shocks: Paths, band: NDArray[np.float64], out: Paths) -> None:
    """Multiply shocks by a lower triangular matrix of which only the diagonals near the main one are not zero."""
    width = band.shape[1]
    for path in range(out.shape[0]):
        for day in range(out.shape[1]):
            total = 0.0
            for back in range(min(width, day + 1)):
                total += band[day, back] * shocks[path, day - back]
            out[path, day] = total


def changing(days: int, horizon: int, persistence: float) -> NDArray[np.float64]:
    """Return the bands of the series of a factor whose autocorrelation is `persistence ** lag`, `[days, horizon]`.

    Its RankIC has the autocorrelation `(1 - lag / horizon) * persistence ** lag`.
    """
    steps = np.arange(days)
    factor = cholesky(toeplitz(np.maximum(1 - steps / horizon, 0) * persistence**steps), lower=True)
    band = np.zeros((days, horizon))
    for back in range(horizon):
        band[back:, back] = np.diag(factor, -back)
    return band


@compiled
def clustered(shocks: Paths, reaction: float, memory: float, asymmetry: float) -> None:
    """Give shocks a variance that remembers (GARCH), in place; `asymmetry` is what falls add to it."""
    for path in range(shocks.shape[0]):
        variance = 1.0
        for day in range(shocks.shape[1]):
            shock = shocks[path, day] * math.sqrt(variance)
            shocks[path, day] = shock
            kick = reaction + (asymmetry if shock < 0 else 0.0)
            variance = 1 - reaction - memory - asymmetry / 2 + kick * shock * shock + memory * variance


@compiled
def remembered(shocks: Paths, persistence: float) -> None:
    """Give shocks an autocorrelation, in place."""
    rest = math.sqrt(1 - persistence * persistence)
    for path in range(shocks.shape[0]):
        for day in range(1, shocks.shape[1]):
            shocks[path, day] = persistence * shocks[path, day - 1] + rest * shocks[path, day]


@compiled
def t_statistics(series: Paths, lag: int, out: NDArray[np.float64]) -> None:
    """Compute the Newey-West t of each mean.

    Bartlett weights on autocovariances are the mean square of the sums of `lag + 1` values in a row, with zeros before
    the first and after the last: one pass, whatever the lag.
    """
    days = series.shape[1]
    sums = np.zeros(days + 2 * lag + 2)
    for path in range(series.shape[0]):
        mean = 0.0
        for day in range(days):
            mean += series[path, day]
        mean /= days
        total = 0.0
        for day in range(days):
            total += series[path, day] - mean
            sums[lag + 1 + day] = total
        sums[lag + 1 + days :] = total
        square = 0.0
        for place in range(days + lag):
            part = sums[place + lag + 1] - sums[place]
            square += part * part
        out[path] = mean * days / math.sqrt(square / (lag + 1))
