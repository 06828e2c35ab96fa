"""A price or sector file as a table of columns, with the number that each row has in the file."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
from numpy.typing import NDArray

from ...ledger.files import check_given
from ..errors import Finding, refuse_missing, unusable_error

ROW_NUMBERS = re.compile(r"__index_level_\d+__")
"""Columns in which pandas stores an unnamed index: where a row stood, which is no fact of the market."""
TABLE_SUFFIXES = (".parquet", ".csv")
COLUMN_SYNONYMS = {
    "symbol": ("ticker", "code", "sym", "instrument", "stock", "asset", "name", "secid"),
    "date": ("day", "datetime", "time", "timestamp", "trade_date", "tradedate"),
    "volume": ("vol", "shares", "turnover_volume"),
    "close": ("adj_close", "adj close", "adjclose", "last", "price", "px_last"),
    "sector": ("gics_sector", "gics sector", "industry", "group"),
}


@dataclass(frozen=True)
class Table:
    """Holds the columns of a file, and the 1-based data row that each row of them has in the file.

    Names are in lower case; `clashes` are names that occur twice, `broken` the rows that have too few or too many cells.
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
    """Read a Parquet or CSV file; what makes it unreadable as a whole is a PanelError with that one finding."""
    suffix = path.suffix.lower()
    if path.is_dir():
        raise unusable_error(path, "a panel is a Parquet or a CSV file; this is a folder")
    if suffix not in TABLE_SUFFIXES:
        found = f", not {suffix!r}" if suffix else "; this name has no extension"
        raise unusable_error(path, f"a panel is a Parquet or a CSV file{found}")
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


def missing_columns(table: Table, required: tuple[str, ...]) -> list[Finding]:
    """Return a finding for each required column that the file lacks, with the column that was probably meant."""
    found = list(table.columns)
    findings = []
    for name in required:
        if name in table.columns:
            continue
        meant = [other for other in found if other in COLUMN_SYNONYMS.get(name, ()) and other not in required]
        meant = meant or [other for other in difflib.get_close_matches(name, found, n=1) if other not in required]
        guess = f"; rename {meant[0]!r} to {name!r} if that is it" if meant else ""
        findings.append(Finding(0, name, f"the column is missing{guess}"))
    if findings and len(found) == 1 and any(mark in found[0] for mark in ";\t|"):
        findings.append(Finding(0, "", "the whole header is one column: separate the columns with commas"))
    return findings


def _read_parquet(path: Path) -> Table:
    """Read a Parquet file as it is typed."""
    table = pa_parquet.ParquetFile(path).read()  # unlike read_table, this does not import pandas
    columns, clashes = _columns_by_name(table)
    return Table(path, columns, np.arange(1, table.num_rows + 1), from_text=False, clashes=clashes)


def _read_csv(path: Path) -> Table:
    """Read a CSV file as text, so that every cell can be judged, and note the rows of a wrong length."""
    broken: list[Finding] = []

    def note(row: pa_csv.InvalidRow) -> str:
        what = f"{row.actual_columns} cells where the header has {row.expected_columns}"
        broken.append(Finding((row.number or 2) - 1, "", what))
        return "skip"

    header = pa_csv.open_csv(path, parse_options=pa_csv.ParseOptions(invalid_row_handler=lambda _: "skip")).schema.names
    table = pa_csv.read_csv(
        path,
        read_options=pa_csv.ReadOptions(use_threads=False),  # only then does Arrow number the broken rows
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
    """Return the first line of a library's message."""
    return str(problem).splitlines()[0].rstrip(".") if str(problem) else type(problem).__name__
