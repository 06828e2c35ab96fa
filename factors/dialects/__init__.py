"""Read and write the languages of other tools.

`read_foreign` turns a foreign formula into our syntax, `write_foreign` turns one of our trees into a foreign formula, and
`translate` does both, between any two languages. Each dialect is one module with a table of rewrite rules and a small
grammar file; `registry` finds it by name.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .dialect import Dialect
from .registry import NAMES, dialect_named

if TYPE_CHECKING:
    from .exporter import write_foreign
    from .importer import read_foreign
    from .translation import translate

LATER = {"read_foreign": "importer", "translate": "translation", "write_foreign": "exporter"}
"""Names that are imported when they are first used: lark is slow to load."""

__all__ = ["NAMES", "Dialect", "dialect_named", "read_foreign", "translate", "write_foreign"]


def __getattr__(name: str) -> Any:
    """Import what reads formulas when it is first used."""
    if name in LATER:
        return getattr(import_module(f".{LATER[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
