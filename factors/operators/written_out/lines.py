"""Declare what is left of one series beside another: residual and level of the line of y on x (see `pairs`)."""

from __future__ import annotations

from ...language.declare import rolling
from ...language.obvious import line
from ...language.signature import Prose
from ..rolling.pairs import BOTH_PRESENT_NOTE, PAIR_INTERCEPT, PAIR_RESIDUAL, rolling_pair

TS_RESID = rolling(
    "ts_resid", "same",
    Prose("Today's distance of y from the least-squares line of y on x over the window.",
          "how far {y} is above its {window}-day line on {x}", "ts_resid(returns, delay(returns, 1), 60)"),
    rolling_pair, takes="y x", cost=3.0, fixed=(1, PAIR_RESIDUAL), swapped=True, scaling=("linear", "even"),
    nan=BOTH_PRESENT_NOTE + " Both must be present today, and x may not be constant.",
    reference=lambda y, x, **_: y[-1] - line(y, x)[1] - line(y, x)[0] * x[-1],
)  # fmt: skip
TS_ALPHA = rolling(
    "ts_alpha", "same",
    Prose("Level at x = 0 of the least-squares line of y on x over the window: the intercept.",
          "the intercept of the {window}-day line of {y} on {x}", "ts_alpha(returns, delay(returns, 1), 60)"),
    rolling_pair, takes="y x", cost=3.0, fixed=(1, PAIR_INTERCEPT), swapped=True, scaling=("linear", "even"),
    nan=BOTH_PRESENT_NOTE + " A constant x gives NaN.", reference=lambda y, x, **_: line(y, x)[1],
)  # fmt: skip
