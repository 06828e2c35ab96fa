"""Read and write the formula languages of other tools.

`read_foreign` turns a foreign formula into our syntax, `write_foreign` turns one of our trees into a foreign formula,
and `translate` goes between any two languages. Each dialect is one module with a table of rewrite rules, and most have
a small grammar file; `find_dialect` returns it by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .dialect import DIALECT_NAMES as DIALECT_NAMES, find_dialect as find_dialect
    from .exporter import translate as translate, write_foreign as write_foreign
    from .importer import read_foreign as read_foreign
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "dialect": "DIALECT_NAMES find_dialect",
            "exporter": "translate write_foreign",
            "importer": "read_foreign",
        },
    )
