"""Sum and average over the days of a window on which a condition held."""

from __future__ import annotations

from ...language.declare import LINEAR, rolling
from ...language.signature import Prose

KNOWN_CONDITION_NOTE = "A row counts as present where the condition is known and, if it holds, x is there."

TS_SUM_IF = rolling(
    "ts_sum_if", "same",
    Prose("Sum of x over the days of the window on which the condition held; 0 if it never did.",
          "the {window}-day sum of {x} on days when {condition}", "ts_sum_if(volume, close > open, 20)"),
    takes="x condition?", scaling=LINEAR, nan=KNOWN_CONDITION_NOTE,
    definition="ts_sum(where(condition, x, 0), window, min_periods=min_periods)",
)  # fmt: skip
TS_MEAN_IF = rolling(
    "ts_mean_if", "same",
    Prose("Mean of x over the days of the window on which the condition held.",
          "the {window}-day mean of {x} on days when {condition}", "ts_mean_if(returns, volume > delay(volume, 1), 20)"),
    takes="x condition?", scaling=LINEAR, nan=KNOWN_CONDITION_NOTE + " A condition that never held gives NaN.",
    definition="ts_sum_if(x, condition, window, min_periods=min_periods)"
               " / ts_count(condition & ~is_missing(x), window, min_periods=min_periods)",
)  # fmt: skip
