"""Similarity of two formulas, measured on their trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .compare import (
        KnownFormula as KnownFormula,
        Likeness as Likeness,
        compare_formulas as compare_formulas,
        holds_packed as holds_packed,
        pack_formula as pack_formula,
        rank_likeness as rank_likeness,
        unpack_formula as unpack_formula,
    )
    from .outline import (
        MAX_CODE_DISTANCE as MAX_CODE_DISTANCE,
        NumberCodes as NumberCodes,
        Outline as Outline,
        draw_outline as draw_outline,
        hash_outline_code as hash_outline_code,
        is_near as is_near,
        list_subtrees as list_subtrees,
    )
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "compare": "KnownFormula Likeness compare_formulas holds_packed pack_formula rank_likeness unpack_formula",
            "outline": "MAX_CODE_DISTANCE NumberCodes Outline draw_outline hash_outline_code is_near list_subtrees",
        },
    )
