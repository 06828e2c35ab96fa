"""Read and write the languages of other tools.

`read_foreign` turns a foreign formula into our syntax, `write_foreign` turns one of our trees into a foreign formula, and
`translate` does both, between any two languages. Each dialect is one module with a table of rewrite rules and a small
grammar file; `registry` finds it by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names
from .dialect import Dialect
from .registry import DIALECT_NAMES, find_dialect

if TYPE_CHECKING:
    from .exporter import write_foreign
    from .importer import read_foreign
    from .translation import translate

LAZY_DIALECT_NAMES = {"read_foreign": "importer", "translate": "translation", "write_foreign": "exporter"}
"""Names that are imported when they are first used: lark is slow to load."""

__all__ = ["DIALECT_NAMES", "Dialect", "find_dialect", "read_foreign", "translate", "write_foreign"]

__getattr__ = lazy_names(__name__, LAZY_DIALECT_NAMES)
