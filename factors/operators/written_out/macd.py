"""Declare the distance of two exponential means, and the mean of that distance."""

from __future__ import annotations

from ...language.declare import LINEAR, panels
from ...language.signature import Argument, Operator, Prose

FAST_SPAN, SLOW_SPAN, SIGNAL_SPAN = (
    Argument(name, "window", default, low=1, high=1_000, whole=True)
    for name, default in (("fast", 12.0), ("slow", 26.0), ("signal", 9.0))
)
EMA_REACH_NOTE = "An average needs as many values as its span; it reaches back 8 spans, further than float32 can tell."

MACD = Operator(
    "macd", "time series", (*panels("x"), FAST_SPAN, SLOW_SPAN),
    *Prose("Moving average convergence and divergence: the fast exponential mean less the slow one.",
           "the {fast}-day less the {slow}-day exponential mean of {x}", "macd(close, 12, 26) / close"),
    "same", "window", scaling=LINEAR, nan=EMA_REACH_NOTE,
    definition="ema(x, 8 * fast, min_periods=fast, span=fast) - ema(x, 8 * slow, min_periods=slow, span=slow)",
)  # fmt: skip
MACD_SIGNAL = Operator(
    "macd_signal", "time series", (*panels("x"), FAST_SPAN, SLOW_SPAN, SIGNAL_SPAN),
    *Prose("Signal line: the exponential mean of macd(x, fast, slow). The histogram is macd less its signal.",
           "the {signal}-day exponential mean of the {fast}-day less the {slow}-day exponential mean of {x}",
           "macd(close) - macd_signal(close)"),
    "same", "window", scaling=LINEAR, nan=EMA_REACH_NOTE,
    definition="ema(macd(x, fast, slow), 8 * signal, min_periods=signal, span=signal)",
)  # fmt: skip
