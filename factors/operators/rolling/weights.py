"""Weighted averages over a rolling window, and their market names (see `sums` for heads and tails).

Weights of `decay_linear` and `ema` grow towards today.
"""

from __future__ import annotations

import numpy as np

from ...kernels.cells import NAN, Array, Sums, finite
from ...kernels.kernel_cache import kernel
from ...language.operator import LINEAR, MIN_PERIODS, Argument, Operator, Prose, panels, rolling
from ..reference import weighted_mean


@kernel
def _sum_linear_tails(values: Array, first: int, lo: int, sums: Sums, tails: Sums) -> None:
    """Sum each tail of a block with weights 1, 2, 3 ... from its first row, and the weights of present values.

    `sums` holds four rows: the plain sum and count, and the weighted sum and count, of the tail so far.
    """
    sums[:] = 0.0
    for place in range(tails.shape[1] - 2, -1, -1):
        row = values[first + place, lo : lo + tails.shape[2]]
        for j in range(row.size):
            present = row[j] == row[j]
            sums[0, j] += np.float64(row[j]) if present else 0.0
            sums[1, j] += 1.0 if present else 0.0
            sums[2, j] += sums[0, j]
            sums[3, j] += sums[1, j]
        tails[0, place] = sums[2]
        tails[1, place] = sums[3]
        tails[2, place] = sums[1]


@kernel
def decay_linear(out: Array, values: Array, window: int, need: int, lo: int, hi: int) -> None:
    """Average with weights 1 to `window`, the newest heaviest, scaled to sum 1 over present values."""
    days, names = out.shape[0], hi - lo
    tails = np.zeros((3, min(window, days) + 1, names))
    head, spare = np.zeros((4, names)), np.zeros((4, names))
    for day in range(days):
        place = day % window
        if place == 0:
            if day > 0:
                _sum_linear_tails(values, day - window, lo, spare, tails)
            head[:] = 0.0
        row, o = values[day, lo:hi], out[day, lo:hi]
        tail, tail_weight, tail_count = tails[0, place + 1], tails[1, place + 1], tails[2, place + 1]
        for j in range(names):
            present = row[j] == row[j]
            value, one = np.float64(row[j]) if present else 0.0, 1.0 if present else 0.0
            head[2, j] += window * value - head[0, j]  # every older value loses one weight
            head[3, j] += window * one - head[1, j]
            head[0, j] += value
            head[1, j] += one
            average = (head[2, j] + tail[j]) / (head[3, j] + tail_weight[j])
            o[j] = finite(average) if head[1, j] + tail_count[j] >= need else NAN


@kernel
def _sum_fading_tails(values: Array, first: int, lo: int, fade: Sums, tails: Sums) -> None:
    """Sum each tail of a block with weights that fade with the distance to the block's end."""
    last = tails.shape[1] - 2
    for place in range(last, -1, -1):
        row = values[first + place, lo : lo + tails.shape[2]]
        weight = fade[last - place]
        for j in range(row.size):
            present = row[j] == row[j]
            tails[0, place, j] = tails[0, place + 1, j] + (weight * np.float64(row[j]) if present else 0.0)
            tails[1, place, j] = tails[1, place + 1, j] + (weight if present else 0.0)
            tails[2, place, j] = tails[2, place + 1, j] + (1.0 if present else 0.0)


@kernel
def ema(out: Array, values: Array, window: int, need: int, span: float, lo: int, hi: int) -> None:
    """Average with weights that fade by 1 - 2 / (span + 1) a row, over `window` rows, scaled to sum 1."""
    days, names = out.shape[0], hi - lo
    keep = 1.0 - 2.0 / (span + 1.0)
    fade = keep ** np.arange(window + 1).astype(np.float64)
    tails, head = np.zeros((3, min(window, days) + 1, names)), np.zeros((3, names))
    for day in range(days):
        place = day % window
        if place == 0:
            if day > 0:
                _sum_fading_tails(values, day - window, lo, fade, tails)
            head[:] = 0.0
        row, o, older = values[day, lo:hi], out[day, lo:hi], fade[place + 1]
        tail, tail_weight, tail_count = tails[0, place + 1], tails[1, place + 1], tails[2, place + 1]
        for j in range(names):
            present = row[j] == row[j]
            head[0, j] = keep * head[0, j] + (np.float64(row[j]) if present else 0.0)
            head[1, j] = keep * head[1, j] + (1.0 if present else 0.0)
            head[2, j] += 1.0 if present else 0.0
            average = (head[0, j] + older * tail[j]) / (head[1, j] + older * tail_weight[j])
            o[j] = finite(average) if head[2, j] + tail_count[j] >= need else NAN


SCALED_TO_ONE = "The weights of values that are present are scaled to sum 1."

DECAY_LINEAR = rolling(
    "decay_linear", "same",
    Prose("Weighted mean with weights 1 to `window`, the newest heaviest, sum 1.",
          "the {window}-day linearly weighted mean of {x}", "decay_linear(returns, 10)"),
    decay_linear, cost=2.0, scaling=LINEAR, nan=SCALED_TO_ONE,
    reference=lambda x, window, **_: weighted_mean(x, lambda age: window - age),
)  # fmt: skip  # a table
EMA = rolling(
    "ema", "same",
    Prose("Exponentially weighted mean over the last `window` rows: weight (1 - 2 / (span + 1)) ** k for the value k "
          "rows ago, scaled to sum 1. It reads no further back, so it has an end.",
          "the {window}-day exponentially weighted mean of {x}", "ema(close, 20)"),
    ema, Argument("span", "number", keyword=True, low=1, high=1e6), cost=2.0, scaling=LINEAR, nan=SCALED_TO_ONE,
    reference=lambda x, span, **_: weighted_mean(x, lambda age: (1 - 2 / (span + 1)) ** age),
)  # fmt: skip  # a table


SMA = rolling(
    "sma", "same",
    Prose("Simple moving average: ts_mean under its market name. Where `SMA(x, n, m)` is written with a third number, "
          "as in the GTJA 191 set and in AlphaAgent, it is the recursive mean with alpha m / n: "
          "ema(x, 16 * n, min_periods=1, span=2 * n / m - 1).",
          "the {window}-day simple moving average of {x}", "close / sma(close, 20)"),
    scaling=LINEAR, definition="ts_mean(x, window, min_periods=min_periods)",
)  # fmt: skip  # a table
WMA = rolling(
    "wma", "same",
    Prose("Linearly weighted moving average: decay_linear under its market name.",
          "the {window}-day weighted moving average of {x}", "close / wma(close, 20)"),
    scaling=LINEAR, definition="decay_linear(x, window, min_periods=min_periods)",
)  # fmt: skip  # a table
WILDER = Operator(
    "wilder", "time series",
    (*panels("x"), Argument("window", "window", low=1, high=600, whole=True), MIN_PERIODS),
    *Prose("Wilder's smoothing: the exponential mean with alpha 1 / window, over as many rows as float32 can tell.",
           "the Wilder mean of {x} over {window} days", "wilder(abs(delta(close, 1)), 14)"),
    "same", "window", scaling=LINEAR, nan="The weights of values that are present are scaled to sum 1.",
    definition="ema(x, 8 * (2 * window - 1), min_periods=min_periods, span=2 * window - 1)",
)  # fmt: skip  # a table
