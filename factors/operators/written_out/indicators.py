"""Declare the indicators of chart readers, each written out in the language itself.

They read `window` rows and no further: where a chart program smooths without end, `wilder` in the place of the plain
mean gives its figures.
"""

from __future__ import annotations

from ...language.declare import rolling
from ...language.signature import Operator, Prose

FLAT_WINDOW_NOTE = "A window without any movement gives NaN."

TRUE_RANGE = Operator(
    "true_range", "time series", (),
    *Prose("True range (Wilder 1978): the largest of high - low and the distances of both from yesterday's close.",
           "the true range", "true_range() / close"),
    "same", "lag", nan="High, low and yesterday's close must be present.",
    definition="max(high - low, abs(high - delay(close, 1)), abs(low - delay(close, 1)))",
)  # fmt: skip
ATR = rolling(
    "atr", "same",
    Prose("Average true range: the plain mean of true_range(). Wilder's own smoothing is wilder(true_range(), n).",
          "the {window}-day average true range", "atr(14) / close"),
    takes="", definition="ts_mean(true_range(), window, min_periods=min_periods)",
)  # fmt: skip
RSI = rolling(
    "rsi", "ratio",
    Prose("Relative strength index, 0 to 100: the rises of x over all its moves, both summed (Cutler's form). "
          "Wilder's own smooths both: 100 * wilder(max(delta(x, 1), 0), n) / wilder(abs(delta(x, 1)), n).",
          "the {window}-day relative strength of {x}", "rsi(close, 14)"),
    nan="It counts changes, so it needs one more row than the window. " + FLAT_WINDOW_NOTE,
    definition="100 * ts_sum(max(delta(x, 1), 0), window, min_periods=min_periods)"
               " / ts_sum(abs(delta(x, 1)), window, min_periods=min_periods)",
)  # fmt: skip
STOCHASTIC = rolling(
    "stochastic", "ratio",
    Prose("Stochastic oscillator %K, 0 to 100: where the close is between lowest low and highest high. %D is its mean: "
          "ts_mean(stochastic(14), 3).",
          "the {window}-day stochastic oscillator", "stochastic(14)"),
    takes="", nan=FLAT_WINDOW_NOTE,
    definition="100 * (close - ts_min(low, window, min_periods=min_periods))"
               " / (ts_max(high, window, min_periods=min_periods) - ts_min(low, window, min_periods=min_periods))",
)  # fmt: skip
WILLIAMS_R = rolling(
    "williams_r", "ratio",
    Prose("Williams %R, -100 to 0: how far the close is below the highest high, over the range.",
          "the {window}-day Williams %R", "williams_r(14)"),
    takes="", nan=FLAT_WINDOW_NOTE,
    definition="-100 * (ts_max(high, window, min_periods=min_periods) - close)"
               " / (ts_max(high, window, min_periods=min_periods) - ts_min(low, window, min_periods=min_periods))",
)  # fmt: skip
TYPICAL = "(high + low + close) / 3"

CCI = rolling(
    "cci", "ratio",
    Prose("Commodity channel index (Lambert 1980): the typical price (high + low + close) / 3 less its mean, over 0.015 "
          "of its mean absolute deviation.",
          "the {window}-day commodity channel index", "cci(20)"),
    takes="", nan="Today's prices must be present. " + FLAT_WINDOW_NOTE,
    definition=f"({TYPICAL} - ts_mean({TYPICAL}, window, min_periods=min_periods))"
               f" / (0.015 * ts_mad({TYPICAL}, window, min_periods=min_periods))",
)  # fmt: skip
TRIPLE_TYPICAL_PRICE = "(high + low + close)"
"""Three times the typical price: the three cancels."""

MFI = rolling(
    "mfi", "ratio",
    Prose("Money flow index, 0 to 100: typical price (high + low + close) / 3 times volume on days when the typical price "
          "rose, over that of all days on which it moved.",
          "the {window}-day money flow index", "mfi(14)"),
    takes="", nan="It counts changes, so it needs one more row than the window. " + FLAT_WINDOW_NOTE,
    definition=f"100 * ts_sum_if({TRIPLE_TYPICAL_PRICE} * volume, delta({TRIPLE_TYPICAL_PRICE}, 1) > 0, window, min_periods=min_periods)"
               f" / ts_sum_if({TRIPLE_TYPICAL_PRICE} * volume, delta({TRIPLE_TYPICAL_PRICE}, 1) != 0, window, min_periods=min_periods)",
)  # fmt: skip
