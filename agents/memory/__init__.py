"""The search's memory of its formulas and hypotheses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .operator_outcomes import pool_rows as pool_rows
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "operator_outcomes": "pool_rows",
        },
    )
