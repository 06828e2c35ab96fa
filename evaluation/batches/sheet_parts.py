"""Sheets on the disk: parts while formulas are scored, then one Parquet file.

A part is written atomically and named by its first row and its number of rows, so a scoring that was interrupted goes
on after the rows that lie there. The file is cut into groups of rows that do not depend on the parts: its bytes are
the same whatever the number of restarts.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from ...ledger.database import explained
from ...ledger.files import PUBLIC_FILE_MODE, make_folder, write_whole
from .sheet_table import SheetTable

__all__ = ["SheetParts", "read_sheet_facts"]

GROUP_ROWS = 1024
"""Rows of a row group of the file."""
PART_NAME = re.compile(r"part-(\d+)-(\d+)\.parquet")
FACTS_KEY = b"alphaloom"


class SheetParts:
    """The rows of one list of formulas on one panel; two processes that write the same rows do no harm."""

    def __init__(self, folder: Path, table: SheetTable) -> None:
        self._folder, self._table = folder, table
        with explained(folder):
            make_folder(folder)

    def count_rows(self) -> int:
        """Return the number of rows from the first on that are on the disk."""
        return sum(rows - skipped for _, skipped, rows in self._list_parts())

    def add(self, first: int, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write rows from place `first` on; they are on the disk on return."""
        body = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pylist(list(rows), self._table.schema), body)
        with explained(self._folder):
            write_whole(self._folder / f"part-{first:010d}-{len(rows):06d}.parquet", body.getvalue().to_pybytes())

    def assemble(self, out: Path, facts: Mapping[str, Any]) -> None:
        """Write all rows as one file, atomically, with facts as JSON in its metadata, and drop the parts."""
        encoded = json.dumps(facts, sort_keys=True).encode()
        schema = self._table.schema.with_metadata({FACTS_KEY: encoded})
        handle, draft = tempfile.mkstemp(dir=out.parent, prefix=".draft-")
        try:
            with os.fdopen(handle, "wb") as file:
                self._write_groups(file, schema)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(draft, PUBLIC_FILE_MODE)
            os.replace(draft, out)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise
        shutil.rmtree(self._folder, ignore_errors=True)

    def _write_groups(self, file: BinaryIO, schema: pa.Schema) -> None:
        with pq.ParquetWriter(file, schema) as writer:
            for table in self._regroup():
                writer.write_table(table.replace_schema_metadata(schema.metadata))

    def _regroup(self) -> Iterator[pa.Table]:
        """Yield the rows in tables of `GROUP_ROWS`, the last one shorter."""
        waiting = self._table.schema.empty_table()
        for path, skipped, _ in self._list_parts():
            with explained(path):
                part = pq.read_table(path, schema=self._table.schema).slice(skipped)
            waiting = pa.concat_tables([waiting, part])
            while waiting.num_rows >= GROUP_ROWS:
                yield waiting.slice(0, GROUP_ROWS).combine_chunks()
                waiting = waiting.slice(GROUP_ROWS)
        if waiting.num_rows:
            yield waiting.combine_chunks()

    def _list_parts(self) -> Iterator[tuple[Path, int, int]]:
        """Yield the parts that follow each other without a gap: path, rows that an earlier part has, rows."""
        names = (PART_NAME.fullmatch(path.name) for path in self._folder.iterdir())
        place = 0
        for first, rows, name in sorted((int(name[1]), int(name[2]), name[0]) for name in names if name):
            if first <= place < first + rows:
                yield self._folder / name, place - first, rows
                place = first + rows


def read_sheet_facts(path: Path) -> dict[str, Any] | None:
    """Return the facts in a file of sheets; None if there is no such file, or it is another one."""
    try:
        metadata = pq.read_schema(path).metadata or {}
    except (OSError, pa.ArrowInvalid):
        return None
    return dict(json.loads(metadata[FACTS_KEY])) if FACTS_KEY in metadata else None
