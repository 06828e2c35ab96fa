"""Skewness and kurtosis of a rolling window, from sums of powers about an anchor that slide with it (see `spread`)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...kernels.cells import FLOAT32_EPSILON, NAN, Array, Flags, Places, Sums, finite, flagged, no_flags
from ...kernels.kernel_cache import kernel
from ...language.operator import EVEN, ODD, Prose, rolling
from ..reference import Values, is_flat, known_values
from .spread import RENEW_AFTER_WINDOWS

SKEW, KURTOSIS = 0, 1
MIN_FOURTHS_SHARE = 1e-7
"""Share of the largest fourth powers below which a window is recomputed: fourth powers lose digits sooner."""

ShapeState = tuple[Sums, Sums, Sums, Sums, Sums, Sums, Sums]
"""Anchor, count, sums of the powers 1 to 4 about the anchor, and the largest sum of fourth powers so far."""


@kernel
def _make_state(m: int) -> ShapeState:
    """Return the state of an empty window."""
    return np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m)


@kernel
def _add(row: Array, state: ShapeState) -> None:
    """Add a row to the sums."""
    anchor, count, first, second, third, fourth, _ = state
    for j in range(row.size):
        present = row[j] == row[j]
        off = np.float64(row[j]) - anchor[j] if present else 0.0
        square = off * off
        count[j] += 1.0 if present else 0.0
        first[j] += off
        second[j] += square
        third[j] += square * off
        fourth[j] += square * square


@kernel
def _roll(row: Array, gone: Array, state: ShapeState) -> None:
    """Add a row to the sums and take another out, in one pass."""
    anchor, count, first, second, third, fourth, _ = state
    for j in range(row.size):
        present, there = row[j] == row[j], gone[j] == gone[j]
        off = np.float64(row[j]) - anchor[j] if present else 0.0
        old = np.float64(gone[j]) - anchor[j] if there else 0.0
        square, before = off * off, old * old
        count[j] += (1.0 if present else 0.0) - (1.0 if there else 0.0)
        first[j] += off - old
        second[j] += square - before
        third[j] += square * off - before * old
        fourth[j] += square * square - before * before


@kernel
def _renew(values: Array, start: int, day: int, lo: int, state: ShapeState) -> None:
    """Recompute the sums of the rows before today, with today's values as anchors."""
    anchor, count, first, second, third, fourth, largest = state
    now = values[day, lo : lo + anchor.size]
    for j in range(now.size):
        anchor[j] = np.float64(now[j]) if now[j] == now[j] else anchor[j]
    for sums in (count, first, second, third, fourth):
        sums[:] = 0.0
    for past in range(start, day):
        _add(values[past, lo : lo + anchor.size], state)
    largest[:] = fourth


@kernel
def _compute_shape(n: float, mean: float, second: float, third: float, fourth: float, what: int) -> float:
    """Turn the sums of powers about the mean into unbiased skewness or excess kurtosis; NaN if constant."""
    missing = (n < 3.0 + what) | (second <= n * (mean * FLOAT32_EPSILON) ** 2)
    if what == SKEW:
        answer = n * math.sqrt(n - 1.0) / (n - 2.0) * third / (second * math.sqrt(second))
    else:
        scale = (n - 1.0) / ((n - 2.0) * (n - 3.0))
        answer = scale * (n * (n + 1.0) * fourth / (second * second) - 3.0 * (n - 1.0))
    return np.nan if missing else answer


@kernel
def _write(o: Array, state: ShapeState, doubt: Flags, need: int, what: int) -> int:
    """Write a day, and flag and count the cells where the sums have lost too many digits."""
    anchor, count, first, second, third, fourth, largest = state
    lost = 0
    for j in range(o.size):
        n = count[j]
        largest[j] = max(largest[j], fourth[j])
        m = first[j] / n
        square = m * m
        s2 = second[j] - n * square
        s3 = third[j] - m * (3.0 * second[j] - 2.0 * n * square)
        s4 = fourth[j] - m * (4.0 * third[j] - m * (6.0 * second[j] - 3.0 * n * square))
        doubt[j] = (n >= need) & (s2 * s2 < MIN_FOURTHS_SHARE * n * largest[j])
        lost += 1 if doubt[j] else 0
        o[j] = finite(_compute_shape(n, anchor[j] + m, s2, s3, s4, what)) if n >= need else NAN
    return lost


@kernel
def _compute_exactly(values: Array, start: int, stop: int, column: int, what: int) -> float:
    """Compute one window in two passes."""
    n, mean, second, third, fourth = 0.0, 0.0, 0.0, 0.0, 0.0
    for past in range(start, stop):
        if values[past, column] == values[past, column]:
            n += 1.0
            mean += np.float64(values[past, column])
    mean /= n
    for past in range(start, stop):
        if values[past, column] == values[past, column]:
            off = np.float64(values[past, column]) - mean
            second += off * off
            third += off * off * off
            fourth += off * off * off * off
    return _compute_shape(n, mean, second, third, fourth, what)


@kernel
def _recompute_flagged(
    out: Array, values: Array, window: int, what: int, lo: int, day: int, doubt: Flags, places: Places
) -> None:
    """Compute the flagged cells of a day exactly."""
    for at in range(flagged(doubt, places)):
        j = lo + places[at]
        out[day, j] = finite(_compute_exactly(values, max(0, day - window + 1), day + 1, j, what))


@kernel
def rolling_shape(out: Array, values: Array, window: int, need: int, what: int, lo: int, hi: int) -> None:
    """Skewness or excess kurtosis, corrected for bias."""
    state, doubt, places = _make_state(hi - lo), no_flags(hi - lo), np.empty(hi - lo + 8, np.int64)
    for day in range(out.shape[0]):
        start, now = max(0, day - window), values[day, lo:hi]
        if day % (RENEW_AFTER_WINDOWS * window) == 0:
            _renew(values, start, day, lo, state)
        if day >= window:
            _roll(now, values[start, lo:hi], state)
        else:
            _add(now, state)
        if _write(out[day, lo:hi], state, doubt, need, what):
            _recompute_flagged(out, values, window, what, lo, day, doubt, places)


def _standardise_values(values: Values) -> Values:
    """Scale values so that pandas does not round their spread to zero."""
    centred: Values = values - values.mean()
    centred /= np.abs(centred).max()
    return centred


def _make_reference(name: str, least: int) -> Callable[..., float]:
    """Return a reference from a method of pandas that corrects for bias."""

    def shape(x: Values, **_: float) -> float:
        import pandas as pd

        v = known_values(x)
        return math.nan if len(v) < least or is_flat(v) else float(getattr(pd.Series(_standardise_values(v)), name)())

    return shape


TS_SKEW = rolling(
    "ts_skew", "ratio",
    Prose("Skewness over the window, corrected for bias as pandas does.", "the {window}-day skewness of {x}",
          "ts_skew(returns, 60)"),
    rolling_shape, cost=3.0, fixed=(SKEW,), scaling=ODD, nan="A constant window, or fewer than 3 values, gives NaN.",
    reference=_make_reference("skew", 3),
)  # fmt: skip  # a table
TS_KURT = rolling(
    "ts_kurt", "ratio",
    Prose("Excess kurtosis over the window, corrected for bias as pandas does.", "the {window}-day kurtosis of {x}",
          "ts_kurt(returns, 60)"),
    rolling_shape, cost=3.0, fixed=(KURTOSIS,), scaling=EVEN,
    nan="A constant window, or fewer than 4 values, gives NaN.", reference=_make_reference("kurt", 4),
)  # fmt: skip  # a table
