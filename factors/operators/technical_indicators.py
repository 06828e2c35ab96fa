"""Declare the indicators of technical analysis, each written out in the language itself.

They read `window` rows only. Where a chart program smooths without end, `wilder` instead of the plain mean gives its
figures.
"""

from __future__ import annotations

from ..language.operator import LINEAR, ODD, Argument, Operator, Prose, panels, rolling

FLAT_WINDOW_NOTE = "A window without any movement gives NaN."

TYPICAL = "(high + low + close) / 3"

TRIPLE_TYPICAL_PRICE = "(high + low + close)"
"""Three times the typical price; the factor cancels."""

EMA_REACH_NOTE = "An average needs as many values as its span; it reaches back 8 spans, further than float32 can tell."

WIDTH_ARGUMENT = Argument("k", "number", 2.0, low=1e-9, high=1e6)
POPULATION_DDOF = Argument("ddof", "number", default=0.0, keyword=True, low=0, high=1, whole=True)
"""Bollinger's bands divide by n; `ts_std` divides by n - 1 by default."""

FAST_SPAN, SLOW_SPAN, SIGNAL_SPAN = (
    Argument(name, "window", default, low=1, high=1_000, whole=True)
    for name, default in (("fast", 12.0), ("slow", 26.0), ("signal", 9.0))
)

TRUE_RANGE = Operator(
    "true_range", "time series", (),
    *Prose("True range (Wilder 1978): the largest of high - low and the distances of both from yesterday's close.",
           "the true range", "true_range() / close"),
    "same", "lag", nan="High, low and yesterday's close must be present.",
    definition="max(high - low, abs(high - delay(close, 1)), abs(low - delay(close, 1)))",
)  # fmt: skip  # a table
ATR = rolling(
    "atr", "same",
    Prose("Average true range: the plain mean of true_range(). Wilder's own smoothing is wilder(true_range(), n).",
          "the {window}-day average true range", "atr(14) / close"),
    takes="", definition="ts_mean(true_range(), window, min_periods=min_periods)",
)  # fmt: skip  # a table
RSI = rolling(
    "rsi", "ratio",
    Prose("Relative strength index, 0 to 100: the rises of x over all its moves, both summed (Cutler's form). "
          "Wilder's own smooths both: 100 * wilder(max(delta(x, 1), 0), n) / wilder(abs(delta(x, 1)), n).",
          "the {window}-day relative strength of {x}", "rsi(close, 14)"),
    nan="It counts changes, so it needs one more row than the window. " + FLAT_WINDOW_NOTE,
    definition="100 * ts_sum(max(delta(x, 1), 0), window, min_periods=min_periods)"
               " / ts_sum(abs(delta(x, 1)), window, min_periods=min_periods)",
)  # fmt: skip  # a table
STOCHASTIC = rolling(
    "stochastic", "ratio",
    Prose("Stochastic oscillator %K, 0 to 100: where the close is between lowest low and highest high. %D is its mean: "
          "ts_mean(stochastic(14), 3).",
          "the {window}-day stochastic oscillator", "stochastic(14)"),
    takes="", nan=FLAT_WINDOW_NOTE,
    definition="100 * (close - ts_min(low, window, min_periods=min_periods))"
               " / (ts_max(high, window, min_periods=min_periods) - ts_min(low, window, min_periods=min_periods))",
)  # fmt: skip  # a table
WILLIAMS_R = rolling(
    "williams_r", "ratio",
    Prose("Williams %R, -100 to 0: how far the close is below the highest high, over the range.",
          "the {window}-day Williams %R", "williams_r(14)"),
    takes="", nan=FLAT_WINDOW_NOTE,
    definition="-100 * (ts_max(high, window, min_periods=min_periods) - close)"
               " / (ts_max(high, window, min_periods=min_periods) - ts_min(low, window, min_periods=min_periods))",
)  # fmt: skip  # a table

