"""Tidy tables: one row a text, with `time_utc` (or `published`), `symbol` and `text`, in Parquet or CSV."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ..ledger import compute_digest
from ..market import PanelError
from ..market.files import Table, read_table
from .instants import PLAIN_FORMAT, from_iso
from .lines import FIELD_SYNONYMS, RECORD_FIELDS
from .records import Findings, RawRecord

NEEDED_COLUMNS = ("published", "body")


def read_rows(path: Path, findings: Findings) -> list[RawRecord]:
    """Return the rows of a table; a column that is missing, or that holds no text, is noted."""
    try:
        table = read_table(path)
    except PanelError as problem:
        findings.add(0, "", problem.findings[0].message if problem.findings else str(problem), hint=problem.hint)
        return []
    for broken in (*table.clashes, *table.broken):
        findings.add(broken.row, broken.column, broken.message)
    columns = _columns(table, findings)
    for name in NEEDED_COLUMNS:
        if name not in columns and not (name == "body" and "title" in columns):
            findings.add(0, name, "the column is missing", ", ".join(table.columns), "time_utc, symbol, text")
    if findings.findings:
        return []
    names = list(columns)
    rows = zip(*columns.values(), strict=True)
    numbers = table.row_numbers.tolist()
    return [_make_record(number, dict(zip(names, row, strict=True))) for number, row in zip(numbers, rows, strict=True)]


def _columns(table: Table, findings: Findings) -> dict[str, list[str]]:
    """Return the columns that are read, as text, by the names of fields."""
    found: dict[str, list[str]] = {}
    for column, values in table.columns.items():
        name = FIELD_SYNONYMS.get(column, column)
        if name not in RECORD_FIELDS:
            continue
        if name in found:
            findings.add(0, column, f"{name} is there twice, under two names")
        found[name] = _column_text(column, values, findings)
    return found


def _column_text(column: str, values: pa.ChunkedArray, findings: Findings) -> list[str]:
    """Return a column as text, an empty one for a missing cell; instants without a zone are UTC."""
    kind = values.type
    if pa.types.is_timestamp(kind):
        zoned = values.cast(pa.timestamp("us", tz="UTC"), safe=False)
        return [cell or "" for cell in pc.strftime(zoned, format="%Y-%m-%dT%H:%M:%SZ").to_pylist()]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [",".join(cell or ()) for cell in values.to_pylist()]
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_date(kind):
        findings.add(0, column, "the column holds neither text nor instants", kind, PLAIN_FORMAT)
        return [""] * len(values)
    return [cell or "" for cell in values.cast(pa.string()).to_pylist()]


def _make_record(number: int, fields: dict[str, str]) -> RawRecord:
    """Return the record of a row; what is hashed is the row as canonical JSON."""
    return RawRecord(
        number, fields, compute_digest(fields).encode(), lambda text: from_iso(text, zoned=False), PLAIN_FORMAT
    )
