"""Tables that a person names: their rows with the line of each, and every mistake at once."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import DeskError

if TYPE_CHECKING:
    from ...ledger import Mistake

TableRow = dict[str, Any]
MAX_MISTAKES_SHOWN = 20
MAX_CELL_SHOWN = 40
MAX_WEIGHT = 100.0
"""Largest share of equity; a larger one is a mistake."""


def read_table_file(file: Path, columns: Sequence[str], field: str) -> list[tuple[int, TableRow]]:
    """Return the rows of a CSV, Parquet or JSON table with their lines; of Parquet and JSON the number of the row.

    Parameters
    ----------
    columns
        Columns that it must have.
    field
        What the command calls the file.
    """
    from ...ledger.files import read_given, read_given_text

    try:
        if file.suffix == ".parquet":
            rows = list(enumerate(_read_parquet(read_given(file)), 1))
        elif file.suffix == ".json":
            rows = list(enumerate(_read_json(read_given_text(file, "utf-8-sig")), 1))
        else:
            rows = list(_read_csv(read_given_text(file, "utf-8-sig")))
    except (csv.Error, ValueError, RecursionError) as error:
        raise _table_error(file, field, str(error)[:100], "a table as .csv in UTF-8, .parquet or .json") from error
    missing = [name for name in columns if not rows or name not in rows[0][1]]
    if missing:
        got = f"columns {', '.join(map(str, rows[0][1]))}" if rows else "no rows"
        raise _table_error(file, field, got, f"a table with the columns {', '.join(columns)}")
    return rows


def _table_error(file: Path, field: str, got: str, allowed: str) -> DeskError:
    return DeskError(f"{file} cannot be read as a table.", field=field, got=got, allowed=allowed, code="table")


def _read_csv(text: str) -> Iterator[tuple[int, TableRow]]:
    """Yield the rows with their lines; a cell that was escaped for spreadsheets is read as it was."""
    from ...ledger.calls import escape_formula

    reader = csv.DictReader(io.StringIO(text))
    names = list(reader.fieldnames or ())
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"the column {doubled[0]} is there twice")
    for row in reader:
        if None in row:
            raise ValueError(f"line {reader.line_num} has more cells than the header")
        cells = {name: cell or "" for name, cell in row.items()}
        yield (
            reader.line_num,
            {
                name: cell[1:] if cell[:1] == "'" and escape_formula(cell[1:]) == cell else cell
                for name, cell in cells.items()
            },
        )


def _read_parquet(body: bytes) -> list[TableRow]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows: list[TableRow] = pq.read_table(pa.BufferReader(body)).to_pylist()
    except pa.ArrowException as error:
        raise ValueError(str(error)) from error
    return rows


def _read_json(text: str) -> list[TableRow]:
    rows = json.loads(text)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("it is not a list of objects")
    return rows


class MistakeList:
    """Collects what is wrong with the rows of a table."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._found: list[Mistake] = []

    def read(self, line: int, row: TableRow, name: str, parse: Callable[[Any], Any]) -> Any:
        """Return the value of a cell; note a mistake, and return None, where `parse` raises a `ValueError`."""
        try:
            return parse(row.get(name))
        except ValueError as error:
            self.add(line, name, f"{error}, got {str(row.get(name))[:MAX_CELL_SHOWN]!r}")
            return None

    def add(self, line: int, name: str, message: str) -> None:
        """Note a mistake."""
        from ...ledger import Mistake

        self._found.append(Mistake(name, message, line))

    def refuse(self) -> None:
        """Raise an error with every mistake, if there is one; of many the first."""
        from ...ledger import Mistake
        from ...ledger.files import mistakes_error

        more = len(self._found) - MAX_MISTAKES_SHOWN
        rest = [Mistake("", f"and {more} more mistakes after these", 10**9)] if more > 0 else []
        if self._found:
            raise mistakes_error(str(self._file), [*self._found[:MAX_MISTAKES_SHOWN], *rest])


def parse_text_cell(value: Any) -> str:
    """Return a text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("must be a text that is not empty")
    return value.strip()


def parse_weight_cell(value: Any) -> float:
    """Return a share of equity, negative for short."""
    return parse_number_cell(value, -MAX_WEIGHT, MAX_WEIGHT)


def parse_number_cell(value: Any, least: float, most: float) -> float:
    """Return a finite number within bounds."""
    expected = f"must be a number from {least:g} to {most:g}"
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError) as error:
        raise ValueError(expected) from error
    if not least <= number <= most:
        raise ValueError(expected)
    return number
