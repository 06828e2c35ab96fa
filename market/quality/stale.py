"""Stale prices: the same close day after day while nothing trades, as halted and delisted names are padded.

A dead day repeats the close of the row before and has no volume, a missing one, or the very same bar and volume again.
How long a run of them must be follows from the panel: p is the share of unchanged closes on days that did trade (cents
make it positive), and L is such that in all cells together fewer than 0.001 runs of L come by chance, p^L cells <= 0.001;
at least 3 and at most 10. A day on which more than half of the names repeat their close was padded as a whole.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..data_warning import MAX_CASES_SHOWN, DataWarning, first_few, format_count
from ..panel import Panel
from .moves import LogMoves, Mask

MAX_RUN_CHANCE = 0.001
MIN_RUN_DAYS, MAX_RUN_DAYS = 3, 10
MIN_SAME_SHARE = 0.5
MIN_REPEATED_NAMES = 10

STALE_WHY = (
    "nobody could trade there, so a fill is fiction, volatility looks low, and the first real price looks like a signal"
)
STALE_REMEDY = "nothing was changed: leave these cells empty, and end a delisted name on its last traded day"


def stale_prices(moves: LogMoves) -> DataWarning | None:
    """Find runs of days on which a name's price stood still and nothing traded, and days that repeat the day before."""
    panel = moves.panel
    if panel.days < MIN_RUN_DAYS + 1:
        return None
    runs = stale_runs(panel)
    whole = repeated_days(panel)
    if not len(runs) and not whole.size:
        return None
    cells = int((runs[:, 2] - runs[:, 1]).sum())
    ending = int((runs[:, 2] == panel.days).sum())
    seen = (
        f"{format_count(len(runs), 'run')} of days, {cells:,} in all, that repeat a close while nothing traded "
        f"({ending:,} of them up to the last day), {format_count(whole.size, 'day')} that most names repeat from the day before"
    )
    told = [f"all {panel.dates[day]}" for day in whole[:MAX_CASES_SHOWN]]
    told += [
        f"{panel.symbols[name]} {panel.dates[first]} to {panel.dates[end - 1]}"
        for name, first, end in runs[:MAX_CASES_SHOWN]
    ]
    figures = {"runs": len(runs), "cells": cells, "to_the_end": ending, "repeated_days": whole.size}
    return DataWarning("stale prices", seen, len(runs) + whole.size, first_few(told), STALE_WHY, STALE_REMEDY, figures)


def dead_days(panel: Panel) -> Mask:
    """Return the cells `[T, N]` that repeat the close of the row before without a trade."""
    fields = panel.fields
    close, volume = fields["close"], fields["volume"]
    same = close[1:] == close[:-1]
    dead = np.zeros(close.shape, np.bool_)
    day, name = np.nonzero(same)  # few: everything else is looked up there only
    now, before = volume[day + 1, name], volume[day, name]
    again = now == before
    for field in ("open", "high", "low"):
        again &= fields[field][day + 1, name] == fields[field][day, name]
    dead[day + 1, name] = np.isnan(now) | (now == 0) | again
    return dead


def stale_runs(panel: Panel) -> NDArray[np.intp]:
    """Return name, first row and row after the last of each long run of dead days, by name `[R, 3]`."""
    dead = dead_days(panel)
    needed = run_length(panel, dead)
    edge = np.zeros((1, panel.names), np.int8)
    change = np.diff(np.vstack([edge, dead.astype(np.int8), edge]), axis=0).T
    name, first = np.nonzero(change == 1)
    end = np.nonzero(change == -1)[1]
    runs = np.stack([name, first, end], axis=1)
    return runs[runs[:, 2] - runs[:, 1] >= needed]


def run_length(panel: Panel, dead: Mask) -> int:
    """Return how many dead days in a row cannot be chance."""
    close = panel.fields["close"]
    both = int(np.isfinite(close[1:]).sum())
    living = int((close[1:] == close[:-1]).sum()) - int(dead.sum())
    share = max(living, 1) / max(both - int(dead.sum()), 2)
    return int(
        np.clip(np.ceil(np.log(MAX_RUN_CHANCE / max(both, 1)) / np.log(min(share, 0.5))), MIN_RUN_DAYS, MAX_RUN_DAYS)
    )


def repeated_days(panel: Panel) -> NDArray[np.intp]:
    """Return the rows on which more than half of at least ten names have the close of the row before."""
    close = panel.fields["close"]
    both = (np.isfinite(close[1:]) & np.isfinite(close[:-1])).sum(axis=1)
    same = (close[1:] == close[:-1]).sum(axis=1)
    return np.flatnonzero((both >= MIN_REPEATED_NAMES) & (same > MIN_SAME_SHARE * both)) + 1


def living_cells(panel: Panel) -> Mask:
    """Return the universe without what is padded: the days on which a name can be said to live `[T, N]`."""
    alive: Mask = panel.universe.copy()
    for name, first, end in stale_runs(panel).tolist():
        alive[first:end, name] = False
    return alive
