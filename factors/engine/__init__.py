"""The engine: compiled kernels over the distinct subtrees of a batch of formulas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .engine import EXPRESSIONS_PER_STREAM as EXPRESSIONS_PER_STREAM
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "engine": "EXPRESSIONS_PER_STREAM",
        },
    )
