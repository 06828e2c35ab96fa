"""A Parquet or CSV file as columns of cells, and its symbols as codes.

Each row keeps its number in the file. A cell that cannot be read as what its column holds is a finding.
"""

from __future__ import annotations

import ast
import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
from numpy.typing import NDArray

from ..ledger.files import check_given, open_given
from .errors import Audit, Finding, quote_cell, refuse_missing, unusable_error
from .forms.arrays import decode_values, is_text, to_integers
from .forms.names import NUMBERED, ROW_NUMBERS, SAME_NAMES, UNNAMED, find_same
from .forms.plausible import suggest_columns
from .forms.text_file import TextForm, find_text_form
from .reading import AS_IT_STANDS, Reading

TEXT_SUFFIXES = (".csv", ".txt", ".tsv")
TABLE_SUFFIXES = (".parquet", *TEXT_SUFFIXES)
WORKBOOK_SUFFIXES = (".xlsx", ".xlsm")
OLD_WORKBOOK_SUFFIXES = (".xls", ".xlsb", ".ods", ".numbers")
OTHER_FILES = ("from", "to", "known", "period", "sector", "industry", "dividend", "split", "new_symbol")
"""Fields of the files beside the prices, whose columns the price table need not have."""
BLOCK_BYTES = 1 << 20
"""Bytes that Arrow reads at once by default."""
PARQUET_MARK = b"PAR1"
"""The first bytes of a Parquet file."""
NAN_SYMBOLS = ("nan", "NaN", "null", "None", "NULL", "-", "N/A", "#N/A")
WORD_CODES = pa.dictionary(pa.int32(), pa.string())


@dataclass(frozen=True, eq=False)
class RawTable:
    """The columns of a file as they come, and the data row (from 1) of each row.

    Attributes
    ----------
    path : Path
        The file, or what a message calls a table in memory.
    labels : tuple of tuple of str
        The header cells of each column, in the file's spelling: one, or two.
    arrays : tuple of pyarrow.ChunkedArray
        The cells of each column.
    row_numbers : NDArray[np.int64]
        The data row of each row.
    from_text : bool
        Whether cells may be text because the file knows nothing else.
    broken : tuple of Finding
        The rows with too few or too many cells.
    notes : tuple of str
        How the file is written, where that differs from UTF-8 with commas.
    """

    path: Path
    labels: tuple[tuple[str, ...], ...]
    arrays: tuple[pa.ChunkedArray, ...]
    row_numbers: NDArray[np.int64]
    from_text: bool
    broken: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """The columns of a file, by name in lower case, and the data row (from 1) of each row.

    `clashes` are names that occur twice and settings that do not fit, `broken` the rows with too few or too many cells.
    """

    path: Path
    columns: dict[str, pa.ChunkedArray]
    row_numbers: NDArray[np.int64]
    from_text: bool
    clashes: tuple[Finding, ...] = ()
    broken: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    reading: Reading = AS_IT_STANDS

    @property
    def rows(self) -> int:
        """Return the number of rows that could be read."""
        return len(self.row_numbers)


def read_table(path: Path, reading: Reading = AS_IT_STANDS) -> Table:
    """Read a Parquet or CSV file; the cells of a CSV file are text.

    Raises
    ------
    PanelError
        With one finding: why the file as a whole cannot be read.
    """
    return name_columns(read_raw_table(path, typed=False), reading)


def read_side_table(path: Path, reading: Reading) -> Table:
    """Read a file that stands beside the prices; `columns` of the settings counts as far as the file has them."""
    raw = read_raw_table(path, reading, typed=False)
    present = {label[0].strip().lower() for label in raw.labels}
    columns = {field: name for field, name in reading.columns.items() if name.strip().lower() in present}
    return name_columns(raw, reading.model_copy(update={"columns": columns}))


def open_side_table(path: Path, reading: Reading, required: Sequence[str]) -> tuple[Table, Audit]:
    """Return a file that stands beside the prices, with the audit of its rows; refuse it without its columns.

    Raises
    ------
    PanelError
        A required column is missing or there twice, or rows cannot be read.
    """
    table = read_side_table(path, reading)
    audit = Audit(table.row_numbers)
    audit.add(*table.clashes, *find_missing_columns(table, required))
    audit.add_broken(table.broken)
    audit.refuse(str(path))
    return table, audit


