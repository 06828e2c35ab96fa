"""The identity of a panel's returns: what stays when symbols, dates or price levels change.

A run of 12 daily returns of one column, each rounded to a quarter of their mean size, is one hash. The rounding is relative,
so that it suits calm and wild names alike; a constant factor on the prices, float32, cents, an adjustment for a split or a
dividend outside the run, and a missing row outside the run change nothing. For each day the 16 smallest hashes of the
runs that end on it are kept: the same columns leave the same hashes in any order, and a panel without some of its columns
leaves a share of them. The size is bounded by the days, whatever the number of names.

Returns to which noise of a seventh of their size or more is added, that are mirrored (1 / p), or that are of another column than
the close, under other names, are not recognised.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

RUN_DAYS: Final = 12
"""Daily returns in a run: about 48 bits, so that runs of different names never meet by chance."""
HASHES_PER_DAY: Final = 16
MIN_DISTINCT_SIZES: Final = 5
"""Different sizes among the rounded returns of a run; fewer are of a name that stands still, and such runs are all alike."""
HASH_BITS: Final = 48
_NO_HASH: Final = np.uint64(2**64 - 1)


def fingerprint_returns(returns: NDArray[np.floating], days: NDArray[np.datetime64]) -> dict[str, tuple[int, ...]]:
    """Return for each day the 16 smallest hashes of the runs of 12 returns that end on it.

    Parameters
    ----------
    returns
        Daily returns `[T, N]`, decimal; a run with a NaN has no hash.
    days
        `[T]`.

    Returns
    -------
    dict
        Hashes of 48 bits, rising, by ISO day; a day without any run is left out.
    """
    if len(returns) < RUN_DAYS:
        return {}
    hashes = _hashes(np.asarray(returns, np.float64))
    smallest = (
        np.sort(hashes, axis=1)[:, :HASHES_PER_DAY] if hashes.shape[1] > HASHES_PER_DAY else np.sort(hashes, axis=1)
    )
    found = {}
    for day, row in zip(days[RUN_DAYS - 1 :].astype(str).tolist(), smallest, strict=True):
        if own := tuple(dict.fromkeys((row[row != _NO_HASH] >> np.uint64(64 - HASH_BITS)).tolist())):
            found[day] = own
    return found


def _hashes(returns: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return the hash of the run that ends in each cell `[T - 11, N]`, all bits set where there is none."""
    parts = [returns[place : len(returns) - RUN_DAYS + 1 + place] for place in range(RUN_DAYS)]
    scale = sum(np.abs(part) for part in parts) / (4.0 * RUN_DAYS)
    there = np.isfinite(scale) & (scale > 0)
    scale = np.where(there, scale, 1.0)
    state, sizes = np.zeros(scale.shape, np.uint64), np.zeros(scale.shape, np.uint64)
    for part in parts:
        steps = np.rint(np.where(there, part, 0.0) / scale).astype(
            np.int64
        )  # at most 48: all of the run's size in one day
        state = _mix_bits(state ^ steps.astype(np.uint64))
        sizes |= np.uint64(1) << np.abs(steps).astype(np.uint64)
    return np.where(there & (np.bitwise_count(sizes) >= MIN_DISTINCT_SIZES), state, _NO_HASH)


def _mix_bits(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix 64 bits, as splitmix64 does (Steele, Lea and Flood 2014); products wrap around."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))
