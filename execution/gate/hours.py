"""When a market is open: weekdays and hours of a profile, or the sessions of an exchange (the extra `calendars`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, Protocol
from zoneinfo import ZoneInfo

from ...extras import CalendarUnusable, load_calendar, load_calendars
from ..errors import ExecutionError
from ..orders import US_PER_SECOND
from .profile import VenueProfile

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
LOADED_DAYS: Final = 60
"""Days of an exchange that are loaded at once: loading takes a second, whatever the number."""
_SATURDAY: Final = 5


@dataclass(frozen=True, slots=True)
class TradingDay:
    """One day of a market, in microseconds since 1970 in UTC.

    Attributes
    ----------
    starts_us, ends_us
        Midnight to midnight in the market's own zone: the day over which is counted.
    spans
        Opening and closing of each part of the session, ascending; none on a day without one.
    """

    starts_us: int
    ends_us: int
    spans: tuple[tuple[int, int], ...]

    def is_open(self, at_us: int) -> bool:
        """Tell whether the market is open; it is not at the microsecond of the close."""
        return any(opens <= at_us < closes for opens, closes in self.spans)

    @property
    def closes_us(self) -> int | None:
        """Return the end of the session; None without one."""
        return self.spans[-1][1] if self.spans else None


class MarketHours(Protocol):
    """Finds the day of a market that a time belongs to."""

    def find_day(self, at_us: int) -> TradingDay:
        """Return the day in which a time lies."""
        ...


class WeekdayHours:
    """Monday to Friday at the hours of a profile; holidays are not known."""

    def __init__(self, profile: VenueProfile) -> None:
        self._zone = ZoneInfo(profile.time_zone)
        self._hours = [(time.fromisoformat(opens), time.fromisoformat(closes)) for opens, closes in profile.hours]

    def find_day(self, at_us: int) -> TradingDay:
        """Return the day in which a time lies."""
        day = _local_day(at_us, self._zone)
        hours = self._hours if day.weekday() < _SATURDAY else []
        spans = [(_at(day, opens, self._zone), _at(day, closes, self._zone)) for opens, closes in hours]
        return _make_day(day, self._zone, spans)


class ExchangeHours:
    """The sessions of an exchange with its holidays, early closes and breaks.

    Raises
    ------
    ExecutionError
        exchange-calendars is not installed, or does not know the exchange or the days.
    """

    def __init__(self, code: str) -> None:
        self._code = code
        with _refusing(code):
            load_calendars(code)
        self._zone = ZoneInfo("UTC")
        self._spans: dict[date, tuple[tuple[int, int], ...]] = {}

    def find_day(self, at_us: int) -> TradingDay:
        """Return the day in which a time lies; days are loaded when they are first asked for."""
        near = _local_day(at_us, self._zone)
        if near not in self._spans:
            self._load(near - timedelta(days=1))
        day = _local_day(at_us, self._zone)
        return _make_day(day, self._zone, self._spans[day])

    def _load(self, first: date) -> None:
        last = first + timedelta(days=LOADED_DAYS)
        with _refusing(self._code):
            calendar = load_calendar(self._code, first, last)
        self._zone = ZoneInfo(str(calendar.tz))
        self._spans.update({first + timedelta(days=place): () for place in range(LOADED_DAYS + 1)})
        for row in calendar.schedule.itertuples():
            self._spans[row.Index.date()] = tuple(_read_spans(row))


def make_hours(profile: VenueProfile, code: str = "") -> MarketHours:
    """Return the sessions of an exchange where a code is given, and else the weekday hours of a profile."""
    return ExchangeHours(code) if code else WeekdayHours(profile)


@contextmanager
def _refusing(code: str) -> Iterator[None]:
    """Turn what makes a calendar unusable into an error of this room."""
    try:
        yield
    except CalendarUnusable as problem:
        hint = f"{problem.install}; or leave calendar empty for the weekday hours of the profile."
        raise ExecutionError(
            f"The calendar cannot be used: {problem.why}.",
            field="calendar",
            got=code,
            allowed=problem.allowed,
            hint=hint if problem.install else "",
            exit_code=3 if problem.install else None,
        ) from None


def _read_spans(row: Any) -> Iterable[tuple[int, int]]:
    """Yield the parts of a session; a break that there is not is NaT, which equals nothing."""
    opens, closes = _count_us(row.open.to_pydatetime()), _count_us(row.close.to_pydatetime())
    if row.break_start == row.break_start:
        yield opens, _count_us(row.break_start.to_pydatetime())
        opens = _count_us(row.break_end.to_pydatetime())
    yield opens, closes


def _local_day(at_us: int, zone: ZoneInfo) -> date:
    return datetime.fromtimestamp(at_us // US_PER_SECOND, zone).date()


def _at(day: date, clock: time, zone: ZoneInfo) -> int:
    return _count_us(datetime.combine(day, clock, zone))


def _count_us(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _make_day(day: date, zone: ZoneInfo, spans: Iterable[tuple[int, int]]) -> TradingDay:
    midnight = time()
    return TradingDay(_at(day, midnight, zone), _at(day + timedelta(days=1), midnight, zone), tuple(spans))
