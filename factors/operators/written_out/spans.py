"""Put values in relation to their span: the distance between the lowest and the highest, of a window or of a day."""

from __future__ import annotations

import numpy as np

from ...kernels.cells import Array, Members
from ...language.declare import ABSOLUTE, LINEAR, ODD, across, rolling
from ...language.signature import Argument, Prose

ALL_EQUAL_NOTE = "Where all are equal it is NaN."


def minmax(out: Array, values: Array, member: Members, lo: int, hi: int) -> None:
    """Give the lowest of each day 0 and the highest 1."""
    rows = np.where(member[lo:hi], values[lo:hi], np.nan).astype(np.float64)
    low, high = np.fmin.reduce(rows, axis=1, keepdims=True), np.fmax.reduce(rows, axis=1, keepdims=True)
    with np.errstate(all="ignore"):
        out[lo:hi] = np.where(high > low, (rows - low) / (high - low), np.nan)


TS_RANGE = rolling(
    "ts_range", "same",
    Prose("Largest less smallest value of the window.", "the {window}-day range of {x}", "ts_range(close, 20) / close"),
    scaling=ABSOLUTE,
    definition="ts_max(x, window, min_periods=min_periods) - ts_min(x, window, min_periods=min_periods)",
)  # fmt: skip
TS_SCALE = rolling(
    "ts_scale", "ratio",
    Prose("Where today's value is in the range of the window: 0 at the smallest, 1 at the largest.",
          "where {x} is in its {window}-day range", "ts_scale(close, 20)"),
    nan="Today's value must be present. " + ALL_EQUAL_NOTE,
    definition="(x - ts_min(x, window, min_periods=min_periods))"
               " / (ts_max(x, window, min_periods=min_periods) - ts_min(x, window, min_periods=min_periods))",
)  # fmt: skip
MINMAX = across(
    "minmax", "x", "ratio",
    Prose("x moved and scaled so that the names of the day span 0 to 1.", "{x} scaled to span 0 to 1", "minmax(volume)"),
    minmax, nan=ALL_EQUAL_NOTE, reference=lambda x: (x - x.min()) / (x.max() - x.min()),
)  # fmt: skip
GROUP_SCALE = across(
    "group_scale", "x by@", "ratio",
    Prose("x scaled so that the absolute values of the group sum to `to`.", "{x} scaled to a gross sum of {to} per {by}",
          "group_scale(returns, sector)"),
    None, Argument("to", "number", 1.0, True, low=1e-9, high=1e9), scaling=ODD,
    nan="Names whose group is unknown are NaN, and so is a group whose values are all zero.",
    definition="to * x / group_sum(abs(x), by)",
)  # fmt: skip
TRUNCATE = across(
    "truncate", "x", "same",
    Prose("x held within a share of the gross sum of the day: no name is more than `share` of it.",
          "{x} held within {share} of its gross sum", "truncate(scale(returns), 0.01)"),
    None, Argument("share", "number", low=1e-9, high=1), scaling=LINEAR,
    definition="max(min(x, share * sum_across(abs(x))), -share * sum_across(abs(x)))",
)  # fmt: skip
