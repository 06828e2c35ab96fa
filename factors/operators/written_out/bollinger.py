"""Declare the bands of some standard deviations about a moving mean: where x is between them, and how wide they are."""

from __future__ import annotations

from ...language.declare import ODD, rolling
from ...language.signature import Argument, Prose

WIDTH_ARGUMENT = Argument("k", "number", 2.0, low=1e-9, high=1e6)
POPULATION_DDOF = Argument("ddof", "number", default=0.0, keyword=True, low=0, high=1, whole=True)
"""Bollinger's bands divide by n; `ts_std` divides by n - 1 unless told."""

BOLLINGER = rolling(
    "bollinger", "ratio",
    Prose("Bollinger's %b: 0 at the lower and 1 at the upper of two bands, k standard deviations (ddof 0) from the mean.",
          "where {x} is between its {window}-day Bollinger bands of {k} deviations", "bollinger(close, 20)"),
    None, WIDTH_ARGUMENT, POPULATION_DDOF, nan="Today's value must be present; a constant window gives NaN.",
    definition="0.5 + ts_zscore(x, window, min_periods=min_periods, ddof=ddof) / (2 * k)",
)  # fmt: skip
BOLLINGER_WIDTH = rolling(
    "bollinger_width", "ratio",
    Prose("Distance of the two Bollinger bands over the mean between them.",
          "the width of the {window}-day Bollinger bands of {x}, {k} deviations each way", "bollinger_width(close, 20)"),
    None, WIDTH_ARGUMENT, POPULATION_DDOF, scaling=ODD, nan="A mean of 0 gives NaN.",
    definition="2 * k * ts_std(x, window, min_periods=min_periods, ddof=ddof)"
               " / ts_mean(x, window, min_periods=min_periods)",
)  # fmt: skip
