"""The first sheet of an Excel workbook as a table, read by openpyxl (the extra `excel`)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pyarrow as pa

from ...extras import install_hint
from ...ledger.files import check_given
from ..errors import unusable_error
from ..table import RawTable
from .text_file import HEADER_LINES, count_header_rows, read_labels

SAVE_HINT = (
    "Save the sheet as text: in Excel by File, Save As, 'CSV UTF-8 (Comma delimited)', in LibreOffice by File, "
    "Save As, 'Text CSV'; semicolons, decimal commas and dates such as 31.12.2015 are read."
)


def read_workbook(path: Path) -> RawTable:
    """Return the first sheet of a workbook; empty rows are skipped, and a formula is its last value.

    Raises
    ------
    PanelError
        openpyxl is not installed, or the file is no workbook, or its first sheet is empty.
    """
    try:
        import openpyxl
    except ImportError:
        hint = f"{SAVE_HINT} Workbooks are read where openpyxl is installed: {install_hint('excel')}."
        raise unusable_error(path, "a panel is a Parquet or a CSV file; this is a workbook", hint) from None
    check_given(path)
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except (BadZipFile, KeyError, ValueError, EOFError):
        raise unusable_error(path, "it cannot be read as a workbook", SAVE_HINT) from None
    try:
        sheet = book.worksheets[0]
        rows = [(place, row) for place, row in enumerate(sheet.iter_rows(values_only=True)) if any(map(_is_there, row))]
        notes = [f"sheet: {sheet.title!r}, the first of {len(book.worksheets)}"] if len(book.worksheets) > 1 else []
    finally:
        book.close()
    if not rows:
        raise unusable_error(path, "its first sheet is empty", "Put the prices on the first sheet.")
    width = max(len(row) for _, row in rows)
    cells = [[*row, *[None] * (width - len(row))] for _, row in rows]
    header = [["" if cell is None else str(cell).strip() for cell in row] for row in cells[:HEADER_LINES]]
    filled = [_fill_merged(header[0]), *header[1:]]
    header = filled if count_header_rows(filled) > 1 else header
    depth = count_header_rows(header)
    columns = zip(*cells[depth:], strict=True) if len(cells) > depth else [()] * width
    numbers = np.array([place - rows[depth - 1][0] for place, _ in rows[depth:]], np.int64)
    arrays = tuple(map(_make_column, columns))
    return RawTable(path, read_labels(header[:depth]), arrays, numbers, from_text=True, notes=tuple(notes))


def _fill_merged(cells: list[str]) -> list[str]:
    """Return a header row in which an empty cell repeats the one before: merged cells have their word in the first."""
    filled = cells[:1]
    for cell in cells[1:]:
        filled.append(cell or (filled[-1] if len(filled) > 1 else ""))
    return filled


def _is_there(cell: object) -> bool:
    return cell is not None and cell != ""


def _make_column(cells: Sequence[Any]) -> pa.ChunkedArray:
    """Return cells as numbers or as days where all are, else as text."""
    known = [cell for cell in cells if _is_there(cell)]
    if known and all(isinstance(cell, datetime) for cell in known):
        return pa.chunked_array([pa.array([cell or None for cell in cells], pa.timestamp("ms"))])
    if known and all(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in known):
        return pa.chunked_array([pa.array([cell if _is_there(cell) else None for cell in cells], pa.float64())])
    return pa.chunked_array([pa.array([_write(cell) if _is_there(cell) else None for cell in cells], pa.string())])


def _write(cell: Any) -> str:
    """Return a cell as the text that a CSV file would have."""
    if isinstance(cell, datetime) and (cell.hour, cell.minute, cell.second) == (0, 0, 0):
        return cell.date().isoformat()
    if isinstance(cell, date):
        return cell.isoformat(" ") if isinstance(cell, datetime) else cell.isoformat()
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
