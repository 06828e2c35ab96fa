"""Whole lots in proportion to weights, under a cap for each interval."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def allocate_lots(weights: NDArray[np.float64], lots: int, caps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return lots `[N]` that follow `weights`, none above its cap.

    They sum to `lots`, or to what the caps leave room for. What a cap cuts off goes to the other intervals in
    proportion to their weights; intervals of weight 0 are used last, the earliest first. Sums so far stay within one
    lot of the proportional ones, so that rounding does not shift the schedule in time.

    Parameters
    ----------
    weights
        0 or more each `[N]`, finite.
    lots
        Lots to place, 0 or more.
    caps
        Most lots of each interval `[N]`, 0 or more.
    """
    lots = min(lots, int(caps.sum()))
    ideal = fill_to_caps(weights, min(lots, int(caps[weights > 0].sum())), caps)
    sums = np.floor(np.cumsum(ideal) + 1e-9).astype(np.int64)
    # A float's last digit may push one interval a lot above its cap; what is cut here is placed below.
    placed = np.minimum(np.diff(sums, prepend=0), caps)
    left = lots - int(placed.sum())
    for place in np.argsort(weights <= 0, kind="stable"):
        more = min(left, int(caps[place] - placed[place]))
        placed[place] += more
        left -= more
    return placed


def fill_to_caps(weights: NDArray[np.float64], total: int, caps: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return `min(caps, s * weights)` with the `s` at which it sums to `total`, which the caps have room for."""
    full = np.zeros(len(weights), np.bool_)
    while True:
        rest = total - caps[full].sum()
        free = weights[~full].sum()
        scaled = weights * (rest / free) if free > 0 else np.zeros_like(weights)
        over = ~full & (scaled > caps)
        if not over.any():
            return np.where(full, caps, scaled)
        full |= over


def fill_in_order(lots: int, caps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return lots `[N]` as early as the caps allow."""
    sums = np.minimum(np.cumsum(caps), lots)
    return np.diff(sums, prepend=0)
