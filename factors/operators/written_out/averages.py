"""Name the averages of the market by the names that it uses; each is one of `sums` or `weights`, written out."""

from __future__ import annotations

from ...language.declare import LINEAR, MIN_PERIODS, panels, rolling
from ...language.signature import Argument, Operator, Prose

SMA = rolling(
    "sma", "same",
    Prose("Simple moving average: ts_mean under its market name. Where `SMA(x, n, m)` is written with a third number, "
          "as in the GTJA 191 set and in AlphaAgent, it is the recursive mean with alpha m / n: "
          "ema(x, 16 * n, min_periods=1, span=2 * n / m - 1).",
          "the {window}-day simple moving average of {x}", "close / sma(close, 20)"),
    scaling=LINEAR, definition="ts_mean(x, window, min_periods=min_periods)",
)  # fmt: skip
WMA = rolling(
    "wma", "same",
    Prose("Linearly weighted moving average: decay_linear under its market name.",
          "the {window}-day weighted moving average of {x}", "close / wma(close, 20)"),
    scaling=LINEAR, definition="decay_linear(x, window, min_periods=min_periods)",
)  # fmt: skip
WILDER = Operator(
    "wilder", "time series",
    (*panels("x"), Argument("window", "window", low=1, high=600, whole=True), MIN_PERIODS),
    *Prose("Wilder's smoothing: the exponential mean with alpha 1 / window, over as many rows as float32 can tell.",
           "the Wilder mean of {x} over {window} days", "wilder(abs(delta(close, 1)), 14)"),
    "same", "window", scaling=LINEAR, nan="The weights of values that are present are scaled to sum 1.",
    definition="ema(x, 8 * (2 * window - 1), min_periods=min_periods, span=2 * window - 1)",
)  # fmt: skip
