"""Declare Aroon and what else compares the days since a high with those since a low."""

from __future__ import annotations

from ...language.signature import Argument, Operator, Prose

AROON = Operator(
    "aroon", "time series", (Argument("window", "window", low=1, high=9_999, whole=True),),
    *Prose("Aroon oscillator (Chande 1995), -100 to 100: days since the lowest low less days since the highest high of "
           "today and the `window` days before it, as a share of the window.",
           "the {window}-day Aroon oscillator", "aroon(25)"),
    "number", "lag", nan="The oldest wins a tie.",
    definition="100 / window * (ts_argmin(low, window + 1) - ts_argmax(high, window + 1))",
)  # fmt: skip
