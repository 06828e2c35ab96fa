"""Highest and lowest of a rolling window (see `sums` for heads and tails).

`side` is 1 for the highest and -1 for the lowest: the lowest is the highest of the values with their sign turned.
"""

from __future__ import annotations

import numpy as np

from .cells import NAN, ONE, ZERO, Array, finite
from .kernel_cache import kernel

NONE_YET = np.float32(-np.inf)


@kernel
def _raise(row: Array, side: int, before: Array, after: Array) -> None:
    """Take a row into highest value and count of what is present; the arrays may not be the same one."""
    sign = np.float32(side)
    for j in range(row.size):
        present = row[j] == row[j]
        value = sign * row[j] if present else NONE_YET
        after[0, j] = max(value, before[0, j])
        after[1, j] = before[1, j] + (ONE if present else ZERO)


@kernel
def _restart(state: Array) -> None:
    """Begin anew."""
    state[:] = ZERO
    state[0] = NONE_YET


@kernel
def rolling_extreme(out: Array, values: Array, window: int, need: int, side: int, fall: bool, lo: int, hi: int) -> None:
    """Highest or lowest value; with `fall`, today's value over it, less one."""
    days, names = out.shape[0], hi - lo
    tails = np.empty((min(window, days) + 1, 2, names), np.float32)
    heads, sign = np.empty((2, 2, names), np.float32), np.float32(side)
    for place in range(tails.shape[0]):
        _restart(tails[place])
    for day in range(days):
        place = day % window
        if place == 0:
            for back in range(window - 1 if day else -1, -1, -1):
                _raise(values[day - window + back, lo:hi], side, tails[back + 1], tails[back])
            _restart(heads[(day + 1) % 2])
        head, tail, row, o = heads[day % 2], tails[place + 1], values[day, lo:hi], out[day, lo:hi]
        _raise(row, side, heads[(day + 1) % 2], head)
        for j in range(names):
            best = sign * max(head[0, j], tail[0, j])
            answer = np.float32(np.float64(row[j]) / np.float64(best) - 1.0) if fall else best
            o[j] = finite(answer) if head[1, j] + tail[1, j] >= need else NAN


@kernel
def _raise_dated(row: Array, day: int, side: int, ties: bool, before: Array, after: Array) -> None:
    """Take a row into highest value, its day, and count; with `ties` an equal value takes its place."""
    sign, today = np.float32(side), np.float32(day)
    for j in range(row.size):
        present = row[j] == row[j]
        value = sign * row[j] if present else NONE_YET
        better = (value > before[0, j]) | (ties & present & (value == before[0, j]))
        after[0, j] = value if better else before[0, j]
        after[1, j] = today if better else before[1, j]
        after[2, j] = before[2, j] + (ONE if present else ZERO)


@kernel
def rolling_place(out: Array, values: Array, window: int, need: int, side: int, lo: int, hi: int) -> None:
    """Rows since the highest or lowest value, 0 for today; the oldest wins a tie."""
    days, names = out.shape[0], hi - lo
    tails = np.empty((min(window, days) + 1, 3, names), np.float32)
    heads = np.empty((2, 3, names), np.float32)
    for place in range(tails.shape[0]):
        _restart(tails[place])
    for day in range(days):
        place = day % window
        if place == 0:
            for back in range(window - 1 if day else -1, -1, -1):
                past = day - window + back
                _raise_dated(values[past, lo:hi], past, side, True, tails[back + 1], tails[back])
            _restart(heads[(day + 1) % 2])
        head, tail, o, today = heads[day % 2], tails[place + 1], out[day, lo:hi], np.float32(day)
        _raise_dated(values[day, lo:hi], day, side, False, heads[(day + 1) % 2], head)
        for j in range(names):
            newer, older = head[1, j], tail[1, j]
            when = newer if head[0, j] > tail[0, j] else older
            o[j] = today - when if head[2, j] + tail[2, j] >= need else NAN