def read_raw_table(path: Path, reading: Reading = AS_IT_STANDS, *, typed: bool) -> RawTable:
    """Read the columns of a file; with `typed`, those of a CSV file that hold plain numbers only are floats.

    Raises
    ------
    PanelError
        With one finding: why the file as a whole cannot be read.
    """
    suffix = path.suffix.lower()
    _check_suffix(path, suffix)
    refuse_missing(path)
    if suffix in WORKBOOK_SUFFIXES:
        from .forms.workbook import read_workbook

        return read_workbook(path, _list_mapped(reading))
    try:
        check_given(path)
        return _read_csv(path, reading, typed) if suffix in TEXT_SUFFIXES else _read_parquet(path)
    except (pa.ArrowInvalid, pa.ArrowKeyError, UnicodeError, csv.Error) as problem:
        kind = "Parquet" if suffix == ".parquet" else "CSV"
        raise unusable_error(path, f"it cannot be read as {kind}: {_first_line(problem)}") from None
    except OSError as problem:
        raise unusable_error(path, f"it cannot be read: {problem.strerror or _first_line(problem)}") from None


def _check_suffix(path: Path, suffix: str) -> None:
    """Refuse what is no table by its name."""
    if path.is_dir():
        raise unusable_error(path, "a panel is a Parquet or a CSV file; this is a folder")
    if suffix in OLD_WORKBOOK_SUFFIXES:
        from .forms.workbook import SAVE_HINT

        raise unusable_error(path, "a panel is a Parquet or a CSV file; this is a workbook", SAVE_HINT)
    if suffix not in (*TABLE_SUFFIXES, *WORKBOOK_SUFFIXES):
        difference = f", not {suffix!r}" if suffix else "; this name has no extension"
        raise unusable_error(path, f"a panel is a Parquet or a CSV file{difference}")


def _read_parquet(path: Path) -> RawTable:
    with open_given(path) as opened:
        if opened.read(len(PARQUET_MARK)) != PARQUET_MARK:
            raise unusable_error(path, "it is not a Parquet file", "Name a file of text .csv, and a workbook .xlsx.")
    with pa_parquet.ParquetFile(path) as file:  # unlike read_table, this does not import pandas
        words = [column.name for column in file.schema_arrow if is_text(column.type)]
    # words with codes, as the file stores them, are read faster than text and take less memory
    with pa_parquet.ParquetFile(path, read_dictionary=words) as file:
        return from_arrow(file.read(), path)


def from_arrow(table: pa.Table, path: Path) -> RawTable:
    """Return a table in memory; columns that pandas wrote with two levels have two labels."""
    labels = _split_levels(table)
    columns = tuple(column if is_text(column.type) else decode_values(column) for column in table.columns)
    return RawTable(path, labels, columns, np.arange(1, table.num_rows + 1), from_text=False)


def _split_levels(table: pa.Table) -> tuple[tuple[str, ...], ...]:
    """Return the labels of each column: pandas writes the pair of two levels as the text of a tuple."""
    pandas = json.loads((table.schema.metadata or {}).get(b"pandas", b"{}"))
    names = table.column_names
    if len(pandas.get("column_indexes", ())) != 2:
        return tuple((name,) for name in names)
    index = {name for name in pandas.get("index_columns", ()) if isinstance(name, str)}
    return tuple((name, "") if name in index else _parse_pair(name) for name in names)


def _parse_pair(name: str) -> tuple[str, ...]:
    try:
        pair = ast.literal_eval(name)
    except (ValueError, SyntaxError):
        return (name, "")
    return tuple(map(str, pair)) if isinstance(pair, tuple) and len(pair) == 2 else (name, "")


