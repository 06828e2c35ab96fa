"""A file of any number of formulas, read row by row: text, CSV or Parquet."""

from __future__ import annotations

import csv
import hashlib
import io
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ...errors import DeskError
from .formulas import COMMENT, NAMED_LINE, NUMBERED_LINE

if TYPE_CHECKING:
    from ....evaluation.batches import FormulaRow


STDIN = "-"
FORMULA_COLUMN, NAME_COLUMN = "formula", "name"
FORMULA_TABLE_SUFFIXES = (".csv", ".parquet")
PARQUET_BATCH_ROWS = 1024
MAX_CELL_CHARS = 1 << 20


@dataclass(frozen=True)
class FormulaList:
    """The formulas of a file; no more than a few rows of it are in memory.

    Attributes
    ----------
    file
        Its path as the person wrote it; "-" is standard input, kept in a temporary file.
    count
        Number of formulas.
    digest
        SHA-256 of the formulas and their names; comments and empty lines do not count.
    """

    file: str
    body: Path
    numbered: bool = False
    count: int = 0
    digest: str = ""

    def __iter__(self) -> Iterator[FormulaRow]:
        """Yield the formulas in the order of the file."""
        readers = {".csv": self._read_csv, ".parquet": self._read_parquet}
        return readers.get(self._suffix, self._read_lines)()

    @property
    def _suffix(self) -> str:
        return "" if self.file == STDIN else Path(self.file).suffix.lower()

    def survey(self) -> FormulaList:
        """Return the list with its number of formulas, their digest, and whether every line begins with a number."""
        formulas = replace(self, numbered=self._has_only_numbered_lines())
        digest, count = hashlib.sha256(), 0
        for row in formulas:
            digest.update(f"{row.name}\0{row.text}\n".encode("utf-8", "surrogatepass"))
            count += 1
        return replace(formulas, count=count, digest=digest.hexdigest())

    def _has_only_numbered_lines(self) -> bool:
        """Return whether every line of a text begins with a number, as `factor check --file` reads it."""
        if self._suffix in FORMULA_TABLE_SUFFIXES:
            return False
        count = 0
        with self._open_text() as file:
            for text in iterate_formula_lines(file):
                count += 1
                if not NUMBERED_LINE.match(text):
                    return False
        return count > 1

    def _read_lines(self) -> Iterator[FormulaRow]:
        from ....evaluation.batches import FormulaRow

        names = NUMBERED_LINE if self.numbered else NAMED_LINE
        with self._open_text() as file:
            for text in iterate_formula_lines(file):
                label = names.match(text)
                yield FormulaRow(text[label.end() :] if label else text.strip(), label[1] if label else "")

    def _read_csv(self) -> Iterator[FormulaRow]:
        csv.field_size_limit(MAX_CELL_CHARS)
        with self._open_text() as file:
            rows = csv.reader(file)
            formula, name = self._find_columns(next(rows, []))
            for row in filter(None, rows):
                yield self._make_row(dict(enumerate(row)), formula, name)

    def _read_parquet(self) -> Iterator[FormulaRow]:
        import pyarrow.parquet as pq

        with pq.ParquetFile(self.body) as file:
            titles = file.schema_arrow.names
            formula, name = self._find_columns(titles)
            columns = [titles[place] for place in (formula, name) if place is not None]
            for batch in file.iter_batches(PARQUET_BATCH_ROWS, columns=columns):
                cells = {titles.index(column): batch.column(column).to_pylist() for column in columns}
                for at in range(batch.num_rows):
                    yield self._make_row({place: str(row[at] or "") for place, row in cells.items()}, formula, name)

    def _make_row(self, cells: Mapping[int, str], formula: int, name: int | None) -> FormulaRow:
        from ....evaluation.batches import FormulaRow

        return FormulaRow(cells.get(formula, "").strip(), "" if name is None else cells.get(name, "").strip())

    def _find_columns(self, titles: list[str]) -> tuple[int, int | None]:
        """Return the places of the columns of formulas and of names; there may be no names."""
        plain = [title.strip().lower() for title in titles]
        if FORMULA_COLUMN not in plain:
            raise DeskError(
                f"{self.file} has no column of formulas",
                field="--file",
                got=plain,
                allowed=f"a column {FORMULA_COLUMN}, and perhaps a column {NAME_COLUMN}",
                hint="Rename the column that holds the formulas.",
                code="no_formula",
            )
        return plain.index(FORMULA_COLUMN), plain.index(NAME_COLUMN) if NAME_COLUMN in plain else None

    @contextmanager
    def _open_text(self) -> Iterator[io.TextIOWrapper]:
        from ....ledger.files import open_given

        with open_given(self.body) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig") as file:
            yield file


def iterate_formula_lines(file: io.TextIOWrapper) -> Iterator[str]:
    """Yield the lines that hold a formula, without comments."""
    for line in file:
        if text := COMMENT.sub("", line.rstrip("\n")).rstrip():
            yield text


@contextmanager
def open_formula_list(file: str) -> Iterator[FormulaList]:
    """Open a list of formulas for reading it several times: lines of text, or a CSV or Parquet file.

    Raises
    ------
    DeskError
        There is no formula in it, no column of formulas, or it cannot be read as what its name says.
    OSError
        There is no such file, or it is not a regular file.
    """
    from ....ledger.files import check_given

    with tempfile.TemporaryDirectory(prefix="alphaloom-") as folder:
        body = Path(file)
        if file == STDIN:
            body = Path(folder) / "formulas.txt"
            with body.open("wb") as kept:
                shutil.copyfileobj(_find_stdin(), kept)
        check_given(body)
        yield _survey(FormulaList(file, body))


def _find_stdin() -> BinaryIO:
    return sys.stdin.buffer


def _survey(formulas: FormulaList) -> FormulaList:
    try:
        surveyed = formulas.survey()
    except (ValueError, csv.Error) as error:  # errors of Arrow and of the decoding are ValueErrors
        raise _unreadable_error(formulas.file, str(error).partition("\n")[0]) from None
    if not surveyed.count:
        hint = "Write one formula a line, or a CSV or Parquet file with a column formula."
        raise DeskError(f"there is no formula in {formulas.file}", field="--file", hint=hint, code="no_formula")
    return surveyed


def _unreadable_error(file: str, reason: str) -> DeskError:
    return DeskError(
        f"{file} cannot be read: {reason}",
        field="--file",
        got=file,
        allowed="text in UTF-8 with one formula a line, or a CSV or Parquet file with a column formula",
        hint="Save it again in one of these forms.",
        code="no_formula",
    )
