"""How a text table is written: its encoding, the mark between cells, and its header rows.

Only the beginning of the file is looked at. What differs from UTF-8 with commas is kept as a note.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...ledger.files import open_given
from ..errors import MAX_CELL_LENGTH, unusable_error
from .days import parse_date
from .names import FIELD_NAMES, MEANT_NAMES, SAME_NAMES, plain_name

SAMPLE_BYTES, MAX_SAMPLE_BYTES = 1 << 17, 1 << 25
SAMPLE_LINES = 60
MIN_KNOWN_NAMES = 3
HEADER_LINES = 6
"""Lines that the first look must hold whole: a stated mark, a header of three rows, and data."""
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
WEB_PAGES = (b"<!", b"<html", b"<HTML", b"<?xml", b"<table")
OTHER_KINDS = (
    (b"PAR1", "it is a Parquet file", "Name it .parquet."),
    (b"PK\x03\x04", "it is a workbook of Excel or a zip archive", "Name a workbook .xlsx; unpack an archive."),
    (b"\xd0\xcf\x11\xe0", "it is an old workbook of Excel", "Save its sheet as CSV."),
    (b"\x1f\x8b", "it is compressed", "Unpack it, in Python with gzip.open."),
    (b"ARROW1", "it is a Feather file", "Save it as Parquet: pandas.read_feather(path).to_parquet(path)."),
    *((mark, "it is a web page", "Open it in a browser: a download may have failed.") for mark in WEB_PAGES),
)
"""First bytes of files that are no text table, and what to do with them."""
MAX_ZERO_SHARE = 0.001
CODED_COLUMNS = frozenset(
    name for field in ("symbol", "date") for name in (field, *SAME_NAMES[field], *MEANT_NAMES[field])
)
"""Columns of symbols and dates: 000001 is a symbol, and no number may round 1357084800000000000."""
STATED_DELIMITER = re.compile(r'^"?sep=(.)"?\s*$')
"""The first line of a file that Excel writes for Excel."""
NUMBER_LIKE = re.compile(r"\s*[-+]?[^\w\s]{0,3}\s*\d[\d.,'\u2019\u00a0\u202f ]*[^\w\s]{0,3}\s*")
PLAIN_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")
GROUPED_NUMBER = re.compile(r"\s*[-+]?(0|[1-9]\d{0,2}(\.\d{3})*)\s*")
"""A number whose points may stand between thousands."""


@dataclass(frozen=True)
class TextForm:
    """How a text table is written.

    Attributes
    ----------
    encoding : str
        "utf-8", or what the bytes show instead.
    delimiter : str
        The mark between cells.
    skipped : int
        Lines above the first row of data.
    labels : tuple of tuple of str
        Of each column its header cells: one, or two where field and symbol are in a row each.
    plain : frozenset of int
        Columns whose first cells are all numbers with a decimal point; none where another column may hold numbers that
        are written otherwise, which says what the points are, or where all points may stand between thousands.
    notes : tuple of str
        What differs from UTF-8 with commas.
    looked : int
        Bytes that were looked at.
    """

    encoding: str
    delimiter: str
    skipped: int
    labels: tuple[tuple[str, ...], ...]
    plain: frozenset[int]
    notes: tuple[str, ...]
    looked: int


def find_text_form(path: Path, words: Collection[str] = ()) -> TextForm | None:
    """Return how a text table is written, or None for an empty file; `words` are columns that are never numbers."""
    sample, cut = _read_sample(path)
    encoding = find_encoding(sample)
    _refuse_other_kind(path, sample, encoding)
    lines = sample.decode(encoding, errors="ignore").lstrip("\ufeff").splitlines()
    lines = (lines[:-1] if cut else lines)[:SAMPLE_LINES]
    if cut and not lines:
        raise unusable_error(path, f"its first line is longer than {MAX_SAMPLE_BYTES >> 20} MiB")
    skipped = 0
    stated = STATED_DELIMITER.match(lines[0]) if lines else None
    if stated:
        lines, skipped = lines[1:], 1
    blank = next((place for place, line in enumerate(lines) if line.strip()), len(lines))
    lines, skipped = lines[blank:], skipped + blank
    if not lines:
        return None
    delimiter = _take_stated(path, stated[1]) if stated else find_delimiter(lines)
    rows = list(csv.reader((line for line in lines if line.strip()), delimiter=delimiter))
    depth = count_header_rows(rows)
    if depth == 1:
        places = [skipped + place + 1 for place, line in enumerate(lines) if line.strip()]
        refuse_late_header(path, rows, places, words)
        _refuse_no_header(path, rows[0])
    notes = [] if encoding == "utf-8" else [f"encoding: {encoding}"]
    if delimiter != ",":
        notes.append(f"cells: separated by {DELIMITERS.get(delimiter, repr(delimiter))}")
    labels = read_labels(rows[:depth])
    coded = frozenset(
        place for place, label in enumerate(labels) if label[0].strip().lower() in {*CODED_COLUMNS, *words}
    )
    plain = find_plain_columns(rows[depth:], len(rows[0]), coded)
    return TextForm(encoding, delimiter, skipped + depth, labels, plain, tuple(notes), len(sample))


def _read_sample(path: Path) -> tuple[bytes, bool]:
    """Return the beginning of a file, long enough for its header, and whether the file may go on after it."""
    size = SAMPLE_BYTES
    with open_given(path) as file:
        sample = file.read(size)
        while len(sample) == size < MAX_SAMPLE_BYTES and _count_lines(sample) < HEADER_LINES:
            size *= 2
            sample += file.read(size - len(sample))
    return sample, len(sample) == size


def _refuse_other_kind(path: Path, sample: bytes, encoding: str) -> None:
    """Refuse a file that is no text, whatever its name says."""
    for mark, what, hint in OTHER_KINDS:
        if sample.lstrip().startswith(mark):
            raise unusable_error(path, f"{what}, not text with a cell for each value", hint)
    zeros = sample[:4096].count(0)
    if encoding in ("utf-8", "cp1252") and zeros > MAX_ZERO_SHARE * len(sample[:4096]):
        raise unusable_error(path, "it is not text: it has bytes of no character", "Save the prices as CSV or Parquet.")


def refuse_late_header(
    path: Path, rows: Sequence[Sequence[str]], places: Sequence[int], words: Collection[str] = ()
) -> None:
    """Refuse a table with lines above the row that names its columns; `places` number the lines of the rows.

    A row names columns from three known names on, if the first row has none.
    """
    if not rows or any(is_known_name(cell, words) for cell in rows[0]):
        return
    counts = [sum(is_known_name(cell, words) for cell in row) for row in rows]
    if max(counts) < MIN_KNOWN_NAMES:
        return
    late = counts.index(max(counts))
    names = ", ".join(cell.strip() for cell in rows[late] if cell.strip())
    what = f"row {places[late]} looks like the header ({names[:MAX_CELL_LENGTH]}...), and other text stands above it"
    raise unusable_error(path, what, f"Delete the rows above row {places[late]}.")


def is_known_name(cell: str, words: Collection[str] = ()) -> bool:
    """Return whether a cell is a name of a field that is read, or one of the words."""
    name = cell.strip().removeprefix("\ufeff").lower()
    return name in CODED_COLUMNS or name in words or plain_name(name) in FIELD_NAMES


def _refuse_no_header(path: Path, row: Sequence[str]) -> None:
    """Refuse a table whose first row is a day with its numbers."""
    cells = [cell.strip() for cell in row if cell.strip()]
    dates = [cell for cell in cells if parse_date(cell) is not None]
    numbers = [cell for cell in cells if PLAIN_NUMBER.fullmatch(cell) and cell not in dates]
    if dates and 2 * len(numbers) > len(cells):
        what = f"its first row is data ({', '.join(cells[:3])}), not the names of the columns"
        raise unusable_error(path, what, "Write the names above it; pandas writes them unless header=False.")


def _take_stated(path: Path, mark: str) -> str:
    """Return the mark between cells that a file states; refuse one that no reader can split at."""
    if mark.isalnum() or mark == '"' or not (mark == "\t" or (mark.isascii() and mark.isprintable())):
        raise unusable_error(path, f"its first line says that {mark!r} stands between cells: use , ; | or a tab")
    return mark


def _count_lines(sample: bytes) -> int:
    return max(sample.count(b"\n"), sample.count(b"\r"))


def find_encoding(sample: bytes) -> str:
    """Return the encoding of the first bytes: what a mark says, else UTF-8, else the Western one of Windows."""
    for mark, encoding in BYTE_ORDER_MARKS:
        if sample.startswith(mark):
            return encoding
    if sample[1:200:2].count(0) > len(sample[1:200:2]) / 2:
        return "utf-16-le"
    try:
        sample[: sample.rfind(b"\n") + 1 or None].decode("utf-8")
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def find_delimiter(lines: list[str]) -> str:
    """Return the mark that splits the lines into most cells, each line into as many; a comma if none does."""

    def judge(mark: str) -> tuple[float, int]:
        try:
            widths = [len(row) for row in csv.reader(lines, delimiter=mark)]
        except csv.Error:
            return (0.0, 0)  # a long line that the mark does not split is too long for a cell
        usual = max(set(widths), key=widths.count)
        return (widths.count(usual) / len(widths) if usual > 1 else 0.0, usual)

    best = max(DELIMITERS, key=judge)
    return best if judge(best)[1] > 1 else ","


def count_header_rows(rows: list[list[str]]) -> int:
    """Return 1, or 2 where the first two rows name fields and symbols, and 3 where a third names the index."""
    if len(rows) < 2 or len(rows[0]) < 3 or len(rows[1]) != len(rows[0]):
        return 1
    first, second = rows[0][1:], rows[1][1:]
    pairs = ((first, second), (second, first))
    if not any(all(map(_is_pair, fields, others)) for fields, others in pairs):
        return 1
    if any(character.isdigit() for character in rows[1][0]):
        return 1  # the second row begins with a date: it is data
    return 3 if len(rows) > 2 and not any(rows[2][1:]) else 2


def _is_pair(field: str, other: str) -> bool:
    """Return whether two header cells are a field and a symbol, or the name of the dates and nothing."""
    if not other.strip():
        return field.strip().lower() in ("date", *SAME_NAMES["date"])
    return plain_name(field) in FIELD_NAMES


def find_plain_columns(rows: list[list[str]], width: int, coded: frozenset[int]) -> frozenset[int]:
    """Return the columns of plain numbers but the coded ones; none if a column is empty or holds other numbers."""
    found: dict[int, list[str]] = {}
    for place in sorted(set(range(width)) - coded):
        cells = [row[place] for row in rows if len(row) == width and row[place].strip()]
        if not cells:
            return frozenset()
        if all(PLAIN_NUMBER.fullmatch(cell) for cell in cells):
            found[place] = cells
        elif any(NUMBER_LIKE.fullmatch(cell) for cell in cells):
            return frozenset()
    numbers = [cell for cells in found.values() for cell in cells]
    in_doubt = any("." in cell for cell in numbers) and all(map(GROUPED_NUMBER.fullmatch, numbers))
    return frozenset() if in_doubt else frozenset(found)


def read_labels(rows: list[list[str]]) -> tuple[tuple[str, ...], ...]:
    """Return the header cells of each column; the index column has the name that the third row gives it."""
    if len(rows) == 1:
        return tuple((cell,) for cell in rows[0])
    index = rows[2][0] if len(rows) > 2 else ""
    labels = list(zip(rows[0], rows[1], strict=True))
    return ((index, ""), *labels[1:])
