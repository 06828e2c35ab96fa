"""Formulas and operators in words, for people, models and the documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .facts import (
        check_formula as check_formula,
        explain_formula as explain_formula,
        require_dialect as require_dialect,
        translate_formula as translate_formula,
    )
    from .handbook import (
        describe_operator as describe_operator,
        find_operator as find_operator,
        list_families as list_families,
        summarise_operator as summarise_operator,
    )
    from .words import (
        find_mention as find_mention,
        find_stems as find_stems,
        has_other_letters as has_other_letters,
        measure_stem_overlap as measure_stem_overlap,
        mentions as mentions,
        natural_sort_key as natural_sort_key,
        replace_invisible as replace_invisible,
        score_relevance as score_relevance,
    )
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "facts": "check_formula explain_formula require_dialect translate_formula",
            "handbook": "describe_operator find_operator list_families summarise_operator",
            "words": (
                "find_mention find_stems has_other_letters measure_stem_overlap mentions natural_sort_key "
                "replace_invisible score_relevance"
            ),
        },
    )
