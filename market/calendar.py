"""Sessions of an exchange, from the package exchange-calendars (the extra `calendars`).

Days are those of the exchange's own clock, without a time of day.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from ..extras import CalendarUnusable, load_calendar
from .errors import Audit, MarketError, format_count
from .forms.days import MISSING_DAY
from .prices import Prices, format_day

LEAVE_OUT = "leave_out"
SHOWN_DAYS = 3
SEARCHED_DAYS = 60
"""Days within which an exchange opens again; the longest closures since 1950 are of a few weeks."""
SATURDAY = 5


def find_sessions(code: str, first: date, last: date) -> NDArray[np.datetime64]:
    """Return the sessions of an exchange from `first` to `last`, both included.

    Raises
    ------
    MarketError
        exchange-calendars is not installed, or does not know the exchange or the days.
    """
    end = max(last, first + timedelta(days=SEARCHED_DAYS))
    try:
        calendar = load_calendar(code, first, end)
    except CalendarUnusable as problem:
        hint = f"{problem.install}; or leave market.calendar away." if problem.install else ""
        raise MarketError(problem.why, field="market.calendar", got=code, allowed=problem.allowed, hint=hint) from None
    sessions = calendar.sessions.to_numpy().astype("datetime64[D]")
    return np.asarray(sessions[(sessions >= np.datetime64(first)) & (sessions <= np.datetime64(last))])


def find_next_session(code: str, day: date) -> date:
    """Return the first session of an exchange after a day.

    Raises
    ------
    MarketError
        As `find_sessions`, or no session is known.
    """
    coming = find_sessions(code, day + timedelta(days=1), day + timedelta(days=SEARCHED_DAYS))
    if not len(coming):
        raise MarketError(f"no session is known after {day}", field="market.calendar", got=code)
    found: date = coming[0].astype(object)
    return found


def check_sessions(prices: Prices, code: str, closed_days: str, audit: Audit) -> Prices:
    """Return the rows on sessions of an exchange; those of other days are a finding unless they may be left out."""
    known = prices.days[prices.days != MISSING_DAY]
    if not code or not len(known):
        return prices
    days = np.unique(known)
    first, last = (days[place].astype("datetime64[D]").astype(object) for place in (0, -1))
    closed = np.setdiff1d(days, find_sessions(code, first, last).astype(np.int64))
    if not len(closed):
        return prices
    share = f"{len(closed):,} of {format_count(len(days), 'day')} are no session of {code}: {_name_days(closed)}"
    rows = np.flatnonzero(~np.isin(prices.days, closed))
    if closed_days == LEAVE_OUT:
        note = f"calendar: {share}; {format_count(len(prices.days) - len(rows), 'row')} left out"
        audit.keep(rows)
        return replace(prices.take(rows), notes=(*prices.notes, note))
    advice = "check dates and time_zone, which may be a day off, or say closed_days: leave_out to read the other days"
    audit.ask("date", f"{share}; {advice}")
    return prices


def _name_days(days: NDArray[np.int64]) -> str:
    """Return the first few days, with a word where one is on a weekend."""
    words = [
        f"{format_day(int(day))}{' (weekend)' if (int(day) + 3) % 7 >= SATURDAY else ''}" for day in days[:SHOWN_DAYS]
    ]
    return ", ".join(words) + (", ..." if len(days) > SHOWN_DAYS else "")