def _read_csv(path: Path, reading: Reading, typed: bool) -> RawTable:
    """Read a CSV file; the rows of a wrong length are collected."""
    form = find_text_form(path, _list_mapped(reading))
    if form is None:
        raise unusable_error(path, "the file is empty")
    if typed and form.encoding == "utf-8" and reading.decimal != "comma":
        try:
            return _read_typed(path, form)
        except (pa.ArrowInvalid, _NotPlain):
            pass  # a cell that is no number, or a row of a wrong length: read again as text, to say which
    broken: list[Finding] = []

    def note(row: pa_csv.InvalidRow) -> str:
        what = f"{row.actual_columns} cells where the header has {row.expected_columns}"
        broken.append(Finding((row.number or form.skipped + 1) - form.skipped, "", what))
        return "skip"

    types = dict.fromkeys(range(len(form.labels)), pa.string())
    # Arrow numbers the broken rows only without threads
    table = _read_arrow_csv(path, form, types, pa_csv.ParseOptions(delimiter=form.delimiter, invalid_row_handler=note))
    skipped = [finding.row - 1 for finding in broken]
    numbers = np.delete(np.arange(1, table.num_rows + len(broken) + 1), skipped)
    return RawTable(path, form.labels, tuple(table.columns), numbers, True, tuple(broken), form.notes)


def _list_mapped(reading: Reading) -> list[str]:
    """Return the columns that the settings name."""
    return [name.strip().lower() for name in reading.columns.values()]


class _NotPlain(Exception):
    """A column of plain numbers holds a word that Arrow takes for a number, such as nan."""


def _read_typed(path: Path, form: TextForm) -> RawTable:
    """Read plain numbers as floats and all other cells as words with codes, which is three times as fast as text."""
    types = {place: pa.float64() if place in form.plain else WORD_CODES for place in range(len(form.labels))}
    table = _read_arrow_csv(path, form, types, pa_csv.ParseOptions(delimiter=form.delimiter))
    for place in form.plain:
        if not _all_finite(table.column(place)):
            raise _NotPlain
    numbers = np.arange(1, table.num_rows + 1)
    return RawTable(path, form.labels, tuple(table.columns), numbers, from_text=True, notes=form.notes)


def _all_finite(column: pa.ChunkedArray) -> bool:
    """Return whether the numbers of a column are finite; empty cells count as finite."""
    extremes = pc.min_max(column, skip_nulls=True)
    low, high = extremes["min"].as_py(), extremes["max"].as_py()
    finite = low is None or bool(np.isfinite(low) and np.isfinite(high))
    return finite and not pc.any(pc.is_nan(column)).as_py()


def _read_arrow_csv(
    path: Path, form: TextForm, types: Mapping[int, pa.DataType], parse: pa_csv.ParseOptions
) -> pa.Table:
    names = [str(place) for place in range(len(form.labels))]
    return pa_csv.read_csv(
        path,
        read_options=pa_csv.ReadOptions(
            use_threads=parse.invalid_row_handler is None,
            column_names=names,
            skip_rows=form.skipped,
            encoding=form.encoding,
            block_size=max(BLOCK_BYTES, form.looked),  # a row must fit into a block
        ),
        parse_options=parse,
        convert_options=pa_csv.ConvertOptions(
            column_types={str(place): kind for place, kind in types.items()}, null_values=[""], strings_can_be_null=True
        ),
    )


def name_columns(raw: RawTable, reading: Reading = AS_IT_STANDS) -> Table:
    """Return the columns by name in lower case, renamed as the settings say; a name that occurs twice is a clash."""
    columns: dict[str, pa.ChunkedArray] = {}
    clashes = []
    for place, (label, column) in enumerate(zip(raw.labels, raw.arrays, strict=True), 1):
        plain = " ".join(part for part in label if part).strip().removeprefix("\ufeff").strip().lower()
        plain = plain or UNNAMED.format(place)
        if ROW_NUMBERS.fullmatch(plain) and _holds_row_numbers(column):
            continue
        if plain in columns:
            clashes.append(Finding(0, plain, "the column is there twice"))
        columns[plain] = column
    columns, absent = _apply_settings(columns, reading)
    columns, notes = _apply_same_names(columns)
    broken = raw.broken
    return Table(
        raw.path, columns, raw.row_numbers, raw.from_text, (*clashes, *absent), broken, (*raw.notes, *notes), reading
    )


