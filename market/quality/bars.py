"""Odd bars, which are impossible or nearly so, and stale prices, which repeat while nothing trades.

**Odd bars**: a price that is not positive, high below low, open or close outside low to high, or a reach of thirty
usual moves. The first three are impossible, so their chance on clean data is zero; rounding in the sixth digit is
allowed. The reach is how far high or low go beyond open and close. For a random walk the chance that a day reaches x of
its own standard deviations beyond both ends falls like exp(-2 x^2). So thirty usual moves (and half the price) on a day
that closes near its open are a wrong print, or one of the few real flash crashes.

**Stale prices**, as halted and delisted symbols are padded: a dead day repeats the close of the row before and has no
volume, a missing one, or the very same bar and volume again. The required length of a run follows from the panel: p is
the share of unchanged closes on days that did trade (cents make it positive), and L is such that in all cells together
fewer than 0.001 runs of L occur by chance, p^L cells <= 0.001; at least 3 and at most 10. A day on which more than half
of the symbols repeat their close was padded as a whole.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import MAX_CASES_SHOWN, DataWarning, first_few, format_count
from ..panel import PRICE_FIELDS, Panel
from .moves import Frame, LogMoves, Mask, format_cell, list_marked_cells

BAR_ROUNDING = 1e-6
"""Relative rounding of prices that is allowed."""
REACH_IN_MOVES = 30.0
MIN_LOG_REACH = np.log(1.5)
MAX_IMPOSSIBLE_SHARE = 0.01
"""Share of impossible bars above which a whole column is wrong, not some cells."""
MAX_RUN_CHANCE = 0.001
MIN_RUN_DAYS, MAX_RUN_DAYS = 3, 10
MIN_SAME_SHARE = 0.5
MIN_REPEATED_NAMES = 10
STALE_WHY = (
    "nobody could trade there, so a fill is fiction, volatility looks low, and the first real price looks like a signal"
)
STALE_REMEDY = "nothing was changed: leave these cells empty, and end a delisted name on its last traded day"


def find_odd_bars(moves: LogMoves) -> DataWarning | None:
    """Warn of impossible or nearly impossible bars."""
    kinds = {name: where for name, where in classify_odd_bars(moves).items() if where.any()}
    if not kinds:
        return None
    bad: Mask = np.logical_or.reduce(list(kinds.values()))
    count = int(bad.sum())
    share = count / max(int(np.isfinite(moves.panel.fields["close"]).sum()), 1)
    observation = ", ".join(f"{int(where.sum()):,} with {name}" for name, where in kinds.items())
    cases = tuple(format_cell(moves.panel, *cell) for cell in list_marked_cells(bad, MAX_CASES_SHOWN))
    remedy = "nothing was changed: correct these rows at the source"
    if share > MAX_IMPOSSIBLE_SHARE:
        remedy = f"at {share:.0%} of the rows a column is shifted or in other units: compare the columns at the source"
    why = "a fill at such a price could not have happened, and ranges, gaps and typical prices are wrong there"
    return DataWarning(
        "odd bars",
        f"{format_count(count, 'bar')} cannot be, or hardly: {observation}",
        count,
        cases,
        why,
        remedy,
        {"share": share},
    )


def classify_odd_bars(moves: LogMoves) -> dict[str, Mask]:
    """Return the cells `[T, N]` of each kind of odd bar."""
    opened, high, low, close = (moves.panel.fields[name] for name in ("open", "high", "low", "close"))
    with np.errstate(invalid="ignore"):
        nothing = np.logical_or.reduce([moves.panel.fields[name] <= 0 for name in PRICE_FIELDS])
        crossed = (high < low) & ~nothing
        top, bottom = np.maximum(opened, close), np.minimum(opened, close)
        outside = ((top > high * (1 + BAR_ROUNDING)) | (bottom < low * (1 - BAR_ROUNDING))) & ~nothing & ~crossed
    wide = find_far_cells(moves, top, bottom) & ~(nothing | crossed | outside)
    return {
        "a price that is not positive": nothing,
        "high below low": crossed,
        "open or close outside low to high": outside,
        f"a high or low {REACH_IN_MOVES:g} usual daily moves away": wide,
    }


def find_far_cells(moves: LogMoves, top: Frame, bottom: Frame) -> Mask:
    """Return the cells `[T, N]` whose high or low is beyond open and close by thirty usual moves and half the price."""
    limit = np.exp(np.maximum(REACH_IN_MOVES * moves.usual, MIN_LOG_REACH))
    with np.errstate(invalid="ignore"):
        far: Mask = (moves.panel.fields["high"] > top * limit) | (moves.panel.fields["low"] * limit < bottom)
    return far


def find_stale_prices(moves: LogMoves) -> DataWarning | None:
    """Warn of runs of days with an unchanged price and no trade, and of days that repeat the day before."""
    panel = moves.panel
    if panel.days < MIN_RUN_DAYS + 1:
        return None
    runs = find_stale_runs(panel)
    repeated_days = find_repeated_days(panel)
    if not len(runs) and not repeated_days.size:
        return None
    cells = int((runs[:, 2] - runs[:, 1]).sum())
    ending = int((runs[:, 2] == panel.days).sum())
    observation = (
        f"{format_count(len(runs), 'run')} of days, {cells:,} in all, that repeat a close while nothing traded "
        f"({ending:,} of them up to the last day), "
        f"{format_count(repeated_days.size, 'day')} that most names repeat from the day before"
    )
    cases = [f"all {panel.dates[day]}" for day in repeated_days[:MAX_CASES_SHOWN]]
    cases += [
        f"{panel.symbols[name]} {panel.dates[first]} to {panel.dates[end - 1]}"
        for name, first, end in runs[:MAX_CASES_SHOWN]
    ]
    figures = {"runs": len(runs), "cells": cells, "to_the_end": ending, "repeated_days": repeated_days.size}
    return DataWarning(
        "stale prices", observation, len(runs) + repeated_days.size, first_few(cases), STALE_WHY, STALE_REMEDY, figures
    )


def find_dead_days(panel: Panel) -> Mask:
    """Return the cells `[T, N]` that repeat the close of the row before without a trade."""
    fields = panel.fields
    close, volume = fields["close"], fields["volume"]
    same = close[1:] == close[:-1]
    dead = np.zeros(close.shape, np.bool_)
    day, name = np.nonzero(same)  # few cells: the other fields are read there only
    now, before = volume[day + 1, name], volume[day, name]
    again = now == before
    for field in ("open", "high", "low"):
        again &= fields[field][day + 1, name] == fields[field][day, name]
    dead[day + 1, name] = np.isnan(now) | (now == 0) | again
    return dead


def find_stale_runs(panel: Panel) -> NDArray[np.intp]:
    """Return column, first row and row after the last of each long run of dead days `[R, 3]`, by column."""
    dead = find_dead_days(panel)
    needed = compute_min_run_days(panel, dead)
    edge = np.zeros((1, panel.names), np.int8)
    change = np.diff(np.vstack([edge, dead.astype(np.int8), edge]), axis=0).T
    name, first = np.nonzero(change == 1)
    end = np.nonzero(change == -1)[1]
    runs = np.stack([name, first, end], axis=1)
    return runs[runs[:, 2] - runs[:, 1] >= needed]


def compute_min_run_days(panel: Panel, dead: Mask) -> int:
    """Return the length from which on a run of dead days is not chance."""
    close = panel.fields["close"]
    both = int(np.isfinite(close[1:]).sum())
    living = int((close[1:] == close[:-1]).sum()) - int(dead.sum())
    share = max(living, 1) / max(both - int(dead.sum()), 2)
    return int(
        np.clip(np.ceil(np.log(MAX_RUN_CHANCE / max(both, 1)) / np.log(min(share, 0.5))), MIN_RUN_DAYS, MAX_RUN_DAYS)
    )


def find_repeated_days(panel: Panel) -> NDArray[np.intp]:
    """Return the rows on which more than half of at least ten symbols repeat the close of the row before."""
    close = panel.fields["close"]
    both = (np.isfinite(close[1:]) & np.isfinite(close[:-1])).sum(axis=1)
    same = (close[1:] == close[:-1]).sum(axis=1)
    return np.flatnonzero((both >= MIN_REPEATED_NAMES) & (same > MIN_SAME_SHARE * both)) + 1


def find_living_cells(panel: Panel) -> Mask:
    """Return the universe `[T, N]` without padded cells."""
    alive: Mask = panel.universe.copy()
    for name, first, end in find_stale_runs(panel).tolist():
        alive[first:end, name] = False
    return alive
