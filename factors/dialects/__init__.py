"""Read and write the languages of other tools.

`read_foreign` turns a foreign formula into our syntax, `write_foreign` turns one of our trees into a foreign formula, and
`translate` does both, between any two languages. Each dialect is one module with a table of rewrite rules and a small
grammar file; `registry` finds it by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .dialect import Dialect as Dialect
    from .exporter import write_foreign as write_foreign
    from .importer import read_foreign as read_foreign
    from .registry import DIALECT_NAMES as DIALECT_NAMES, find_dialect as find_dialect
    from .translation import translate as translate
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "dialect": "Dialect",
            "exporter": "write_foreign",
            "importer": "read_foreign",
            "registry": "DIALECT_NAMES find_dialect",
            "translation": "translate",
        },
    )
