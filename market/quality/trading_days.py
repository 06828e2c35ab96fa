"""Trading days that are missing, that should not exist, or that have few symbols.

Exchanges close for a dozen weekdays a year and seldom for a week. A gap is suspected from five missing weekdays in a
row on, unless one as long comes in two years of three (a national holiday); a year is, if it lacks more weekdays than
the median year by more than five roots of that number (a Poisson count: 3e-7). Weekend days are suspected unless the
exchange trades on both, as often as on other days. A day has few symbols if it has less than 0.8 of the median of the
ten days either side: symbols missing independently, 5 of 100 each day, would do that to a hundred symbols once in 10^9
days. Where `Panel.calendar` names an exchange, its sessions are compared instead.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..calendar import find_sessions
from ..errors import DataWarning, first_few, format_count
from .moves import LogMoves

LONG_GAP_WEEKDAYS = 5
HOLIDAY_YEAR_SHARE = 2 / 3
MIN_STANDARD_ERRORS = 5.0
ROWS_AROUND = 10
THIN_DAY_SHARE = 0.8
MIN_USUAL_NAMES = 10
SATURDAY = 5


def find_calendar_gaps(moves: LogMoves) -> DataWarning | None:
    """Warn of long gaps, years that lack days, and days on a weekend; or of an exchange's sessions that are missing."""
    dates = moves.panel.dates
    if len(dates) < 2:
        return None
    if moves.panel.calendar:
        return find_missing_sessions(moves)
    gaps, years, weekend = find_long_gaps(dates), find_thin_years(dates), find_weekend_days(dates)
    cases = [f"{dates[row]} to {dates[row + 1]}" for row in gaps.tolist()]
    cases += [f"{missing} weekdays missing in {year}" for year, missing in years]
    cases += [f"{day} is a {word}" for day, word in weekend]
    if not cases:
        return None
    observation = (
        f"{format_count(len(gaps), 'gap')} of a week and more, {format_count(len(years), 'year')} short of days, "
        f"{format_count(len(weekend), 'day')} on a weekend"
    )
    why = (
        "a return over a gap counts as one day, windows cover more time than they say, and dates moved by a day know "
        "tomorrow's text and macro data"
    )
    remedy = (
        "compare with the exchange's calendar: fill in the missing days, and if weekends are there check the time zone"
    )
    return DataWarning("calendar gaps", observation, len(cases), first_few(cases), why, remedy)


def find_missing_sessions(moves: LogMoves) -> DataWarning | None:
    """Warn of sessions of the panel's exchange on which no symbol has a row."""
    dates, code = moves.panel.dates, moves.panel.calendar
    sessions = find_sessions(code, dates[0].astype(object), dates[-1].astype(object))
    missing = np.setdiff1d(sessions, dates)
    if not len(missing):
        return None
    observation = f"{len(missing):,} of {format_count(len(sessions), 'session')} of {code} have no row"
    why = "a return over a missing session counts as one day, and windows cover more time than they say"
    remedy = "load these days again"
    cases = first_few(str(day) for day in missing)
    return DataWarning("missing sessions", observation, len(missing), cases, why, remedy)


def compute_weekdays(dates: NDArray[np.datetime64]) -> NDArray[np.int64]:
    """Return the weekday of each day `[T]`: 0 for Monday to 6 for Sunday."""
    return np.asarray((dates.astype("datetime64[D]").astype(np.int64) + 3) % 7)


def find_long_gaps(dates: NDArray[np.datetime64]) -> NDArray[np.intp]:
    """Return the rows followed by five or more missing weekdays that no yearly holiday explains."""
    missing = np.busday_count(dates[:-1], dates[1:]) - 1
    rows = np.flatnonzero(missing >= LONG_GAP_WEEKDAYS)
    years = dates[:-1].astype("datetime64[Y]")
    every = len(np.unique(dates.astype("datetime64[Y]")))
    usual = [len(np.unique(years[missing >= missing[row]])) >= max(2.0, HOLIDAY_YEAR_SHARE * every) for row in rows]
    return rows[~np.array(usual, np.bool_)]


def find_thin_years(dates: NDArray[np.datetime64]) -> list[tuple[int, int]]:
    """Return the full years that lack more weekdays than the median year by five roots, and their missing weekdays."""
    first, last = dates[0].astype("datetime64[Y]").astype(int), dates[-1].astype("datetime64[Y]").astype(int)
    missing = {}
    for year in range(int(first) + 1, int(last)):
        begin, end = (
            np.datetime64(year, "Y").astype("datetime64[D]"),
            np.datetime64(year + 1, "Y").astype("datetime64[D]"),
        )
        present = dates[(dates >= begin) & (dates < end)]
        missing[year + 1970] = int(np.busday_count(begin, end) - np.is_busday(present).sum())
    if len(missing) < 3:
        return []
    middle = float(np.median(list(missing.values())))
    return [
        (year, count)
        for year, count in missing.items()
        if count > middle + MIN_STANDARD_ERRORS * np.sqrt(max(middle, 1.0))
    ]


def find_weekend_days(dates: NDArray[np.datetime64]) -> list[tuple[np.datetime64, str]]:
    """Return the days on a weekend, with the name of the weekday, unless the market trades all week."""
    day = compute_weekdays(dates)
    counts = np.bincount(day, minlength=7)
    if counts[SATURDAY:].min() > counts[:SATURDAY].max() / 2:
        return []
    rows = np.flatnonzero(day >= SATURDAY)
    return [(dates[row], "Saturday" if day[row] == SATURDAY else "Sunday") for row in rows]


def find_thin_days(moves: LogMoves) -> DataWarning | None:
    """Warn of days with far fewer symbols than the days around them."""
    panel = moves.panel
    count = panel.universe.sum(axis=1).astype(np.float64)
    if panel.days < 2 * ROWS_AROUND + 1:
        return None
    padded = np.pad(count, ROWS_AROUND, mode="reflect")
    around = np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * ROWS_AROUND + 1), axis=1)
    thin = np.flatnonzero((count < THIN_DAY_SHARE * around) & (around >= MIN_USUAL_NAMES))
    if not thin.size:
        return None
    cases = first_few(f"{panel.dates[day]} {int(count[day])} of about {int(around[day])} names" for day in thin)
    observation = f"{format_count(thin.size, 'day')} with far fewer names than the days around"
    why = (
        "names that are missing because the file is cut bias every rank of that day, "
        "and windows that cover it are missing"
    )
    remedy = "load these days again, or leave them out"
    return DataWarning("thin days", observation, int(thin.size), cases, why, remedy)
