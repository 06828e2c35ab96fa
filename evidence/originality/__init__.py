"""Is it new? What is known, how like it a factor is, and what it adds to the library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .catalogue import (
        Catalogue as Catalogue,
        KnownFormula as KnownFormula,
        KnownLibrary as KnownLibrary,
        nearest as nearest,
        read_published as read_published,
    )
    from .incremental import AddedValue as AddedValue
    from .inverted_index import InvertedIndex as InvertedIndex, MemoryIndex as MemoryIndex
    from .published import draw_formula as draw_formula, published_expressions as published_expressions
    from .published_values import describe_twin as describe_twin, values_of_published as values_of_published
    from .redundancy import LibraryValues as LibraryValues, rank_correlation as rank_correlation
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "catalogue": "Catalogue KnownFormula KnownLibrary nearest read_published",
            "incremental": "AddedValue",
            "inverted_index": "InvertedIndex MemoryIndex",
            "published": "draw_formula published_expressions",
            "published_values": "describe_twin values_of_published",
            "redundancy": "LibraryValues rank_correlation",
        },
    )
