"""What to try next, from search-window scores alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .constraints import SearchConstraints as SearchConstraints
    from .diversity import (
        HYPOTHESIS_EVENT as HYPOTHESIS_EVENT,
        ROUND_PATTERN as ROUND_PATTERN,
        count_niches as count_niches,
        effective_number as effective_number,
        effective_number_of_round as effective_number_of_round,
        list_own_troubles as list_own_troubles,
        read_operator_table as read_operator_table,
        summarise_variety as summarise_variety,
    )
    from .memory import (
        MAX_RECALLED_CHARS as MAX_RECALLED_CHARS,
        HypothesisRecord as HypothesisRecord,
        select_reminders as select_reminders,
        summarise_mechanisms as summarise_mechanisms,
    )
    from .seeds import read_seeds as read_seeds
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "constraints": "SearchConstraints",
            "diversity": (
                "HYPOTHESIS_EVENT ROUND_PATTERN count_niches effective_number effective_number_of_round "
                "list_own_troubles read_operator_table summarise_variety"
            ),
            "memory": "HypothesisRecord MAX_RECALLED_CHARS select_reminders summarise_mechanisms",
            "seeds": "read_seeds",
        },
    )
