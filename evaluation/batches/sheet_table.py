"""The columns of a file of sheets: one row per formula, every figure with its type, unit and meaning.

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
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ...evidence import HORIZONS, EvidenceSettings, Window
from ...ledger.database import explained
from ...ledger.files import PUBLIC_FILE_MODE, make_folder, write_whole
from ...market import Panel
from .formula_bench import MeasuredFormula

QUINTILE_NUMBERS = range(1, 6)
CORRELATION, ANNUAL_RATIO = "correlation, -1 to 1", "ratio, annualised by the square root of 252"
DATA_CODE = "data"
"""Code of the warnings about the panel, which are the same for every formula."""
GROUP_ROWS = 1024
"""Rows of a row group of the file."""
PART_NAME = re.compile(r"part-(\d+)-(\d+)\.parquet")
FACTS_KEY = b"alphaloom"


class FormulaRow(NamedTuple):
    """A formula as it was given, and its author's name for it; empty if it has none."""

    text: str
    name: str = ""


class SheetColumn(NamedTuple):
    """A column: its name, type, unit (empty for words) and meaning."""

    name: str
    kind: pa.DataType
    unit: str
    meaning: str


@dataclass(frozen=True)
class SheetTable:
    """The columns of the sheets on one search window."""

    window: Window
    years: tuple[str, ...]
    horizon_days: int

    @classmethod
    def of(cls, panel: Panel, window: Window, settings: EvidenceSettings) -> SheetTable:
        """Return the columns for a panel."""
        years = np.unique(window.cut(panel.dates).astype("datetime64[Y]"))
        return cls(window, tuple(map(str, years)), settings.horizon_days)

    @cached_property
    def columns(self) -> tuple[SheetColumn, ...]:
        """Return the columns in the order of the file."""
        days = f"{self.horizon_days} days"
        words = [
            SheetColumn("formula", pa.string(), "", "the formula as it was given"),
            SheetColumn("name", pa.string(), "", "its author's name for it, null without one"),
            SheetColumn("id", pa.string(), "", "id of the factor, equal for spellings of one formula; null if unread"),
            SheetColumn("error", pa.string(), "", "why there is no sheet; null where there is one"),
            SheetColumn("fields", pa.list_(pa.string()), "", "columns of the panel that it reads"),
            SheetColumn("weaknesses", pa.list_(pa.string()), "", "codes of its weaknesses"),
            SheetColumn("warnings", pa.list_(pa.string()), "", "codes of warnings about it"),
        ]
        figures = [
            ("rank_ic", CORRELATION, f"mean daily Spearman correlation with the label of {days}"),
            ("ic", CORRELATION, f"mean daily Pearson correlation with the label of {days}"),
            ("icir", "ratio, not annualised", "rank_ic over the standard deviation of its daily values"),
            ("t", "standard errors", "Newey-West t of rank_ic"),
            ("turnover", "share of gross a day, one-way", "turnover of the long-short portfolio"),
            ("gross_sharpe", ANNUAL_RATIO, "Sharpe ratio before costs, held in the direction of rank_ic"),
            ("net_sharpe", ANNUAL_RATIO, "Sharpe ratio after costs, held in the direction of rank_ic"),
            ("coverage", "share, 0 to 1", "share of the universe's cells that have a value"),
            ("merit", "standard errors", "absolute t less the price of the formula's complexity"),
            *((f"rank_ic_{h}d", CORRELATION, f"mean RankIC at {h} days, on every fifth day") for h in HORIZONS),
            *(
                (f"quintile_{i}", "decimal return", f"mean return over {days} less the day's mean")
                for i in QUINTILE_NUMBERS
            ),
            *((f"rank_ic_{year}", CORRELATION, f"mean RankIC of the search days of {year}") for year in self.years),
        ]
        counted = SheetColumn("days", pa.int32(), "days", "days with a RankIC")
        return (*words, counted, *(SheetColumn(name, pa.float64(), *texts) for name, *texts in figures))

    @cached_property
    def schema(self) -> pa.Schema:
        """Return the columns for Arrow; each field's metadata has its unit and its meaning."""
        return pa.schema(
            pa.field(column.name, column.kind, metadata={"unit": column.unit, "meaning": column.meaning})
            for column in self.columns
        )

    def fill(self, formula: FormulaRow, measured: MeasuredFormula) -> dict[str, Any]:
        """Return the row of a formula; without a sheet its figures are null."""
        row = dict.fromkeys(column.name for column in self.columns)
        row |= {"formula": formula.text, "name": formula.name or None}
        row |= {"id": measured.factor_id or None, "error": measured.error or None}
        sheet = measured.sheet
        if sheet is None:
            return row
        row |= {name: sheet[name] for name in row if name in sheet}
        row |= {f"rank_ic_{horizon}d": value for horizon, value in sheet["decay"].items()}
        row |= {f"quintile_{place}": value for place, value in enumerate(sheet["quantile_returns"], start=1)}
        row |= {f"rank_ic_{year}": value for year, value in sheet["by_year"].items()}
        warnings = (warning["code"] for warning in sheet["warnings"])
        row["warnings"] = [code for code in warnings if code != DATA_CODE]
        row["weaknesses"] = [weakness["code"] for weakness in sheet["weaknesses"]]
        return row


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
