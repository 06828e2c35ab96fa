"""Tidy tables in Parquet or CSV: one row a text, with `time_utc` (or `published`), `symbol` and `text`."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ..ledger import compute_digest
from ..market import PanelError, Table, read_table
from .errors import Findings
from .instants import PLAIN_FORMAT, parse_iso
from .item import RawRecord
from .json_lines import FIELD_SYNONYMS, RECORD_FIELDS

NEEDED_COLUMNS = ("published", "body")


def read_rows(path: Path, findings: Findings) -> list[RawRecord]:
    """Return the rows of a table; a missing column, or one without text, is a finding."""
    try:
        table = read_table(path)
    except PanelError as problem:
        findings.add(0, "", problem.findings[0].message if problem.findings else str(problem), hint=problem.hint)
        return []
    for broken in (*table.clashes, *table.broken):
        findings.add(broken.row, broken.column, broken.message)
    columns = _read_columns(table, findings)
    for name in NEEDED_COLUMNS:
        if name not in columns and not (name == "body" and "title" in columns):
            findings.add(0, name, "the column is missing", ", ".join(table.columns), "time_utc, symbol, text")
    if findings.findings:
        return []
    names = list(columns)
    rows = zip(*columns.values(), strict=True)
    numbers = table.row_numbers.tolist()
    return [_make_record(number, dict(zip(names, row, strict=True))) for number, row in zip(numbers, rows, strict=True)]


def _read_columns(table: Table, findings: Findings) -> dict[str, list[str]]:
    """Return the known columns as text, by field."""
    fields: dict[str, list[str]] = {}
    for column, values in table.columns.items():
        name = FIELD_SYNONYMS.get(column, column)
        if name not in RECORD_FIELDS:
            continue
        if name in fields:
            findings.add(0, column, f"{name} is there twice, under two names")
        fields[name] = _read_column(column, values, findings)
    return fields


def _read_column(column: str, values: pa.ChunkedArray, findings: Findings) -> list[str]:
    """Return a column as text, empty where a cell is missing; instants without a zone are UTC."""
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
    """Return the record of a row; its bytes are the digest of the row."""
    return RawRecord(
        number, fields, compute_digest(fields).encode(), lambda text: parse_iso(text, zoned=False), PLAIN_FORMAT
    )
