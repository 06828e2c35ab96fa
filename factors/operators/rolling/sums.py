"""Sum over a rolling window without ever subtracting.

The rows are cut into blocks as long as the window. A window is then the tail of one block and the head of the next
(van Herk's scheme for maxima, used here for sums): the head grows row by row, the tails of a finished block are summed
once, backwards. A sum only ever contains values of its window, so a past outlier leaves no rounding error, and the cost
is two additions per cell for any window.
"""

from __future__ import annotations

import numpy as np

from ...kernels.cells import FLOAT32_ONE, FLOAT32_ZERO, NAN, Array, Sums, finite
from ...kernels.kernel_cache import kernel
from ...language.operator import LINEAR, Prose, rolling
from ..reference import known_values

WINDOW_SUM, WINDOW_MEAN = 0, 1


@kernel
def _add(row: Array, sums: Sums, known: Array, more_sums: Sums, more_known: Array) -> None:
    """Add a row to the sums and counts of present values; all arrays must differ."""
    for j in range(row.size):
        present = row[j] == row[j]
        more_sums[j] = sums[j] + (np.float64(row[j]) if present else 0.0)
        more_known[j] = known[j] + (FLOAT32_ONE if present else FLOAT32_ZERO)


@kernel
def _finish(o: Array, row: Array, head: Sums, tail: Sums, known: Array, tail_known: Array, least: np.float32) -> None:
    """Add today's row to the head and write the sums of head and tail."""
    for j in range(o.size):
        present = row[j] == row[j]
        head[j] += np.float64(row[j]) if present else 0.0
        known[j] += FLOAT32_ONE if present else FLOAT32_ZERO
        o[j] = finite(head[j] + tail[j]) if known[j] + tail_known[j] >= least else NAN


@kernel
def _finish_mean(
    o: Array, row: Array, head: Sums, tail: Sums, known: Array, tail_known: Array, least: np.float32
) -> None:
    """Add today's row to the head and write the means of head and tail."""
    for j in range(o.size):
        present = row[j] == row[j]
        head[j] += np.float64(row[j]) if present else 0.0
        known[j] += FLOAT32_ONE if present else FLOAT32_ZERO
        count = known[j] + tail_known[j]
        o[j] = finite((head[j] + tail[j]) / np.float64(count)) if count >= least else NAN


@kernel
def rolling_sum(out: Array, values: Array, window: int, need: int, mean: int, lo: int, hi: int) -> None:
    """Sum or average; missing where fewer than `need` values are present."""
    days, names, least = out.shape[0], hi - lo, np.float32(need)
    tails, tails_known = np.zeros((min(window, days) + 1, names)), np.zeros((min(window, days) + 1, names), np.float32)
    head, known = np.zeros(names), np.zeros(names, np.float32)
    for day in range(days):
        place = day % window
        if place == 0:
            for back in range(window - 1 if day else -1, -1, -1):
                row = values[day - window + back, lo:hi]
                _add(row, tails[back + 1], tails_known[back + 1], tails[back], tails_known[back])
            head[:] = 0.0
            known[:] = FLOAT32_ZERO
        o, row, tail, tail_known = out[day, lo:hi], values[day, lo:hi], tails[place + 1], tails_known[place + 1]
        if mean:
            _finish_mean(o, row, head, tail, known, tail_known, least)
        else:
            _finish(o, row, head, tail, known, tail_known, least)


@kernel
def rolling_count(out: Array, values: Array, window: int, need: int, lo: int, hi: int) -> None:
    """Count true values; the counts are whole numbers, which float32 represents exactly."""
    true, known, least = np.zeros(hi - lo, np.float32), np.zeros(hi - lo, np.float32), np.float32(need)
    for day in range(out.shape[0]):
        row, o, gone = values[day, lo:hi], out[day, lo:hi], values[max(0, day - window), lo:hi]
        leaves = FLOAT32_ONE if day >= window else FLOAT32_ZERO
        for j in range(o.size):
            here, there = row[j] == row[j], gone[j] == gone[j]
            known[j] += (FLOAT32_ONE if here else FLOAT32_ZERO) - (leaves if there else FLOAT32_ZERO)
            was = leaves if there & (gone[j] != FLOAT32_ZERO) else FLOAT32_ZERO
            true[j] += (FLOAT32_ONE if here & (row[j] != FLOAT32_ZERO) else FLOAT32_ZERO) - was
            o[j] = true[j] if known[j] >= least else NAN


