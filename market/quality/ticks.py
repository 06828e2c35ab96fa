"""Bad ticks: closes that nobody traded at, gone the next day or after some days: a wrong print, a wrong decimal point, another's row.

A close that leaves by a jump and comes back by another one, opposite and within a quarter of its size. Each jump is beyond
15 usual moves if it is back the next day, and beyond 20 and 35 % if it takes up to 20 days. The usual move is measured
twice: over the name's whole life, and over the twenty days around, so that a wild month is not taken for an error. Were
daily moves Student-t with 3 degrees of freedom (fatter than those of shares), a day beyond 15 such units had a chance of 4e-4;
two in a row, opposite and of one size, 2e-8, that is 0.05 cases in 2,520 days of 1,000 names; for the longer stretches
(2e-4, and 19 days to come back on) it is 0.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..data_warning import DataWarning, first_few, format_count
from .moves import LogMoves, cell_text, local_size

MIN_TICK_IN_MOVES, MIN_STRETCH_IN_MOVES = 15.0, 20.0
MIN_STRETCH_LOG = np.log(1.35)
RECOVERY_TOLERANCE = 0.25
MAX_STRETCH_DAYS = 20
MAX_TICK_CASES = 50_000
DECIMAL_LOGS = (np.log(10.0), np.log(100.0))
DECIMAL_TOLERANCE = 0.25

TICKS_WHY = (
    "a reversal factor earns the way back, which nobody could have traded, and a volatility is mostly these days"
)
TICKS_REMEDY = "nothing was changed: correct or empty these cells at the source, or check them against a second one"


@dataclass(frozen=True)
class Stray:
    """Closes of one name that left by `jump` (log) on row `first` and were back on row `end`."""

    name: int
    first: int
    end: int
    jump: float

    @property
    def kind(self) -> str:
        """Return what it looks like, in words."""
        decimal = min(abs(abs(self.jump) - each) for each in DECIMAL_LOGS) < DECIMAL_TOLERANCE
        days = f"{self.end - self.first} days" if self.end - self.first > 1 else ""
        return ", ".join(part for part in ("decimal point" if decimal else "", days) if part)


def bad_ticks(moves: LogMoves) -> DataWarning | None:
    """Find closes that jumped away and back."""
    panel = moves.panel
    if panel.days < 4:
        return None
    found = strays(moves)
    if not found:
        return None
    told = first_few(
        cell_text(panel, each.first, each.name) + (f" ({each.kind})" if each.kind else "") for each in found
    )
    cells = sum(each.end - each.first for each in found)
    decimals = sum("decimal" in each.kind for each in found)
    seen = (
        f"{format_count(len(found), 'close')} left by more than {MIN_TICK_IN_MOVES:g} usual moves, back within {MAX_STRETCH_DAYS} days ({cells:,} cells; "
        f"{decimals:,} by a factor near 10 or 100)"
    )
    figures = {"strays": len(found), "cells": cells, "decimal_points": decimals}
    return DataWarning("bad ticks", seen, len(found), told, TICKS_WHY, TICKS_REMEDY, figures)


def strays(moves: LogMoves) -> list[Stray]:
    """Return all closes that jumped away and back, by day and then by name."""
    with np.errstate(invalid="ignore"):
        far = np.abs(moves.own) > MIN_TICK_IN_MOVES * moves.usual
    found: list[Stray] = []
    before: dict[int, int] = {}
    for name, day in np.argwhere(far.T)[:MAX_TICK_CASES].tolist():  # by name, then by day
        first = before.pop(name, None)
        if first is not None and is_stray(moves, name, first, day):
            found.append(Stray(name, first, day, float(moves.own[first, name])))
        else:
            before[name] = day
    return sorted(found, key=lambda each: (each.first, each.name))


def is_stray(moves: LogMoves, name: int, first: int, end: int) -> bool:
    """Tell whether the jump of one row is taken back on another, and both stand out from the days around."""
    away, back = moves.own[first, name], moves.own[end, name]
    short = end == first + 1
    if end - first > MAX_STRETCH_DAYS or not abs(away + back) < RECOVERY_TOLERANCE * abs(away):
        return False
    smallest = min(abs(away), abs(back))
    usual = max(moves.usual[name], local_size(moves.own[:, name], first, end + 1))
    return (
        bool(smallest > MIN_TICK_IN_MOVES * usual)
        if short
        else bool(smallest > max(MIN_STRETCH_IN_MOVES * usual, MIN_STRETCH_LOG))
    )
