"""A Parquet or CSV file as a table of columns, and its cells as day numbers, symbol codes and floats.

Each row keeps its number in the file. A cell that cannot be read as what its column holds is a finding.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
from numpy.typing import NDArray

from ..ledger.files import check_given
from .errors import Audit, Finding, refuse_missing, unusable_error

ROW_NUMBERS = re.compile(r"__index_level_\d+__")
"""Columns in which pandas stores an unnamed index; they are dropped."""
TABLE_SUFFIXES = (".parquet", ".csv")
COLUMN_SYNONYMS = {
    "symbol": ("ticker", "code", "sym", "instrument", "stock", "asset", "name", "secid"),
    "date": ("day", "datetime", "time", "timestamp", "trade_date", "tradedate"),
    "volume": ("vol", "shares", "turnover_volume"),
    "close": ("adj_close", "adj close", "adjclose", "last", "price", "px_last"),
    "sector": ("gics_sector", "gics sector", "industry", "group"),
}
MISSING_DAY = np.iinfo(np.int64).min
NAN_TEXTS = ("nan", "null", "none", "-", "--", "n/a", "na", "#n/a", "nat", "?", ".")
NAN_SYMBOLS = ("nan", "NaN", "null", "None", "NULL", "-", "N/A", "#N/A")
ISO_DAY = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)\s*(Z|[A-Za-z]{3,}|[-+]\d{2}:?\d{2})?)?"
)
NUMBER_PATTERN = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"
PLACEHOLDER = "it is text, not a number: leave the cell empty where a value is missing"


@dataclass(frozen=True)
class Table:
    """The columns of a file, by name in lower case, and the data row (from 1) of each row.

    `clashes` are names that occur twice, `broken` the rows with too few or too many cells.
    """

    path: Path
    columns: dict[str, pa.ChunkedArray]
    row_numbers: NDArray[np.int64]
    from_text: bool
    clashes: tuple[Finding, ...] = ()
    broken: tuple[Finding, ...] = ()

    @property
    def rows(self) -> int:
        """Return the number of rows that could be read."""
        return len(self.row_numbers)


def read_table(path: Path) -> Table:
    """Read a Parquet or CSV file.

    Raises
    ------
    PanelError
        With one finding: why the file as a whole cannot be read.
    """
    suffix = path.suffix.lower()
    if path.is_dir():
        raise unusable_error(path, "a panel is a Parquet or a CSV file; this is a folder")
    if suffix not in TABLE_SUFFIXES:
        difference = f", not {suffix!r}" if suffix else "; this name has no extension"
        raise unusable_error(path, f"a panel is a Parquet or a CSV file{difference}")
    refuse_missing(path)
    try:
        check_given(path)
        return _read_csv(path) if suffix == ".csv" else _read_parquet(path)
    except (pa.ArrowInvalid, pa.ArrowKeyError) as problem:
        if "Empty CSV" in str(problem):
            raise unusable_error(path, "the file is empty") from None
        kind = "CSV" if suffix == ".csv" else "Parquet"
        raise unusable_error(path, f"it cannot be read as {kind}: {_first_line(problem)}") from None
    except OSError as problem:
        raise unusable_error(path, f"it cannot be read: {problem.strerror or _first_line(problem)}") from None


def find_missing_columns(table: Table, required: tuple[str, ...]) -> list[Finding]:
    """Return a finding for each required column that the file lacks, with the column probably meant."""
    present = list(table.columns)
    findings = []
    for name in required:
        if name in table.columns:
            continue
        synonyms = [other for other in present if other in COLUMN_SYNONYMS.get(name, ()) and other not in required]
        meant = synonyms or [other for other in difflib.get_close_matches(name, present, n=1) if other not in required]
        guess = f"; rename {meant[0]!r} to {name!r} if that is it" if meant else ""
        findings.append(Finding(0, name, f"the column is missing{guess}"))
    if findings and len(present) == 1 and any(mark in present[0] for mark in ";\t|"):
        findings.append(Finding(0, "", "the whole header is one column: separate the columns with commas"))
    return findings


def _read_parquet(path: Path) -> Table:
    table = pa_parquet.ParquetFile(path).read()  # unlike read_table, this does not import pandas
    columns, clashes = _columns_by_name(table)
    return Table(path, columns, np.arange(1, table.num_rows + 1), from_text=False, clashes=clashes)


def _read_csv(path: Path) -> Table:
    """Read a CSV file as text, so that every cell can be checked, and collect the rows of a wrong length."""
    broken: list[Finding] = []

    def note(row: pa_csv.InvalidRow) -> str:
        what = f"{row.actual_columns} cells where the header has {row.expected_columns}"
        broken.append(Finding((row.number or 2) - 1, "", what))
        return "skip"

    header = pa_csv.open_csv(path, parse_options=pa_csv.ParseOptions(invalid_row_handler=lambda _: "skip")).schema.names
    table = pa_csv.read_csv(
        path,
        read_options=pa_csv.ReadOptions(use_threads=False),  # Arrow numbers the broken rows only without threads
        parse_options=pa_csv.ParseOptions(invalid_row_handler=note),
        convert_options=pa_csv.ConvertOptions(column_types={name: pa.string() for name in header}),
    )
    skipped = [finding.row - 1 for finding in broken]
    numbers = np.delete(np.arange(1, table.num_rows + len(broken) + 1), skipped)
    columns, clashes = _columns_by_name(table)
    return Table(path, columns, numbers, from_text=True, clashes=clashes, broken=tuple(broken))


def _columns_by_name(table: pa.Table) -> tuple[dict[str, pa.ChunkedArray], tuple[Finding, ...]]:
    """Return the columns by name in lower case, and a finding for each name that occurs twice."""
    columns: dict[str, pa.ChunkedArray] = {}
    clashes = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        plain = name.strip().removeprefix("\ufeff").lower()
        if ROW_NUMBERS.fullmatch(plain):
            continue
        if plain in columns:
            clashes.append(Finding(0, plain, "the column is there twice"))
        columns[plain] = column
    return columns, tuple(clashes)


def _first_line(problem: Exception) -> str:
    return str(problem).splitlines()[0].rstrip(".") if str(problem) else type(problem).__name__


def read_days(table: Table, name: str, audit: Audit) -> NDArray[np.int64]:
    """Return each row's day number (days since 1970-01-01), `MISSING_DAY` where the cell is not a plain date."""
    column = table.columns[name]
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        what = f"{column[0].as_py()} is zoned ({kind.tz}), as is the whole column: a panel's dates are exchange days"
        audit.add(Finding(int(audit.numbers[0]), name, f"{what} without a time zone"))
        return np.full(table.rows, MISSING_DAY)
    if _is_text(kind):
        return _parse_days(column, name, audit)
    if not (pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
        audit.add(Finding(0, name, f"the column holds {kind}, not dates"))
        return np.full(table.rows, MISSING_DAY)
    return _read_typed_days(column, name, audit)


def read_symbols(table: Table, name: str, audit: Audit) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return each row's code `[rows]` and the sorted symbols that the codes stand for; -1: empty or invalid."""
    column = table.columns[name]
    if not _is_text(column.type):
        audit.add(Finding(0, name, f"the column holds {column.type}, not text (leading zeros of a code would be lost)"))
        return np.full(table.rows, -1), ()
    codes, words = _encode_words(column)
    problems = {code: _explain_bad_symbol(word) for code, word in enumerate(words)}
    bad = np.array([bool(problems[code]) for code in range(len(words))] + [True])
    problems[-1] = "the cell is empty"
    audit.add_rows(name, np.flatnonzero(bad[codes]), lambda row: problems[int(codes[row])])
    used = sorted(word for code, word in enumerate(words) if not bad[code])
    place = {word: code for code, word in enumerate(used)}
    renumber = np.array([place.get(word, -1) for word in words] + [-1])
    return renumber[codes], tuple(used)


def read_numbers(table: Table, name: str, audit: Audit) -> NDArray[np.float64]:
    """Return a column as floats `[rows]`; NaN where the cell is empty, or not a number (a finding)."""
    column = table.columns[name]
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(table.rows, np.nan)
    if _is_text(kind):
        if not table.from_text:
            audit.add(Finding(0, name, f"the column holds {kind}, not numbers: store it as float"))
        return _parse_numbers(column, name, audit)
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        audit.add(Finding(0, name, f"the column holds {kind}, not numbers"))
        return np.full(table.rows, np.nan)
    return np.array(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)


def _parse_numbers(column: pa.ChunkedArray, name: str, audit: Audit) -> NDArray[np.float64]:
    """Parse text cells; 'NaN' and the like are findings of their own kind."""
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


def _read_typed_days(column: pa.ChunkedArray, name: str, audit: Audit) -> NDArray[np.int64]:
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


def _parse_days(column: pa.ChunkedArray, name: str, audit: Audit) -> NDArray[np.int64]:
    """Parse text dates; a file has few distinct ones, so each is parsed once."""
    codes, words = _encode_words(column)
    parsed = [_parse_day(word) for word in words]
    days = np.array([day for day, _ in parsed] + [MISSING_DAY])
    problems = [problem for _, problem in parsed] + ["the cell is empty"]
    bad = np.array([bool(problem) for problem in problems])
    audit.add_rows(name, np.flatnonzero(bad[codes]), lambda row: problems[int(codes[row])])
    return days[codes]


def _parse_day(text: str) -> tuple[int, str]:
    """Return the day number of a text, or `MISSING_DAY` and what is wrong with the text."""
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


def _explain_bad_symbol(word: str) -> str:
    """Return what is wrong with a symbol; empty if nothing is."""
    if word in NAN_SYMBOLS:
        return f"{word!r} is a missing value written as text, not a symbol"
    return f"{word!r} has white space around it" if word != word.strip() else ""


def _encode_words(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], list[str]]:
    """Return each row's code and the distinct words in order of appearance; -1 where the cell is empty."""
    text = column.cast(pa.string())
    encoded = pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text).dictionary_encode().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0) if encoded.num_chunks else pa.array([], pa.string()).dictionary_encode()
    codes = pc.fill_null(encoded.indices.cast(pa.int64()), -1).to_numpy()
    return np.array(codes, dtype=np.int64), encoded.dictionary.to_pylist()


def _is_text(kind: pa.DataType) -> bool:
    """Return whether a column holds text, dictionary-encoded or not."""
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
