"""Instants in UTC, as files write them: ISO 8601, the dates of mail and feeds, and the stamps of EDGAR."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from email.utils import parsedate_to_datetime

ZONED_FORMAT = "an instant with its zone, such as 2015-01-30T21:30:00Z"
PLAIN_FORMAT = "an instant, such as 2015-01-30T21:30:00Z; without a zone it is UTC"
_ISO = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(?::(\d{2})(\.\d{1,9})?)?\s{0,3}(Z|z|UTC|GMT|[-+]\d{2}:?\d{2})?)?"
)
_STAMP = re.compile(r"\d{14}")
_SUNDAY = 6


def format_instant(instant: datetime) -> str:
    """Return an instant in the one stored spelling: UTC, microseconds, Z."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_stored(text: str) -> datetime:
    """Return the instant of a stored spelling."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


def parse_iso(text: str, zoned: bool) -> datetime:
    """Return the instant that ISO 8601 text names.

    Parameters
    ----------
    text : str
        A date with a time; a date alone is refused, because its hour is unknown.
    zoned : bool
        Whether the zone must be written; otherwise a time without one is UTC.

    Raises
    ------
    ValueError
        If it is not such an instant, or none of the calendar.
    """
    match = _ISO.fullmatch(text.strip())
    if match is None or match[2] is None:
        raise ValueError("it is not an instant")
    day, minute, second, fraction, zone = match.groups()
    if zone is None and zoned:
        raise ValueError("its zone is missing")
    offset = "+00:00" if zone is None or zone in ("Z", "z", "UTC", "GMT") else zone
    return datetime.fromisoformat(f"{day}T{minute}:{second or '00'}{(fraction or '')[:7]}{offset}").astimezone(UTC)


def parse_mail(text: str) -> datetime:
    """Return the instant that a date of mail or of a feed names; a zone of -0000 is taken for UTC.

    Raises
    ------
    ValueError
        If it is not such a date.
    """
    instant = parsedate_to_datetime(text)
    return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).astimezone(UTC)


def parse_feed(text: str) -> datetime:
    """Return the instant of either spelling that feeds use.

    Raises
    ------
    ValueError
        If it is neither.
    """
    return parse_iso(text, zoned=True) if _ISO.match(text.strip()) else parse_mail(text)


def parse_edgar(stamp: str) -> datetime:
    """Return the instant of an acceptance stamp, fourteen digits in the time of New York.

    The hour that occurs twice in autumn is taken as the second one, so that nothing is known too early.

    Raises
    ------
    ValueError
        If it is no such stamp.
    """
    if not _STAMP.fullmatch(stamp.strip()):
        raise ValueError("it is not fourteen digits")
    return convert_new_york(datetime.strptime(stamp.strip(), "%Y%m%d%H%M%S"))


def convert_new_york(local: datetime) -> datetime:
    """Return the instant of a local time of New York (rules since 1987)."""
    return (local + timedelta(hours=4 if _is_summer_time(local) else 5)).replace(tzinfo=UTC)


def _is_summer_time(local: datetime) -> bool:
    """Return whether New York has daylight saving time; False in the repeated hour."""
    year = local.year
    if year >= 2007:
        begin, end = _find_sunday(year, 3, 2), _find_sunday(year, 11, 1)
    else:
        begin = _find_sunday(year, 4, 1)
        end = next(
            day for day in (date(year, 10, 31) - timedelta(days=back) for back in range(7)) if day.weekday() == _SUNDAY
        )
    first, last = (datetime(day.year, day.month, day.day, hour) for day, hour in ((begin, 2), (end, 1)))
    return first <= local < last


def _find_sunday(year: int, month: int, which: int) -> date:
    """Return the first or second Sunday of a month."""
    first = date(year, month, 1)
    return first + timedelta(days=(_SUNDAY - first.weekday()) % 7 + 7 * (which - 1))
