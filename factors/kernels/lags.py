"""Look back a fixed number of rows."""

from __future__ import annotations

import numpy as np

from .cells import NAN, Array, finite
from .kernel_cache import kernel


@kernel
def delay(out: Array, values: Array, window: int, lo: int, hi: int) -> None:
    """Take the value of `window` rows ago."""
    for day in range(out.shape[0]):
        o = out[day, lo:hi]
        if day < window:
            o[:] = NAN
        else:
            o[:] = values[day - window, lo:hi]


@kernel
def delta(out: Array, values: Array, window: int, lo: int, hi: int) -> None:
    """Subtract the value of `window` rows ago."""
    for day in range(out.shape[0]):
        o = out[day, lo:hi]
        if day < window:
            o[:] = NAN
            continue
        now, then = values[day, lo:hi], values[day - window, lo:hi]
        for j in range(o.size):
            o[j] = finite(now[j] - then[j])


@kernel
def ts_returns(out: Array, values: Array, window: int, lo: int, hi: int) -> None:
    """Divide by the value of `window` rows ago, less one; from zero it is missing."""
    for day in range(out.shape[0]):
        o = out[day, lo:hi]
        if day < window:
            o[:] = NAN
            continue
        now, then = values[day, lo:hi], values[day - window, lo:hi]
        for j in range(o.size):
            o[j] = finite(np.float64(now[j]) / np.float64(then[j]) - 1.0)
