"""Shared parts of the kernels in `operators`: cells, the sorting of rows, and the machine code cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .kernel_cache import kernel as kernel
    from .ranking import make_room as make_room, sort_row as sort_row
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "kernel_cache": "kernel",
            "ranking": "make_room sort_row",
        },
    )
