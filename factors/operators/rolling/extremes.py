"""Highest and lowest of a rolling window (see `sums` for heads and tails).

`side` is 1 for the highest and -1 for the lowest: the lowest is the highest of the values with their sign turned.
"""

from __future__ import annotations

import numpy as np

from ...kernels.cells import FLOAT32_ONE, FLOAT32_ZERO, NAN, Array, finite
from ...kernels.kernel_cache import kernel
from ...language.operator import ABSOLUTE, MIRROR, ORDER, Prose, choice, rolling
from ..reference import Values

NONE_YET = np.float32(-np.inf)


@kernel
def _raise(row: Array, side: int, before: Array, after: Array) -> None:
    """Update the highest values and the counts of present values with a row; the arrays must differ."""
    sign = np.float32(side)
    for j in range(row.size):
        present = row[j] == row[j]
        value = sign * row[j] if present else NONE_YET
        after[0, j] = max(value, before[0, j])
        after[1, j] = before[1, j] + (FLOAT32_ONE if present else FLOAT32_ZERO)


@kernel
def _restart(state: Array) -> None:
    """Reset the state."""
    state[:] = FLOAT32_ZERO
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
    """Update highest values, their days and counts with a row; with `ties`, an equal value replaces the highest."""
    sign, today = np.float32(side), np.float32(day)
    for j in range(row.size):
        present = row[j] == row[j]
        value = sign * row[j] if present else NONE_YET
        better = (value > before[0, j]) | (ties & present & (value == before[0, j]))
        after[0, j] = value if better else before[0, j]
        after[1, j] = today if better else before[1, j]
        after[2, j] = before[2, j] + (FLOAT32_ONE if present else FLOAT32_ZERO)


@kernel
def rolling_place(out: Array, values: Array, window: int, need: int, counted: int, side: int, lo: int, hi: int) -> None:
    """Rows since the highest or lowest value, 0 for today, or its place from the oldest row; the oldest wins a tie."""
    days, names = out.shape[0], hi - lo
    tails = np.empty((min(window, days) + 1, 3, names), np.float32)
    heads = np.empty((2, 3, names), np.float32)
    for place in range(tails.shape[0]):
        _restart(tails[place])
    for day in range(days):
        row = day % window
        if row == 0:
            for back in range(window - 1 if day else -1, -1, -1):
                past = day - window + back
                _raise_dated(values[past, lo:hi], past, side, True, tails[back + 1], tails[back])
            _restart(heads[(day + 1) % 2])
        head, tail, o, today = heads[day % 2], tails[row + 1], out[day, lo:hi], np.float32(day)
        first = np.float32(max(0, day - window + 1))
        _raise_dated(values[day, lo:hi], day, side, False, heads[(day + 1) % 2], head)
        for j in range(names):
            newer, older = head[1, j], tail[1, j]
            when = newer if head[0, j] > tail[0, j] else older
            place = when - first + FLOAT32_ONE if counted else today - when
            o[j] = place if head[2, j] + tail[2, j] >= need else NAN


def _since_reference(window: Values, best: float, counted: float) -> float:
    """Return the rows since the oldest row that has a value, or the place of that row, oldest first."""
    oldest = int(np.flatnonzero(window == best)[0])
    return float(oldest + 1 if counted else len(window) - 1 - oldest)


COUNTED_ARGUMENT = choice("counted", "since position")
SINCE_NOTE = "The oldest wins a tie; with `counted=position` its place in the window, 1 for the oldest row."

TS_MAX = rolling(
    "ts_max", "same", Prose("Largest value of the window.", "the {window}-day high of {x}", "ts_max(high, 20)"),
    rolling_extreme, cost=0.8, fixed=(1, 0), scaling=MIRROR, mirror="ts_min", reference=lambda x, **_: np.nanmax(x),
)  # fmt: skip  # a table
TS_MIN = rolling(
    "ts_min", "same", Prose("Smallest value of the window.", "the {window}-day low of {x}", "ts_min(low, 20)"),
    rolling_extreme, cost=0.8, fixed=(-1, 0), scaling=MIRROR, mirror="ts_max", reference=lambda x, **_: np.nanmin(x),
)  # fmt: skip  # a table
TS_DRAWDOWN = rolling(
    "ts_drawdown", "quotient_self",
    Prose("Fall from the highest value of the window: x / ts_max(x, window) - 1.",
          "the fall of {x} from its {window}-day high", "ts_drawdown(close, 60)"),
    rolling_extreme, cost=0.8, fixed=(1, 1), scaling=ORDER,
    nan="Today's value must be present; a highest value of 0 gives NaN.",
    reference=lambda x, **_: np.divide(x[-1], np.nanmax(x)) - 1,
)  # fmt: skip  # a table
TS_ARGMAX = rolling(
    "ts_argmax", "number",
    Prose("Bars since the largest value of the window, 0 for today.",
          "the number of days since the {window}-day high of {x}", "ts_argmax(high, 20)"),
    rolling_place, COUNTED_ARGUMENT, cost=1.2, fixed=(1,), scaling=ORDER, mirror="ts_argmin", nan=SINCE_NOTE,
    reference=lambda x, counted, **_: _since_reference(x, np.nanmax(x), counted),
)  # fmt: skip  # a table
TS_ARGMIN = rolling(
    "ts_argmin", "number",
    Prose("Bars since the smallest value of the window, 0 for today.",
          "the number of days since the {window}-day low of {x}", "ts_argmin(low, 20)"),
    rolling_place, COUNTED_ARGUMENT, cost=1.2, fixed=(-1,), scaling=ORDER, mirror="ts_argmax", nan=SINCE_NOTE,
    reference=lambda x, counted, **_: _since_reference(x, np.nanmin(x), counted),
)  # fmt: skip  # a table

ALL_EQUAL_NOTE = "Where all are equal it is NaN."

TS_RANGE = rolling(
    "ts_range",
    "same",
    Prose("Largest less smallest value of the window.", "the {window}-day range of {x}", "ts_range(close, 20) / close"),
    scaling=ABSOLUTE,
    definition="ts_max(x, window, min_periods=min_periods) - ts_min(x, window, min_periods=min_periods)",
)
TS_SCALE = rolling(
    "ts_scale", "ratio",
    Prose("Where today's value is in the range of the window: 0 at the smallest, 1 at the largest.",
          "where {x} is in its {window}-day range", "ts_scale(close, 20)"),
    nan="Today's value must be present. " + ALL_EQUAL_NOTE,
    definition="(x - ts_min(x, window, min_periods=min_periods))"
               " / (ts_max(x, window, min_periods=min_periods) - ts_min(x, window, min_periods=min_periods))",
)  # fmt: skip  # a table
