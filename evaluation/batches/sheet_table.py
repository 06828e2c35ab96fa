"""The columns of a file of sheets: one row per formula, every figure with its type, unit and meaning."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ...evidence import HORIZONS, EvidenceSettings, Window
from ...market import Panel
from .formula_bench import MeasuredFormula

__all__ = ["FormulaRow", "SheetColumn", "SheetTable"]

QUINTILE_NUMBERS = range(1, 6)
CORRELATION, ANNUAL_RATIO = "correlation, -1 to 1", "ratio, annualised by the square root of 252"
DATA_CODE = "data"
"""Code of the warnings about the panel, which are the same for every formula."""


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
