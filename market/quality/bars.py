"""Bars that cannot be, or hardly: prices of nothing, high below low, open or close outside, a reach of thirty days.

The first three are impossible, so their chance on a clean market is zero; what is rounded in the sixth digit is let
pass. A reach is how far high or low go beyond open and close. For a random walk the chance that a day reaches x of its
own standard deviations beyond both ends falls like exp(-2 x^2), so that thirty usual moves (and half the price) in a
day that closes near where it opened is a wrong print, or one of the few real flash crashes.
"""

from __future__ import annotations

import numpy as np

from ..data_warning import MAX_CASES_SHOWN, DataWarning, format_count
from ..panel import PRICE_FIELDS
from .moves import Frame, LogMoves, Mask, cell_text, marked_cells

BAR_ROUNDING = 1e-6
REACH_IN_MOVES = 30.0
MIN_LOG_REACH = np.log(1.5)
MAX_IMPOSSIBLE_SHARE = 0.01
"""Share of impossible bars beyond which a whole column is wrong, not some cells."""


def odd_bars(moves: LogMoves) -> DataWarning | None:
    """Find bars that cannot be."""
    kinds = {name: where for name, where in bar_kinds(moves).items() if where.any()}
    if not kinds:
        return None
    bad: Mask = np.logical_or.reduce(list(kinds.values()))
    count = int(bad.sum())
    share = count / max(int(np.isfinite(moves.panel.fields["close"]).sum()), 1)
    seen = ", ".join(f"{int(where.sum()):,} with {name}" for name, where in kinds.items())
    cases = tuple(cell_text(moves.panel, *cell) for cell in marked_cells(bad, MAX_CASES_SHOWN))
    remedy = "nothing was changed: correct these rows at the source"
    if share > MAX_IMPOSSIBLE_SHARE:
        remedy = f"at {share:.0%} of the rows a column is shifted or in other units: compare the columns at the source"
    why = "a fill at such a price could not have happened, and ranges, gaps and typical prices are wrong there"
    return DataWarning(
        "odd bars",
        f"{format_count(count, 'bar')} cannot be, or hardly: {seen}",
        count,
        cases,
        why,
        remedy,
        {"share": share},
    )


def bar_kinds(moves: LogMoves) -> dict[str, Mask]:
    """Return what is wrong with which cells `[T, N]`."""
    opened, high, low, close = (moves.panel.fields[name] for name in ("open", "high", "low", "close"))
    with np.errstate(invalid="ignore"):
        nothing = np.logical_or.reduce([moves.panel.fields[name] <= 0 for name in PRICE_FIELDS])
        crossed = (high < low) & ~nothing
        top, bottom = np.maximum(opened, close), np.minimum(opened, close)
        outside = ((top > high * (1 + BAR_ROUNDING)) | (bottom < low * (1 - BAR_ROUNDING))) & ~nothing & ~crossed
    wide = far_cells(moves, top, bottom) & ~(nothing | crossed | outside)
    return {
        "a price that is not positive": nothing,
        "high below low": crossed,
        "open or close outside low to high": outside,
        f"a high or low {REACH_IN_MOVES:g} usual daily moves away": wide,
    }


def far_cells(moves: LogMoves, top: Frame, bottom: Frame) -> Mask:
    """Return the cells whose high or low is beyond open and close by thirty usual daily moves and half the price."""
    limit = np.exp(np.maximum(REACH_IN_MOVES * moves.usual, MIN_LOG_REACH))
    with np.errstate(invalid="ignore"):
        far: Mask = (moves.panel.fields["high"] > top * limit) | (moves.panel.fields["low"] * limit < bottom)
    return far