@kernel
def _multiply(row: Array, before: Sums, after: Sums) -> None:
    """Multiply a row into the products and counts of present values; the arrays must differ."""
    for j in range(row.size):
        present = row[j] == row[j]
        after[0, j] = before[0, j] * (np.float64(row[j]) if present else 1.0)
        after[1, j] = before[1, j] + (1.0 if present else 0.0)


@kernel
def _restart(state: Sums) -> None:
    """Begin a product."""
    state[0] = 1.0
    state[1] = 0.0


@kernel
def rolling_product(out: Array, values: Array, window: int, need: int, lo: int, hi: int) -> None:
    """Multiply the values of the window."""
    days, names = out.shape[0], hi - lo
    tails, heads = np.zeros((min(window, days) + 1, 2, names)), np.zeros((2, 2, names))
    for place in range(tails.shape[0]):
        _restart(tails[place])
    for day in range(days):
        place = day % window
        if place == 0:
            for back in range(window - 1 if day else -1, -1, -1):
                _multiply(values[day - window + back, lo:hi], tails[back + 1], tails[back])
            _restart(heads[(day + 1) % 2])
        head, tail, o = heads[day % 2], tails[place + 1], out[day, lo:hi]
        _multiply(values[day, lo:hi], heads[(day + 1) % 2], head)
        for j in range(names):
            o[j] = finite(head[0, j] * tail[0, j]) if head[1, j] + tail[1, j] >= need else NAN


TS_SUM = rolling(
    "ts_sum", "same", Prose("Sum over the window.", "the {window}-day sum of {x}", "ts_sum(volume, 20)"), rolling_sum,
    cost=0.8, fixed=(WINDOW_SUM,), scaling=LINEAR, reference=lambda x, **_: np.nansum(x),
)  # fmt: skip  # a table
TS_MEAN = rolling(
    "ts_mean", "same", Prose("Mean over the window.", "the {window}-day mean of {x}", "ts_mean(returns, 20)"),
    rolling_sum, cost=0.8, fixed=(WINDOW_MEAN,), scaling=LINEAR, reference=lambda x, **_: np.nanmean(x),
)  # fmt: skip  # a table
TS_COUNT = rolling(
    "ts_count", "number",
    Prose("Number of rows of the window on which the condition held.",
          "the number of the last {window} days on which {condition}", "ts_count(close > open, 20)"),
    rolling_count, takes="condition?", cost=0.3, reference=lambda x, **_: (known_values(x) != 0).sum(),
)  # fmt: skip  # a table
TS_PRODUCT = rolling(
    "ts_product", "pure",
    Prose("Product over the window.", "the {window}-day product of {x}", "ts_product(1 + returns, 20)"),
    rolling_product, cost=1.5, reference=lambda x, **_: np.nanprod(x),
)  # fmt: skip  # a table


KNOWN_CONDITION_NOTE = "A row counts as present where the condition is known and, if it holds, x is there."

TS_SUM_IF = rolling(
    "ts_sum_if", "same",
    Prose("Sum of x over the days of the window on which the condition held; 0 if it never did.",
          "the {window}-day sum of {x} on days when {condition}", "ts_sum_if(volume, close > open, 20)"),
    takes="x condition?", scaling=LINEAR, nan=KNOWN_CONDITION_NOTE,
    definition="ts_sum(where(condition, x, 0), window, min_periods=min_periods)",
)  # fmt: skip  # a table
TS_MEAN_IF = rolling(
    "ts_mean_if", "same",
    Prose("Mean of x over the days of the window on which the condition held.",
          "the {window}-day mean of {x} on days when {condition}",
          "ts_mean_if(returns, volume > delay(volume, 1), 20)"),
    takes="x condition?", scaling=LINEAR, nan=KNOWN_CONDITION_NOTE + " A condition that never held gives NaN.",
    definition="ts_sum_if(x, condition, window, min_periods=min_periods)"
               " / ts_count(condition & ~is_missing(x), window, min_periods=min_periods)",
)  # fmt: skip  # a table