def _holds_row_numbers(column: pa.ChunkedArray) -> bool:
    """Return whether an unnamed index of pandas is a count of rows, not days or symbols."""
    return bool(pa.types.is_integer(column.type))


def _apply_settings(
    columns: dict[str, pa.ChunkedArray], reading: Reading
) -> tuple[dict[str, pa.ChunkedArray], list[Finding]]:
    """Rename the columns that `columns` of the settings names; one that the file lacks is a finding."""
    findings = []
    given = {}
    for field, name in reading.columns.items():
        plain = name.strip().lower()
        if plain in columns:
            given[plain] = field.strip().lower()
        elif field not in OTHER_FILES:
            what = f"columns says it is {name!r}, and the file has {', '.join(list(columns)[:12])}"
            findings.append(Finding(0, field, what))
    kept = {name: column for name, column in columns.items() if name not in given.values() or name in given}
    return {given.get(name, name): column for name, column in kept.items()}, findings


def _apply_same_names(
    columns: dict[str, pa.ChunkedArray],
) -> tuple[dict[str, pa.ChunkedArray], list[str]]:
    """Rename columns whose names mean a field that is absent and nothing else; each is noted."""
    renamed: dict[str, str] = {}
    for field in SAME_NAMES:
        if same := find_same(field, list(columns)):
            renamed[same] = field
    for name in columns:
        field = NUMBERED.sub("", name)
        if field != name and field not in columns and field not in renamed.values():
            renamed[name] = field
    notes = [f"{field}: read from the column {name!r}" for name, field in renamed.items()]
    return {renamed.get(name, name): column for name, column in columns.items()}, notes


def find_missing_columns(table: Table, required: Sequence[str]) -> list[Finding]:
    """Return a finding for each required column that the file lacks, with the columns that may be meant."""
    absent = [name for name in required if name not in table.columns]
    if not absent:
        return []
    guesses = suggest_columns(table.columns, absent, required)
    return [Finding(0, name, f"the column is missing{guess}") for name, guess in zip(absent, guesses, strict=True)]


def read_symbols(table: Table, name: str, audit: Audit) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return each row's code `[rows]` and the sorted symbols that the codes stand for; -1: empty or invalid."""
    column = table.columns[name]
    if not is_text(column.type):
        audit.add(Finding(0, name, f"the column holds {column.type}, not text (leading zeros of a code would be lost)"))
        return np.full(table.rows, -1), ()
    codes, words = encode_words(column)
    problems = {code: explain_bad_symbol(word) for code, word in enumerate(words)}
    bad = np.array([bool(problems[code]) for code in range(len(words))] + [True])
    problems[-1] = "the cell is empty"
    if bad[:-1].any() or (len(codes) and codes.min() < 0):
        audit.add_rows(name, np.flatnonzero(bad[codes]), lambda row: problems[int(codes[row])])
    used = sorted(word for code, word in enumerate(words) if not bad[code])
    place = {word: code for code, word in enumerate(used)}
    renumber = np.array([place.get(word, -1) for word in words] + [-1])
    return renumber[codes], tuple(used)


def explain_bad_symbol(word: str) -> str:
    """Return what is wrong with a symbol; empty if nothing is."""
    if word in NAN_SYMBOLS:
        return f"{word!r} is a missing value written as text, not a symbol"
    return f"{quote_cell(word)} has white space around it" if word != word.strip() else ""


def encode_words(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], list[str]]:
    """Return each row's code and the distinct words that occur; -1 where the cell is empty."""
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    column = column.unify_dictionaries()
    if not column.num_chunks:
        return np.zeros(0, np.int64), []
    codes = to_integers(pa.chunked_array([chunk.indices for chunk in column.chunks]), -1)
    words = column.chunk(0).dictionary.to_pylist()
    occurs = np.bincount(codes + 1, minlength=len(words) + 1)[1:] > 0
    kept = [bool(word) and there for word, there in zip(words, occurs.tolist(), strict=True)]
    if all(kept):
        return codes, words
    number = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)  # the last one stands for an empty cell
    return number[codes], [word for word, keep in zip(words, kept, strict=True) if keep]


def _first_line(problem: Exception) -> str:
    return str(problem).splitlines()[0].rstrip(".") if str(problem) else type(problem).__name__
