"""Is it new? What is known, how like it a factor is, and what it adds to the library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .catalogue import (
        Catalogue as Catalogue,
        InvertedIndex as InvertedIndex,
        MemoryIndex as MemoryIndex,
        draw_formula as draw_formula,
        find_nearest as find_nearest,
    )
    from .incremental import (
        AddedValue as AddedValue,
        measure_beside as measure_beside,
        residual_ranks as residual_ranks,
    )
    from .published import (
        describe_published as describe_published,
        describe_twin as describe_twin,
        published_expressions as published_expressions,
        published_mechanisms as published_mechanisms,
        read_published as read_published,
        values_of_published as values_of_published,
    )
    from .redundancy import LibraryValues as LibraryValues, rank_correlation as rank_correlation
    from .subtree_index import KnownLibrary as KnownLibrary
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "catalogue": "Catalogue InvertedIndex MemoryIndex draw_formula find_nearest",
            "incremental": "AddedValue measure_beside residual_ranks",
            "published": (
                "describe_published describe_twin published_expressions published_mechanisms read_published "
                "values_of_published"
            ),
            "redundancy": "LibraryValues rank_correlation",
            "subtree_index": "KnownLibrary",
        },
    )
