"""The factor language as a grammar for constrained decoding: a constrained model writes no formula that is refused.

`decoding_grammar` builds it from the tables that the parser reads: operators, unit rules, days and limits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .grammar import decoding_grammar as decoding_grammar
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "grammar": "decoding_grammar",
        },
    )
