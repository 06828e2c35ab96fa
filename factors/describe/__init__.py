"""Formulas and operators in words: for a person, for a model, for the documentation."""

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
        families as families,
        find_operator as find_operator,
        operator_facts as operator_facts,
        summarise_operator as summarise_operator,
    )
    from .words import (
        find_mention as find_mention,
        mentions as mentions,
        natural_sort_key as natural_sort_key,
        relevance as relevance,
        replace_invisible as replace_invisible,
        stem_overlap as stem_overlap,
        stems as stems,
    )
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "facts": "check_formula explain_formula require_dialect translate_formula",
            "handbook": "families find_operator operator_facts summarise_operator",
            "words": "find_mention mentions natural_sort_key relevance replace_invisible stem_overlap stems",
        },
    )
