"""Dates of a column as day numbers: ISO dates, compact ones, month names, European and American order, zones.

A column has one form. Whether 02/01/2013 is a day in January or in February is decided by a value of the same column
that can be read one way only, such as 25/01/2013, or by the setting `dates`; it is never guessed. An instant with a
zone is its day in the exchange's zone, `time_zone`. Where every stamp of a column is midnight in its own zone, each is
the day as it is written: midnight of one zone is an hour of the day before in others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..errors import Audit, Finding, format_count, quote_cell
from .arrays import find_empty, is_text, to_flags, to_floats, to_integers

if TYPE_CHECKING:
    from ..table import Table

MISSING_DAY = np.iinfo(np.int64).min
EPOCH = date(1970, 1, 1)
EXCEL_EPOCH = date(1899, 12, 30)
"""Day 0 of the serial numbers of Excel, whose year 1900 has a day too many."""
MIN_YEAR, MAX_YEAR = 1800, 2200
MIN_UNIX_SECONDS = (date(MIN_YEAR, 1, 1) - EPOCH).days * 86_400
END_UNIX_SECONDS = (date(MAX_YEAR + 1, 1, 1) - EPOCH).days * 86_400
PIVOT_YEAR = 69
"""Two-digit years from here on are of the 20th century, as POSIX has it."""
MAX_UNIX_SECONDS = 10**11
"""Larger numbers count milliseconds, microseconds or nanoseconds, each a thousand times larger."""

TIME = r"(?:[T ]+(\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:\s*[AP]M)?)\s*(Z|UTC|[A-Z][A-Za-z]{2,4}|[-+]\d{2}:?\d{2})?)?"
YEAR_FIRST = re.compile(rf"(\d{{4}})([-/.])(\d{{1,2}})\2(\d{{1,2}}){TIME}", re.IGNORECASE)
COMPACT = re.compile(r"(\d{4})(\d{2})(\d{2})")
YEAR_LAST = re.compile(rf"(\d{{1,2}})([-/. ])(\d{{1,2}})\2(\d{{4}}|\d{{2}}){TIME}", re.IGNORECASE)
DAY_NAME_YEAR = re.compile(rf"(\d{{1,2}})[-/. ]+([A-Za-z]{{3,9}})\.?[-/., ]+(\d{{4}}){TIME}")
NAME_DAY_YEAR = re.compile(rf"([A-Za-z]{{3,9}})\.?[-/. ]+(\d{{1,2}})(?:st|nd|rd|th)?,?[-/. ]+(\d{{4}}){TIME}")
MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
ZONE_EXAMPLE = "America/New_York"
ZONED = f"is zoned: say the exchange's zone, such as time_zone: {ZONE_EXAMPLE}"
TIMED = f"has a time of day; a row is a whole day: if this is one, say time_zone: {ZONE_EXAMPLE} (the exchange's)"
AS_WRITTEN = "the day as it is written, since every stamp is midnight in its own zone"
SPREADSHEET = (
    "a spreadsheet program that reads some dates and not others may have swapped day and month: export the column "
    "again as text from its source, with all dates alike"
)
WHOLE = re.compile(r"-?[0-9]{1,19}")
MAX_COUNT = np.iinfo(np.int64).max
MAX_OFFSET = timedelta(hours=14)
"""Largest offset from UTC that is in use."""
WRITE_ISO = "write it as 2015-12-31"


@dataclass(frozen=True)
class DateText:
    """A date as it is written: its parts in the order of year, month, day, or with the last two in doubt."""

    text: str
    year: int
    month: int
    day: int
    time: str = ""
    zone: str = ""
    in_doubt: bool = False
    short_year: bool = False


def read_days(table: Table, name: str, audit: Audit) -> NDArray[np.int64]:
    """Return each row's day number (days since 1970-01-01), `MISSING_DAY` where the cell is not a date."""
    return read_day_column(table, table.columns[name], name, audit)


