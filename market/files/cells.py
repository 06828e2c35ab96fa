"""From the cells of a file to day numbers, symbol codes and floats; every cell that cannot be one is noted."""

from __future__ import annotations

import re
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..errors import Finding
from .findings import Audit
from .table import Table

MISSING_DAY = np.iinfo(np.int64).min
NAN_TEXTS = ("nan", "null", "none", "-", "--", "n/a", "na", "#n/a", "nat", "?", ".")
NAN_SYMBOLS = ("nan", "NaN", "null", "None", "NULL", "-", "N/A", "#N/A")
ISO_DAY = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)\s*(Z|[A-Za-z]{3,}|[-+]\d{2}:?\d{2})?)?"
)
NUMBER_PATTERN = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"
PLACEHOLDER = "it is text, not a number: leave the cell empty where a value is missing"


def read_days(table: Table, name: str, audit: Audit) -> NDArray[np.int64]:
    """Return each row's day number (days since 1970-01-01), MISSING_DAY where the cell is not a plain date."""
    column = table.columns[name]
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        what = f"{column[0].as_py()} is zoned ({kind.tz}), as is the whole column: a panel's dates are exchange days"
        audit.add(Finding(int(audit.numbers[0]), name, f"{what} without a time zone"))
        return np.full(table.rows, MISSING_DAY)
    if _is_text(kind):
        return _days_of_text(column, name, audit)
    if not (pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
        audit.add(Finding(0, name, f"the column holds {kind}, not dates"))
        return np.full(table.rows, MISSING_DAY)
    return _days_of_dates(column, name, audit)


def read_words(table: Table, name: str, audit: Audit) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return each row's code and the sorted words that the codes stand for; -1 where the cell is empty or no word."""
    column = table.columns[name]
    if not _is_text(column.type):
        audit.add(Finding(0, name, f"the column holds {column.type}, not text (leading zeros of a code would be lost)"))
        return np.full(table.rows, -1), ()
    codes, words = _encode(column)
    problems = {code: _word_problem(word) for code, word in enumerate(words)}
    bad = np.array([bool(problems[code]) for code in range(len(words))] + [True])
    problems[-1] = "the cell is empty"
    audit.add_rows(name, np.flatnonzero(bad[codes]), lambda row: problems[int(codes[row])])
    used = sorted(word for code, word in enumerate(words) if not bad[code])
    place = {word: code for code, word in enumerate(used)}
    renumber = np.array([place.get(word, -1) for word in words] + [-1])
    return renumber[codes], tuple(used)


def read_numbers(table: Table, name: str, audit: Audit) -> NDArray[np.float64]:
    """Return a column as floats `[rows]`: an empty cell is NaN, and so is a cell that is noted as no number."""
    column = table.columns[name]
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(table.rows, np.nan)
    if _is_text(kind):
        if not table.from_text:
            audit.add(Finding(0, name, f"the column holds {kind}, not numbers: store it as float"))
        return _numbers_of_text(column, name, audit)
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        audit.add(Finding(0, name, f"the column holds {kind}, not numbers"))
        return np.full(table.rows, np.nan)
    return np.array(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)


def _numbers_of_text(column: pa.ChunkedArray, name: str, audit: Audit) -> NDArray[np.float64]:
    """Parse text cells; 'NaN' and the like are noted as what they are."""
    text = pc.utf8_trim_whitespace(column.cast(pa.string()))
    text = pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)
    filled = pc.is_valid(text).to_numpy()
    try:
        values = np.array(text.cast(pa.float64()).to_numpy(), dtype=np.float64)
    except pa.ArrowInvalid:
        good = pc.match_substring_regex(text, NUMBER_PATTERN)
        values = np.array(pc.if_else(good, text, None).cast(pa.float64()).to_numpy(), dtype=np.float64)
    bad = np.flatnonzero(filled & ~np.isfinite(values))

    def describe(row: int) -> str:
        cell = text[row].as_py()
        return f"{cell!r}: {PLACEHOLDER}" if cell.lower() in NAN_TEXTS else f"{cell!r} is not a number"

    audit.add_rows(name, bad, describe)
    values[bad] = np.nan
    return values


def _days_of_dates(column: pa.ChunkedArray, name: str, audit: Audit) -> NDArray[np.int64]:
    """Read a typed column of dates or of timestamps without a zone."""
    days = column.cast(pa.date32(), safe=False)
    empty = pc.is_null(column).to_numpy()
    audit.add_rows(name, np.flatnonzero(empty), lambda row: "the cell is empty")
    if pa.types.is_timestamp(column.type):
        late = pc.fill_null(pc.not_equal(days.cast(column.type), column), False).to_numpy()
        audit.add_rows(
            name, np.flatnonzero(late), lambda row: f"{column[row].as_py()} has a time of day; a row is a whole day"
        )
    numbers = pc.fill_null(days.cast(pa.int32()).cast(pa.int64()), MISSING_DAY).to_numpy()
    return np.array(numbers, dtype=np.int64)


def _days_of_text(column: pa.ChunkedArray, name: str, audit: Audit) -> NDArray[np.int64]:
    """Parse text dates; a file has few different ones, so each is judged once."""
    codes, words = _encode(column)
    judged = [_day_of_text(word) for word in words]
    days = np.array([day for day, _ in judged] + [MISSING_DAY])
    problems = [problem for _, problem in judged] + ["the cell is empty"]
    bad = np.array([bool(problem) for problem in problems])
    audit.add_rows(name, np.flatnonzero(bad[codes]), lambda row: problems[int(codes[row])])
    return days[codes]


def _day_of_text(text: str) -> tuple[int, str]:
    """Return the day number of a text, or MISSING_DAY and what is wrong with it."""
    match = ISO_DAY.fullmatch(text)
    if match is None:
        return MISSING_DAY, f"{text!r} is not a date: write it as 2015-12-31"
    day, time, zone = match.groups()
    if zone:
        return MISSING_DAY, f"{text!r} is zoned: a panel's dates are exchange days without a time zone"
    if time and time.strip("0:."):
        return MISSING_DAY, f"{text!r} has a time of day; a row is a whole day"
    try:
        return int(np.datetime64(date.fromisoformat(day), "D").astype(np.int64)), ""
    except ValueError:
        return MISSING_DAY, f"{text!r} is not a day of the calendar"


def _word_problem(word: str) -> str:
    """Return what is wrong with a symbol, or nothing."""
    if word in NAN_SYMBOLS:
        return f"{word!r} is a missing value written as text, not a symbol"
    return f"{word!r} has white space around it" if word != word.strip() else ""


def _encode(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], list[str]]:
    """Return each row's code and the different words in order of appearance; -1 where the cell is empty."""
    text = column.cast(pa.string())
    encoded = pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text).dictionary_encode().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0) if encoded.num_chunks else pa.array([], pa.string()).dictionary_encode()
    codes = pc.fill_null(encoded.indices.cast(pa.int64()), -1).to_numpy()
    return np.array(codes, dtype=np.int64), encoded.dictionary.to_pylist()


def _is_text(kind: pa.DataType) -> bool:
    """Tell whether a column holds text, dictionary-encoded or not."""
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
