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
    from .sheet_table import (
        FormulaRow as FormulaRow,
        SheetParts as SheetParts,
        SheetTable as SheetTable,
        read_sheet_facts as read_sheet_facts,
    )
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "formula_bench": "BATCH_FORMULAS BenchParts FormulaBench MeasuredFormula",
            "remote_sheets": "RemoteSheets",
            "sheet_table": "FormulaRow SheetParts SheetTable read_sheet_facts",
        },
    )
