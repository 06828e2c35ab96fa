"""Relate a series to its own mean, spread and earlier self over a rolling window, written out in the language itself."""

from __future__ import annotations

from ...language.declare import DDOF, EVEN, LINEAR, ODD, rolling
from ...language.signature import Argument, Prose

LAG = Argument("lag", "window", 1.0, low=1, high=10_000, whole=True)

TS_DEMEAN = rolling(
    "ts_demean", "same",
    Prose("Today's value less the mean of the window.", "{x} less its {window}-day mean", "ts_demean(returns, 20)"),
    scaling=LINEAR, nan="Today's value must be present.",
    definition="x - ts_mean(x, window, min_periods=min_periods)",
)  # fmt: skip
TS_IR = rolling(
    "ts_ir", "ratio",
    Prose("Information ratio: mean over standard deviation of the window.",
          "the mean over the standard deviation of the last {window} days of {x}", "ts_ir(returns, 60)"),
    None, DDOF, scaling=ODD, nan="A constant window gives NaN.",
    definition="ts_mean(x, window, min_periods=min_periods) / ts_std(x, window, min_periods=min_periods, ddof=ddof)",
)  # fmt: skip
TS_AUTOCORR = rolling(
    "ts_autocorr", "ratio",
    Prose("Correlation over the window of x with x of `lag` rows before.",
          "the {window}-day correlation of {x} with itself {lag} days before", "ts_autocorr(returns, 60, 1)"),
    None, LAG, scaling=EVEN, nan="It needs `lag` more rows than the window; a constant window gives NaN.",
    definition="ts_corr(x, delay(x, lag), window, min_periods=min_periods)",
)  # fmt: skip
TS_DOWNSIDE_STD = rolling(
    "ts_downside_std", "same",
    Prose("Downside deviation about zero: the root of the mean square of what is below 0 (Sortino); it divides by all "
          "days of the window.",
          "the {window}-day downside deviation of {x}", "ts_downside_std(returns, 60)"),
    definition="sqrt(ts_mean(square(min(x, 0)), window, min_periods=min_periods))",
)  # fmt: skip
