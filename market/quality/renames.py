"""Renamed symbols: a name that vanishes on the day before another one begins at its price.

A company that changes its symbol looks like one that was delisted and one that was listed: both halves are too short
for long windows, and the first ends as a delisting. A pair is suspected if the second begins on the row after the first
one's last, its first close lies within 2.5 usual moves of the last close of the first after the market's move, and both
trade within a factor of three of the same volume, in money, in the twenty days on either side. Quoted closes are
compared where there are any. Of two unrelated names, one of which begins as the other vanishes, about one pair in 90
meets all of it (log prices with a deviation of 1, logs of the money traded with one of 1.5, usual moves of 2 %).
"""

from __future__ import annotations

import numpy as np

from ..errors import DataWarning, first_few, format_count
from .moves import Frame, LogMoves
from .survivorship import EDGE_ROWS

MAX_USUAL_MOVES = 2.5
MAX_VOLUME_RATIO = 3.0
TRADED_ROWS = 20

RENAMES_WHY = (
    "a company that is cut in two looks delisted and newly listed: windows are missing at the seam, and the first half "
    "ends as if it had been sold at its last close"
)
RENAMES_REMEDY = (
    "if it is one company, say so in a file of date, symbol, new_symbol: market.symbol_changes in a campaign file"
)


def find_suspected_renames(moves: LogMoves) -> DataWarning | None:
    """Warn of pairs of symbols that may be one company before and after a change of its symbol."""
    panel = moves.panel
    if not panel.days:
        return None
    there = np.isfinite(panel.fields["close"])
    names = np.flatnonzero(there.any(axis=0))
    first, last = there.argmax(axis=0), panel.days - 1 - there[::-1].argmax(axis=0)
    vanished = names[last[names] < panel.days - EDGE_ROWS]
    listed = names[first[names] >= EDGE_ROWS]
    begins: dict[int, list[int]] = {}
    for name in listed.tolist():
        begins.setdefault(int(first[name]), []).append(name)
    pairs = [
        (old, new)
        for old in vanished.tolist()
        for new in begins.get(int(last[old]) + 1, ())
        if _goes_on(moves, old, new, int(last[old]))
    ]
    if not pairs:
        return None
    cases = [f"{panel.symbols[old]} to {panel.symbols[new]} on {panel.dates[first[new]]}" for old, new in pairs]
    observation = f"{format_count(len(pairs), 'name')} that may have been renamed"
    return DataWarning("renames", observation, len(pairs), first_few(cases), RENAMES_WHY, RENAMES_REMEDY)


def _goes_on(moves: LogMoves, old: int, new: int, row: int) -> bool:
    """Return whether `new` goes on, in the row after `row`, at the price and the trade of `old`."""
    fields = moves.panel.fields
    close = fields.get("close_raw", fields["close"])
    before, after = float(close[row, old]), float(close[row + 1, new])
    if not (before > 0 and after > 0):
        return False
    gap = np.log(after / before) - moves.market[row + 1]
    if abs(gap) > MAX_USUAL_MOVES * moves.usual[old]:
        return False
    sold, bought = (
        _find_median(moves.traded[rows, name])
        for rows, name in (
            (slice(max(row + 1 - TRADED_ROWS, 0), row + 1), old),
            (slice(row + 1, row + 1 + TRADED_ROWS), new),
        )
    )
    return min(sold, bought) * MAX_VOLUME_RATIO >= max(sold, bought)


def _find_median(values: Frame) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if known.size else 0.0
