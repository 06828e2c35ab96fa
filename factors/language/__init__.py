"""The language: its grammar, its tree, its types, and the proof that no formula reads the future."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .node import STANDARD_FIELDS as STANDARD_FIELDS, STANDARD_GROUPS as STANDARD_GROUPS
    from .reader import read_grammar_text as read_grammar_text
    from .types import FIELD_UNITS as FIELD_UNITS
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "node": "STANDARD_FIELDS STANDARD_GROUPS",
            "reader": "read_grammar_text",
            "types": "FIELD_UNITS",
        },
    )