def read_day_column(table: Table, column: pa.ChunkedArray, name: str, audit: Audit) -> NDArray[np.int64]:
    """Return the day number of each cell of a column, as `read_days`."""
    return read_day_times(table, column, name, audit)[0]


def read_day_times(
    table: Table, column: pa.ChunkedArray, name: str, audit: Audit, *, timed: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the day number of each cell, and which cells are later than midnight of that day.

    An instant is first converted to the exchange's zone. With `timed`, a time of day without a zone is the exchange's;
    otherwise it is a finding where no zone is set.
    """
    kind = column.type
    if is_text(kind):
        return _parse_days(table, column, name, audit, timed)
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return _read_typed_days(table, column, name, audit, timed)
    if _holds_counts(column):
        return _read_numbered_days(table, column.cast(pa.int64()), name, audit, timed)
    audit.add(Finding(0, name, f"the column holds {kind}, not dates"))
    return _no_days(column)


def _no_days(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    return np.full(len(column), MISSING_DAY), np.zeros(len(column), np.bool_)


def _holds_counts(column: pa.ChunkedArray) -> bool:
    """Return whether a column holds whole numbers that fit into 64 bits with a sign."""
    if pa.types.is_uint64(column.type):
        return (pc.max(column).as_py() or 0) <= MAX_COUNT
    return pa.types.is_integer(column.type) or (pa.types.is_floating(column.type) and _is_whole(column))


def _is_whole(column: pa.ChunkedArray) -> bool:
    values = to_floats(column)
    known = values[np.isfinite(values)]
    return bool(known.size) and bool((known == np.floor(known)).all() and np.abs(known).max() < 2.0**53)


def _read_typed_days(
    table: Table, column: pa.ChunkedArray, name: str, audit: Audit, timed: bool
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Read a typed column of dates or timestamps."""
    zone = table.reading.time_zone
    audit.add_rows(name, np.flatnonzero(find_empty(column)), lambda row: "the cell is empty")
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        local = _take_local(column, zone, name, audit, timed)
        if local is None:
            return _no_days(column)
        column = local
    days = column.cast(pa.date32(), safe=False)
    late = to_flags(pc.not_equal(days.cast(column.type), column))
    audit.within_day |= bool(late.any()) and pc.count_distinct(column).as_py() > pc.count_distinct(days).as_py()
    if pa.types.is_timestamp(column.type) and not zone and not timed:
        late_rows = np.flatnonzero(late)
        _ask_for_zone(late_rows, [f"{column[row].as_py()} {TIMED}" for row in late_rows[:1].tolist()], name, audit)
    return to_integers(days, MISSING_DAY), late


def _take_local(column: pa.ChunkedArray, zone: str, name: str, audit: Audit, timed: bool) -> pa.ChunkedArray | None:
    """Return instants with a zone as the exchange's clock shows them; None where its zone has to be said."""
    written = pc.local_timestamp(column)
    days = written.cast(pa.date32(), safe=False)
    whole = pc.all(pc.equal(days.cast(written.type), written)).as_py()
    if not zone and not whole:
        what = f"{column[0].as_py()} is zoned ({column.type.tz}), as is the whole column"
        audit.ask(name, f"{what}: say the exchange's zone, such as time_zone: {ZONE_EXAMPLE}")
        return None
    if not zone:
        audit.notes.append(f"{name}: {AS_WRITTEN}")
        return written
    local = pc.local_timestamp(column.cast(pa.timestamp(column.type.unit, zone)))
    moved = pc.index(pc.not_equal(local.cast(pa.date32(), safe=False), days), True).as_py()
    if whole and not timed and moved >= 0:
        _refuse_zone(str(column[moved].as_py()), local[moved].as_py().date(), zone, name, audit)
    audit.notes.append(f"{name}: the day in {zone}")
    return local


def _refuse_zone(stamp: str, day: date, zone: str, name: str, audit: Audit) -> None:
    """Add a finding where a zone moves midnights to another day: the days of the whole column would be wrong."""
    what = f"every stamp is midnight in its own zone, and time_zone: {zone} makes {day} of {stamp}"
    audit.ask(name, f"{what}: leave time_zone out, and each row is of the day that is written")


def _ask_for_zone(rows: NDArray[np.intp], examples: Sequence[str], name: str, audit: Audit) -> None:
    """Add one finding for all cells that need a zone; `examples` has what is wrong with the first of them."""
    for first, example in zip(rows.tolist(), examples, strict=False):
        more = f" (and {format_count(len(rows) - 1, 'more row')})" if len(rows) > 1 else ""
        audit.ask(name, f"{example}{more}", int(audit.numbers[first]))


def _read_numbered_days(
    table: Table, column: pa.ChunkedArray, name: str, audit: Audit, timed: bool
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Read whole numbers: 20130125 is a day, and any other count needs the setting `dates`.

    Unix numbers that are all midnights in UTC are days; others are instants, whose day depends on the exchange's zone.
    """
    filled = to_integers(column, 0)
    distinct, codes = np.unique(filled, return_inverse=True)
    audit.add_rows(name, np.flatnonzero(find_empty(column)), lambda row: "the cell is empty")
    form = table.reading.dates
    if form in ("excel", "unix"):
        convert = _read_excel_day if form == "excel" else _unix_reader(table.reading.time_zone)
        read = [convert(int(value)) for value in distinct.tolist()]
        audit.notes.append(f"{name}: {form} numbers")
    else:
        read = [(_read_compact_day(str(value)) if value else MISSING_DAY, False) for value in distinct.tolist()]
    days, late = [day for day, _ in read], [after for _, after in read]
    if form == "unix" and not timed:
        _check_midnights(distinct.tolist(), days, table.reading.time_zone, name, audit)
    if form == "unix" and not table.reading.time_zone:
        rows = np.flatnonzero(np.array(late, np.bool_)[codes])
        _ask_for_zone(rows, [f"{filled[row]} is no midnight in UTC and {ZONED}" for row in rows[:1]], name, audit)
    bad = [value for value, day in zip(distinct.tolist(), days, strict=True) if day == MISSING_DAY and value]
    if bad and form in ("excel", "unix"):
        audit.add(Finding(0, name, f"{bad[0]} is no {form} number of a day from {MIN_YEAR} to {MAX_YEAR}"))
    elif bad:
        what = f"{bad[0]} is a number, not a date: {WRITE_ISO}"
        audit.ask(name, f"{what}, or say dates: excel (days since 1900) or dates: unix (seconds since 1970)")
    return np.array(days, np.int64)[codes], np.array(late, np.bool_)[codes]


def _check_midnights(counts: Sequence[int], days: Sequence[int], zone: str, name: str, audit: Audit) -> None:
    """Refuse a zone that moves counts since 1970 that are all midnights in UTC to another day."""
    written = [_unix_reader("")(count) for count in counts]
    if any(late for _, late in written):
        return
    for count, day, (own, _) in zip(counts, days, written, strict=True):
        if day not in (own, MISSING_DAY):
            return _refuse_zone(f"{count} ({_show(own)})", EPOCH + timedelta(days=day), zone, name, audit)


def _show(day: int) -> str:
    return str(np.datetime64(day, "D"))


def _read_compact_day(text: str) -> int:
    match = COMPACT.fullmatch(text)
    return _number_day(*map(int, match.groups())) if match else MISSING_DAY


def _read_excel_day(value: int) -> tuple[int, bool]:
    day = value + (EXCEL_EPOCH - EPOCH).days
    return (day if MIN_YEAR <= (EPOCH.year + day // 365) <= MAX_YEAR else MISSING_DAY), False


def _unix_reader(zone: str) -> Callable[[int], tuple[int, bool]]:
    """Return what reads a count since 1970 as its day in a zone, UTC where none is set, and whether it is later."""
    local = ZoneInfo(zone) if zone else UTC

    def read(value: int) -> tuple[int, bool]:
        unit = next((unit for unit in (1, 10**3, 10**6) if abs(value) < MAX_UNIX_SECONDS * unit), 10**9)
        seconds, rest = divmod(value, unit)
        if not MIN_UNIX_SECONDS <= seconds < END_UNIX_SECONDS:
            return MISSING_DAY, False
        day, late = _find_local_day(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds), local)
        return day, late or rest > 0

    return read


def _find_local_day(instant: datetime, zone: tzinfo) -> tuple[int, bool]:
    """Return the day of an instant in a zone, and whether it is later than that day's midnight."""
    local = instant.astimezone(zone)
    return (local.date() - EPOCH).days, local.time() != time()


def _number_day(year: int, month: int, day: int) -> int:
    """Return a day number; `MISSING_DAY` where the calendar has no such day."""
    try:
        return (date(year, month, day) - EPOCH).days if MIN_YEAR <= year <= MAX_YEAR else MISSING_DAY
    except ValueError:
        return MISSING_DAY


def _parse_days(
    table: Table, column: pa.ChunkedArray, name: str, audit: Audit, timed: bool
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Parse text dates; a file has few distinct ones, so each is parsed once."""
    from ..table import encode_words

    codes, words = encode_words(column)
    if words and all(_is_count(word.strip()) for word in words):
        numbers = pc.utf8_trim_whitespace(column.cast(pa.string())).cast(pa.int64())
        return _read_numbered_days(table, numbers, name, audit, timed)
    texts = [parse_date(word.strip()) for word in words]
    if _refuse_mixed(texts, codes, name, audit):
        return _no_days(column)
    order = _decide_order([text for text in texts if text and text.in_doubt], table.reading.dates, name, audit)
    zone = table.reading.time_zone
    stamps = [text for text in texts if text is not None]
    whole = bool(stamps) and all(text.zone and _read_clock(text.time) == timedelta(0) for text in stamps)
    reader = _DayReader(order, zone, timed, as_written=whole and not zone)
    read = [reader.read(word, text) for word, text in zip(words, texts, strict=True)]
    if whole:
        _check_written(reader, texts, [day for day, _, _ in read], name, audit)
    days = np.array([day for day, _, _ in read] + [MISSING_DAY])
    late = np.array([after for _, after, _ in read] + [False])
    problems = [problem for _, _, problem in read] + ["the cell is empty"]
    for need in (ZONED, TIMED):
        asking = np.array([problem.endswith(need) for problem in problems])
        _ask_for_zone(np.flatnonzero(asking[codes]), [problems[code] for code in codes[asking[codes]][:1]], name, audit)
        problems = ["" if asks else problem for asks, problem in zip(asking, problems, strict=True)]
    bad = np.array([bool(problem) for problem in problems])
    if bad[:-1].any() or (len(codes) and codes.min() < 0):
        audit.add_rows(name, np.flatnonzero(bad[codes]), lambda row: problems[int(codes[row])])
    if zone and any(text.zone for text in stamps):
        audit.notes.append(f"{name}: the day in {zone}")
    audit.within_day |= bool(late.any()) and len(texts) > len({day for day, _, _ in read})
    return days[codes], late[codes]


def _refuse_mixed(texts: Sequence[DateText | None], codes: NDArray[np.int64], name: str, audit: Audit) -> bool:
    """Add a finding where some dates have the year first and others last; return whether there is one."""
    first = [text is not None and text.text[:4].isdigit() for text in texts]
    last = [text is not None and text.in_doubt for text in texts]
    if not any(first) or not any(last):
        return False
    parts = []
    for chosen, what in ((first, "dates with the year first"), (last, "with the year last")):
        rows = np.flatnonzero(np.array([*chosen, False])[codes])
        text = texts[codes[rows[0]]]
        parts.append(f"{len(rows):,} {what} (row {audit.numbers[rows[0]]}: {text.text if text else ''!r})")
    audit.add(Finding(0, name, f"{' and '.join(parts)}: {SPREADSHEET}"))
    return True


def _check_written(
    reader: _DayReader, texts: Sequence[DateText | None], days: Sequence[int], name: str, audit: Audit
) -> None:
    """Note that midnights are the days that are written, or refuse a zone that makes other days of them."""
    if reader.as_written:
        audit.notes.append(f"{name}: {AS_WRITTEN}")
        return
    for text, day in zip(texts, days, strict=True):
        if text and day not in (reader.find_written(text), MISSING_DAY) and not reader.timed:
            return _refuse_zone(text.text, EPOCH + timedelta(days=day), reader.zone, name, audit)


def _is_count(word: str) -> bool:
    """Return whether a text is a whole number that is no compact date, and that a column of numbers can hold."""
    return bool(WHOLE.fullmatch(word)) and not COMPACT.fullmatch(word) and abs(int(word)) <= MAX_COUNT


def parse_date(text: str) -> DateText | None:
    """Return the parts of a date; None if the text is none."""
    if match := YEAR_FIRST.fullmatch(text):
        year, _, month, day, time, zone = match.groups()
        return DateText(text, int(year), int(month), int(day), time or "", zone or "")
    if match := COMPACT.fullmatch(text):
        return DateText(text, int(match[1]), int(match[2]), int(match[3]))
    if match := YEAR_LAST.fullmatch(text):
        one, _, two, year, time, zone = match.groups()
        short = len(year) == 2
        full = int(year) + (0 if not short else 1900 if int(year) >= PIVOT_YEAR else 2000)
        return DateText(text, full, int(two), int(one), time or "", zone or "", in_doubt=True, short_year=short)
    return _parse_month_name(text)


def _parse_month_name(text: str) -> DateText | None:
    """Return the parts of a date with the English name of its month."""
    if match := DAY_NAME_YEAR.fullmatch(text):
        day, name, year, time, zone = match.groups()
    elif match := NAME_DAY_YEAR.fullmatch(text):
        name, day, year, time, zone = match.groups()
    else:
        return None
    months = [number for number, month in enumerate(MONTHS, 1) if month.startswith(name.lower())]
    return DateText(text, int(year), months[0], int(day), time or "", zone or "") if len(months) == 1 else None


def _decide_order(doubts: Sequence[DateText], stated: str, name: str, audit: Audit) -> str:
    """Return day_first or month_first for a column whose dates have the year last; empty where nothing decides."""
    if not doubts:
        return ""
    if stated in ("day_first", "month_first"):
        audit.notes.append(f"{name}: {stated}")
        return stated
    short = next((text for text in doubts if text.short_year), None)
    days = next((text for text in doubts if text.day > 12), None)
    months = next((text for text in doubts if text.month > 12), None)
    if short is not None:
        audit.ask(name, f"{short.text!r} has a year of two digits: say dates: day_first or dates: month_first")
    elif days and months:
        what = f"{days.text!r} begins with the day and {months.text!r} with the month"
        advice = f"no order fits the whole column: write all dates alike ({WRITE_ISO})"
        audit.add(Finding(0, name, f"{what}: {advice}"))
    elif not days and not months:
        text = next((text for text in doubts if text.day != text.month), None)
        if text is None:  # 01/01/2018 is the same day in either order
            return "day_first"
        one, two = f"{text.day} {_month(text.month)}", f"{text.month} {_month(text.day)}"
        what = f"{text.text!r} is {one} or {two}, and no date of the column decides"
        audit.ask(name, f"{what}: say dates: day_first or dates: month_first")
    else:
        decider = days or months
        order = "day_first" if days else "month_first"
        audit.notes.append(f"{name}: {order}, as {decider.text!r} shows" if decider else "")
        return order
    return ""


def _month(number: int) -> str:
    return MONTHS[number - 1].capitalize() if 1 <= number <= 12 else str(number)


@dataclass(frozen=True)
class _DayReader:
    """Reads dates whose order is known, in the exchange's zone; `timed` ones need no zone for a time of day.

    With `as_written`, all are midnights in zones of their own.
    """

    order: str
    zone: str
    timed: bool
    as_written: bool = False

    def find_written(self, text: DateText) -> int:
        """Return the number of the day that a text names, whatever its zone; `MISSING_DAY` where there is none."""
        swapped = self.order == "month_first" and text.in_doubt
        month, day = (text.day, text.month) if swapped else (text.month, text.day)
        return _number_day(text.year, month, day)

    def read(self, word: str, text: DateText | None) -> tuple[int, bool, str]:
        """Return the day number, whether the text is later than its midnight, and what is wrong with it."""
        if text is None:
            return MISSING_DAY, False, f"{quote_cell(word)} is not a date: {WRITE_ISO}"
        if text.in_doubt and not self.order:
            return MISSING_DAY, False, ""  # the column as a whole has its finding
        number = self.find_written(text)
        if number == MISSING_DAY:
            order = f" with {self.order}" if text.in_doubt else ""
            return MISSING_DAY, False, f"{word!r} is not a day of the calendar{order}"
        clock = _read_clock(text.time)
        if clock is None:
            return MISSING_DAY, False, f"{word!r} has no time of day: hours are 00 to 23, minutes and seconds 00 to 59"
        if text.zone and not self.as_written:
            return _read_instant(word, _start_of(number) + clock, text, self.zone)
        late = bool(clock)
        if late and not self.zone and not self.timed:
            return MISSING_DAY, False, f"{word!r} {TIMED}"
        return number, late, ""


def _start_of(day: int) -> datetime:
    return datetime.combine(EPOCH + timedelta(days=day), time(), UTC)


def _read_clock(clock: str) -> timedelta | None:
    """Return the time since midnight that a text such as 17:30:05.25 or 5:30 PM names; None if it is no time."""
    half = clock[-2:].upper() if clock[-1:] in "Mm" and clock else ""
    hours, minutes, *seconds = (float(part) for part in (clock.rstrip("AMPamp ") or "0:0").split(":"))
    if hours >= 24 or minutes >= 60 or sum(seconds) >= 60:
        return None
    if half:
        hours = hours % 12 + (12 if half == "PM" else 0)
    return timedelta(hours=hours, minutes=minutes, seconds=sum(seconds))


def _read_instant(word: str, clock: datetime, text: DateText, zone: str) -> tuple[int, bool, str]:
    """Return the day of an instant in the exchange's zone, as `_DayReader.read`; `clock` is without its offset."""
    if not zone:
        return MISSING_DAY, False, f"{word!r} {ZONED}"
    offset = _read_offset(text.zone)
    if offset is None or text.time.upper().endswith("M"):
        return MISSING_DAY, False, f"{word!r} is zoned by a word: write the offset from UTC, such as -05:00"
    if abs(offset) > MAX_OFFSET:
        return MISSING_DAY, False, f"{word!r} has no offset from UTC: it is at most 14 hours, such as -05:00"
    return *_find_local_day(clock - offset, ZoneInfo(zone)), ""


def _read_offset(zone: str) -> timedelta | None:
    """Return the offset from UTC that a text names, a huge one if its minutes are none; None for a word such as EST."""
    if zone.upper() in ("Z", "UTC", "GMT"):
        return timedelta(0)
    if not zone[0] in "+-":
        return None
    digits = zone[1:].replace(":", "")
    hours, minutes = int(digits[:2]), int(digits[2:])
    size = timedelta(hours=hours, minutes=minutes) if minutes < 60 else 2 * MAX_OFFSET
    return size if zone[0] == "+" else -size
