"""Many formulas scored on the search window: the function that scores a batch, workers of a cluster, the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .formula_bench import (
        BATCH_FORMULAS as BATCH_FORMULAS,
        BenchParts as BenchParts,
        FormulaBench as FormulaBench,
        MeasuredFormula as MeasuredFormula,
    )
    from .remote_sheets import RemoteSheets as RemoteSheets
    from .sheet_parts import SheetParts as SheetParts, read_sheet_facts as read_sheet_facts
    from .sheet_table import FormulaRow as FormulaRow, SheetTable as SheetTable
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "formula_bench": "BATCH_FORMULAS BenchParts FormulaBench MeasuredFormula",
            "remote_sheets": "RemoteSheets",
            "sheet_parts": "SheetParts read_sheet_facts",
            "sheet_table": "FormulaRow SheetTable",
        },
    )