CCI = rolling(
    "cci", "ratio",
    Prose("Commodity channel index (Lambert 1980): the typical price (high + low + close) / 3 less its mean, over "
          "0.015 of its mean absolute deviation.",
          "the {window}-day commodity channel index", "cci(20)"),
    takes="", nan="Today's prices must be present. " + FLAT_WINDOW_NOTE,
    definition=f"({TYPICAL} - ts_mean({TYPICAL}, window, min_periods=min_periods))"
               f" / (0.015 * ts_mad({TYPICAL}, window, min_periods=min_periods))",
)  # fmt: skip  # a table

MFI = rolling(
    "mfi", "ratio",
    Prose("Money flow index, 0 to 100: typical price (high + low + close) / 3 times volume on days when the typical "
          "price rose, over that of all days on which it moved.",
          "the {window}-day money flow index", "mfi(14)"),
    takes="", nan="It counts changes, so it needs one more row than the window. " + FLAT_WINDOW_NOTE,
    definition=f"100 * ts_sum_if({TRIPLE_TYPICAL_PRICE} * volume, delta({TRIPLE_TYPICAL_PRICE}, 1) > 0, window, "
               "min_periods=min_periods)"
               f" / ts_sum_if({TRIPLE_TYPICAL_PRICE} * volume, delta({TRIPLE_TYPICAL_PRICE}, 1) != 0, window, "
               "min_periods=min_periods)",
)  # fmt: skip  # a table

AROON = Operator(
    "aroon", "time series", (Argument("window", "window", low=1, high=9_999, whole=True),),
    *Prose("Aroon oscillator (Chande 1995), -100 to 100: days since the lowest low less days since the highest high of "
           "today and the `window` days before it, as a share of the window.",
           "the {window}-day Aroon oscillator", "aroon(25)"),
    "number", "lag", nan="The oldest wins a tie.",
    definition="100 / window * (ts_argmin(low, window + 1) - ts_argmax(high, window + 1))",
)  # fmt: skip  # a table

BOLLINGER = rolling(
    "bollinger", "ratio",
    Prose("Bollinger's %b: 0 at the lower and 1 at the upper of two bands, k standard deviations (ddof 0) from the "
          "mean.",
          "where {x} is between its {window}-day Bollinger bands of {k} deviations", "bollinger(close, 20)"),
    None, WIDTH_ARGUMENT, POPULATION_DDOF, nan="Today's value must be present; a constant window gives NaN.",
    definition="0.5 + ts_zscore(x, window, min_periods=min_periods, ddof=ddof) / (2 * k)",
)  # fmt: skip  # a table
BOLLINGER_WIDTH = rolling(
    "bollinger_width", "ratio",
    Prose("Distance of the two Bollinger bands over the mean between them.",
          "the width of the {window}-day Bollinger bands of {x}, {k} deviations each way",
          "bollinger_width(close, 20)"),
    None, WIDTH_ARGUMENT, POPULATION_DDOF, scaling=ODD, nan="A mean of 0 gives NaN.",
    definition="2 * k * ts_std(x, window, min_periods=min_periods, ddof=ddof)"
               " / ts_mean(x, window, min_periods=min_periods)",
)  # fmt: skip  # a table

MACD = Operator(
    "macd", "time series", (*panels("x"), FAST_SPAN, SLOW_SPAN),
    *Prose("Moving average convergence and divergence: the fast exponential mean less the slow one.",
           "the {fast}-day less the {slow}-day exponential mean of {x}", "macd(close, 12, 26) / close"),
    "same", "window", scaling=LINEAR, nan=EMA_REACH_NOTE,
    definition="ema(x, 8 * fast, min_periods=fast, span=fast) - ema(x, 8 * slow, min_periods=slow, span=slow)",
)  # fmt: skip  # a table
MACD_SIGNAL = Operator(
    "macd_signal", "time series", (*panels("x"), FAST_SPAN, SLOW_SPAN, SIGNAL_SPAN),
    *Prose("Signal line: the exponential mean of macd(x, fast, slow). The histogram is macd less its signal.",
           "the {signal}-day exponential mean of the {fast}-day less the {slow}-day exponential mean of {x}",
           "macd(close) - macd_signal(close)"),
    "same", "window", scaling=LINEAR, nan=EMA_REACH_NOTE,
    definition="ema(macd(x, fast, slow), 8 * signal, min_periods=signal, span=signal)",
)  # fmt: skip  # a table
