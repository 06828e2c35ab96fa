"""The first visible sheet of an Excel workbook as a table, read by openpyxl (the extra `excel`)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...extras import install_hint
from ...ledger.files import check_given
from ..errors import format_count, unusable_error
from ..table import RawTable
from .days import parse_date
from .text_file import (
    HEADER_LINES,
    SAMPLE_LINES,
    count_header_rows,
    is_known_name,
    read_labels,
    refuse_late_header,
)

SAVE_HINT = (
    "Save the sheet as text: in Excel by File, Save As, 'CSV UTF-8 (Comma delimited)', in LibreOffice by File, "
    "Save As, 'Text CSV'; semicolons, decimal commas and dates such as 31.12.2015 are read."
)


def read_workbook(path: Path, words: Collection[str] = ()) -> RawTable:
    """Return the first visible sheet of a workbook; empty rows are skipped, and a formula is its last value.

    `words` are further names of columns.

    Raises
    ------
    PanelError
        openpyxl is not installed, or the file is no workbook; or its first visible sheet is empty, has formulas without
        a value, or a column of dates and of dates as text.
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
        sheet, notes = _choose_sheet(path, book.worksheets)
        rows = [(place, row) for place, row in enumerate(sheet.iter_rows(values_only=True)) if any(map(_is_there, row))]
    finally:
        book.close()
    if any(not _is_there(cell) for _, row in rows for cell in row) or not rows:
        _refuse_formulas(path, sheet.title)
    if not rows:
        raise unusable_error(path, f"its sheet {sheet.title!r} is empty", "Put the prices on the first sheet.")
    width = max(len(row) for _, row in rows)
    cells = [[*row, *[None] * (width - len(row))] for _, row in rows]
    header = [["" if cell is None else str(cell).strip() for cell in row] for row in cells[:HEADER_LINES]]
    filled = [_fill_merged(header[0]), *header[1:]]
    header = filled if count_header_rows(filled) > 1 else header
    depth = count_header_rows(header)
    if depth == 1:
        texts = [["" if cell is None else str(cell) for cell in row] for row in cells[:SAMPLE_LINES]]
        refuse_late_header(path, texts, [place + 1 for place, _ in rows], words)
        _refuse_notes(path, book.worksheets, texts[0], words)
    columns = list(zip(*cells[depth:], strict=True)) if len(cells) > depth else [()] * width
    numbers = np.array([place - rows[depth - 1][0] for place, _ in rows[depth:]], np.int64)
    labels = read_labels(header[:depth])
    for label, column in zip(labels, columns, strict=True):
        _refuse_mixed_dates(path, " ".join(filter(None, label)), column, numbers)
    return RawTable(path, labels, tuple(map(_make_column, columns)), numbers, from_text=True, notes=notes)


def _choose_sheet(path: Path, sheets: Sequence[Any]) -> tuple[Any, tuple[str, ...]]:
    """Return the first visible sheet, and a note where there are others."""
    visible = [sheet for sheet in sheets if sheet.sheet_state == "visible"]
    if not visible:
        raise unusable_error(path, "none of its sheets is visible", "Show the sheet of the prices, and save the file.")
    hidden = [repr(sheet.title) for sheet in sheets if sheet.sheet_state != "visible"]
    note = f"sheet: {visible[0].title!r}, the first of {len(visible)}" if len(sheets) > 1 else ""
    note += f"; not read, since hidden: {', '.join(hidden)}" if hidden else ""
    return visible[0], (note,) if note else ()


def _refuse_notes(path: Path, sheets: Sequence[Any], header: Sequence[str], words: Collection[str]) -> None:
    """Refuse a first sheet that names no field where another sheet may have the prices."""
    first, *others = [repr(sheet.title) for sheet in sheets if sheet.sheet_state == "visible"]
    if others and not any(is_known_name(cell, words) for cell in header):
        what = f"its first sheet, {first}, names no column such as date or close; it also has {', '.join(others[:3])}"
        raise unusable_error(path, what, "Move the sheet of the prices to the first place, and save the file.")


def _refuse_formulas(path: Path, title: str) -> None:
    """Refuse formulas whose value the file does not have: their cells would be missing data."""
    import openpyxl

    valued, plain = (openpyxl.load_workbook(path, read_only=True, data_only=only) for only in (True, False))
    try:
        pairs = zip(valued[title].iter_rows(), plain[title].iter_rows(), strict=True)
        bare = [
            cell.coordinate
            for values, cells in pairs
            for value, cell in zip(values, cells, strict=True)
            if cell.data_type == "f" and not _is_there(value.value)
        ]
    finally:
        valued.close()
        plain.close()
    if bare:
        what = f"{format_count(len(bare), 'formula')} without a stored value, first in {bare[0]} of {title!r}"
        raise unusable_error(path, what, "Open the workbook in the spreadsheet program, and save it.")


def _refuse_mixed_dates(path: Path, name: str, cells: Sequence[Any], numbers: NDArray[np.int64]) -> None:
    """Refuse a column of dates and of dates as text: the program read some, perhaps with day and month swapped."""
    typed = [place for place, cell in enumerate(cells) if isinstance(cell, date)]
    texts = [place for place, cell in enumerate(cells) if isinstance(cell, str) and parse_date(cell.strip())]
    if not typed or not texts:
        return
    first, other = texts[0], typed[0]
    what = (
        f"{name}: {format_count(len(typed), 'cell')} with a date (row {numbers[other]}: {_write(cells[other])}) and "
        f"{len(texts):,} with a date as text (row {numbers[first]}: {cells[first]!r})"
    )
    hint = (
        "The spreadsheet program has read some dates and not others, perhaps with day and month swapped: import the "
        "column again as text, from its source, or give the source itself as CSV."
    )
    raise unusable_error(path, what, hint)


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
