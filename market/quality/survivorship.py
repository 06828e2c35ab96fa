"""Survivorship bias: a panel of today's survivors.

Symbols of a real market are delisted: by mergers, bankruptcies and delistings, in the United States 2 to 8 of 100 a
year. The test assumes at least one a year. Over Y symbol-years the number of delistings is then at least Poisson with
mean Y / 100, and a panel is suspected where so few have a probability below 0.02: from about 390 symbol-years on if
none left. On a market that loses 2 of 100 a year the chance of a false alarm is then below 0.001. Where none has left,
a smaller panel is suspected too: from 60 symbol-years on, when a market that loses the usual 5 of 100 a year would have
lost at least one with a chance of 0.95. (On a market that loses 1 of 100 so small a panel is suspected wrongly about
every other time; both expectations are reported.) A symbol has left if it does not trade on the last five days; padded
prices are no trading.
"""

from __future__ import annotations

import math

import numpy as np

from ..errors import DataWarning, first_few
from ..panel import Panel
from .bars import find_living_cells
from .moves import LogMoves, Mask

MIN_EXIT_RATE = 0.01
"""Lowest yearly share of delistings in a real market."""
MAX_EXIT_CHANCE = 0.02
USUAL_EXIT_RATE = 0.05
MAX_USUAL_EXIT_CHANCE = 0.05
MIN_SURVIVOR_DAYS = 250
EDGE_ROWS = 5
CALENDAR_DAYS_PER_YEAR = 365.25


def find_survivorship(moves: LogMoves) -> DataWarning | None:
    """Warn of a panel of survivors: too few symbols were ever delisted."""
    panel = moves.panel
    if panel.days < MIN_SURVIVOR_DAYS:
        return None
    alive = find_living_cells(panel)
    entered, delisted = count_arrivals(panel, alive)
    years = count_name_years(panel, alive)
    chance = compute_poisson_cdf(len(delisted), MIN_EXIT_RATE * years)
    none_delisted = not delisted and math.exp(-USUAL_EXIT_RATE * years) < MAX_USUAL_EXIT_CHANCE
    return _make_warning(panel, delisted, entered, years, chance) if none_delisted or chance < MAX_EXIT_CHANCE else None


def _make_warning(panel: Panel, delisted: list[int], entered: int, years: float, chance: float) -> DataWarning:
    exits = f"all {panel.names} names still trade on the last day"
    if delisted:
        exits = f"only {len(delisted)} of {panel.names} names ever left"
    observation = (
        f"{exits}, {entered} came later than the first day; a market that loses 1 (5) of 100 names a year would lose "
        f"{MIN_EXIT_RATE * years:.1f} ({USUAL_EXIT_RATE * years:.1f}) in these {years:,.0f} years of names, "
        f"and so few with chance {chance:.2g} ({compute_poisson_cdf(len(delisted), USUAL_EXIT_RATE * years):.2g})"
    )
    why = (
        "names that vanished are missing, so small, weak and volatile names look better than they were: a size effect "
        "(small beats large) and a reward for past losses appear by themselves (measured on the S&P 500 members of "
        "2021 since 2008: minus the log of dollar volume has a RankIC of 0.029, t 3.8, and of -0.008 on a panel with "
        "the names that vanished, on the same dates)"
    )
    remedy = (
        "use a panel with the names that were there each day, and say who was a member: a column in_universe, or "
        "members: a file of symbol, from, to; until then believe no result that is not neutral to size"
    )
    figures = {"left": len(delisted), "entered": entered, "name_years": years, "chance": chance}
    return DataWarning(
        "survivorship", observation, panel.names, first_few(panel.symbols[i] for i in delisted), why, remedy, figures
    )


def count_arrivals(panel: Panel, alive: Mask) -> tuple[int, list[int]]:
    """Return the number of symbols listed after the first days, and the columns of those delisted before the last."""
    edge = min(EDGE_ROWS, panel.days)
    ever = alive.any(axis=0)
    entered = int((ever & ~alive[:edge].any(axis=0)).sum())
    return entered, np.flatnonzero(ever & ~alive[-edge:].any(axis=0)).tolist()


def count_name_years(panel: Panel, alive: Mask) -> float:
    """Return the years during which symbols were alive, summed over all symbols."""
    span = float((panel.dates[-1] - panel.dates[0]).astype(np.int64)) / CALENDAR_DAYS_PER_YEAR
    return float(alive.sum()) / panel.days * span


def compute_poisson_cdf(count: int, mean: float) -> float:
    """Return the chance that a Poisson variable is at most `count`."""
    if mean <= 0:
        return 1.0
    logs = [-mean + k * math.log(mean) - math.lgamma(k + 1) for k in range(count + 1)]
    top = max(logs)
    return min(1.0, math.exp(top) * math.fsum(math.exp(log - top) for log in logs))
