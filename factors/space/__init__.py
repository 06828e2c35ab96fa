"""Random formulas of the language, and formulas planted in synthetic markets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .planted import PlantSettings as PlantSettings
    from .search_space import (
        ACTIVITY as ACTIVITY,
        CORE as CORE,
        DRAWN_PRICES as DRAWN_PRICES,
        PAIR_OPERATORS as PAIR_OPERATORS,
        sample_plain as sample_plain,
        select_fields as select_fields,
    )
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "planted": "PlantSettings",
            "search_space": "ACTIVITY CORE DRAWN_PRICES PAIR_OPERATORS sample_plain select_fields",
        },
    )
