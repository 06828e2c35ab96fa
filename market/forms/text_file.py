"""How a text table is written: its encoding, the mark between cells, and its header rows.

Only the beginning of the file is looked at. What differs from UTF-8 with commas is kept as a note.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from ...ledger.files import open_given
from ..errors import unusable_error
from .names import FIELD_NAMES, MEANT_NAMES, SAME_NAMES, plain_name

SAMPLE_BYTES, MAX_SAMPLE_BYTES = 1 << 17, 1 << 25
SAMPLE_LINES = 60
HEADER_LINES = 6
"""Lines that the first look must hold whole: a stated mark, a header of three rows, and data."""
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
BYTE_ORDER_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
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
    if not any(all(plain_name(cell) in FIELD_NAMES for cell in fields) and all(others) for fields, others in pairs):
        return 1
    if any(character.isdigit() for character in rows[1][0]):
        return 1  # the second row begins with a date: it is data
    return 3 if len(rows) > 2 and not any(rows[2][1:]) else 2


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
