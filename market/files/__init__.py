"""Price files as tables, and all that is wrong in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .table import Table as Table, read_table as read_table
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "table": "Table read_table",
        },
    )
