"""Figures that are known on the last day of their period, before anybody can have reported them.

`market/beside/fundamentals.py` counts these rows while the periods are at hand, and leaves a note in the panel.
"""

from __future__ import annotations

from ..beside.fundamentals import KNOWN_EARLY
from ..errors import DataWarning
from .moves import LogMoves


def find_early_figures(moves: LogMoves) -> DataWarning | None:
    """Warn of fundamentals whose rows are nearly all known on the last day of their period."""
    found = [note for note in moves.panel.notes if note.endswith(KNOWN_EARLY)]
    if not found:
        return None
    why = "a company reports weeks after its period ends, so formulas read figures that nobody had yet"
    remedy = "give as known the day on which each figure was published, such as the day of the filing"
    return DataWarning("early figures", "; ".join(found), len(found), (), why, remedy)
