"""Names a day off: a name whose returns go with the market's of tomorrow, or of yesterday, instead of today's.

Each name's clipped standardised return is correlated with the market's (the mean of the others' too) of the day before,
the day itself and the day after. Fisher's z of such a correlation has deviation 1 / sqrt(n); clipping and dividing by
a robust scale keep it near that under fat tails. A name is suspected if the size of another day's z is above that
of today's by more than 5 sqrt(2 / n) (sizes, since an inverse fund goes against the market). For a name that has nothing to do with the market the chance is 3e-7 a side; for one that has,
less by far: below one false alarm in 1,000 panels of 1,000 names.
"""

from __future__ import annotations

import numpy as np

from ..data_warning import DataWarning, first_few, format_count
from .moves import CLIP_IN_MOVES, Frame, LogMoves, row_means

MIN_STANDARD_ERRORS = 5.0
MIN_MARKET_NAMES = 20
MIN_SHIFT_DAYS = 60

SHIFTS_WHY = "prices dated a day early tell today what others do tomorrow, and dated a day late they seem predictable"
SHIFTS_REMEDY = "check the dates of these names at the source (time zone, exchange calendar, a column moved by one row)"


def shifted_names(moves: LogMoves) -> DataWarning | None:
    """Find names that move with the market of another day."""
    panel = moves.panel
    if panel.names < MIN_MARKET_NAMES or panel.days < MIN_SHIFT_DAYS:
        return None
    lags = market_fits(moves)
    limit = MIN_STANDARD_ERRORS * np.sqrt(2.0 / np.maximum(lags["count"], 1.0))
    early, late = (
        np.flatnonzero(np.abs(lags[side]) - np.abs(lags["today"]) > limit) for side in ("tomorrow", "yesterday")
    )
    count = len(early) + len(late)
    if not count:
        return None
    seen = f"{format_count(len(early), 'name')} with the market of the day after (dated a day early), {len(late)} with that before"
    told = [f"{panel.symbols[i]} early" for i in early] + [f"{panel.symbols[i]} late" for i in late]
    return DataWarning(
        "shifted names",
        seen,
        count,
        first_few(told),
        SHIFTS_WHY,
        SHIFTS_REMEDY,
        {"early": len(early), "late": len(late)},
    )


def market_fits(moves: LogMoves) -> dict[str, Frame]:
    """Return Fisher's z of each name's correlation `[N]` with the market of yesterday, today and tomorrow, and the days."""
    unit = np.clip(moves.returns / moves.usual, -CLIP_IN_MOVES, CLIP_IN_MOVES)
    known = ~np.isnan(unit)
    known[0] = False
    market = row_means(unit)
    market -= market[1:].mean()
    filled = np.where(known, unit, 0.0)
    count = known.sum(axis=0).astype(np.float64)
    filled -= np.where(known, filled.sum(axis=0) / np.maximum(count, 1.0), 0.0)
    size, seen = (filled**2).sum(axis=0), known.astype(np.float64)
    fits = {"count": np.where(count >= MIN_SHIFT_DAYS, count, 0.0)}
    for word, shift in (("yesterday", 1), ("today", 0), ("tomorrow", -1)):
        other = np.roll(market, shift)
        other[[0, -1]] = 0.0
        scale = np.sqrt(size * (other**2 @ seen))
        fits[word] = np.arctanh(np.clip(other @ filled / np.where(scale > 0, scale, 1.0), -0.999, 0.999))
    return fits
