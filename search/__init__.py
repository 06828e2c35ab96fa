"""What to try next, from search-window scores alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .constraints import SearchConstraints as SearchConstraints
    from .diversity import (
        effective_number_of_round as effective_number_of_round,
        niches as niches,
        own_troubles as own_troubles,
        read_operator_table as read_operator_table,
        variety as variety,
    )
    from .memory import (
        HypothesisRecord as HypothesisRecord,
        MAX_RECALLED_CHARS as MAX_RECALLED_CHARS,
        select_reminders as select_reminders,
        summarise_mechanisms as summarise_mechanisms,
    )
    from .seeds import read_seeds as read_seeds
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "constraints": "SearchConstraints",
            "diversity": "effective_number_of_round niches own_troubles read_operator_table variety",
            "memory": "HypothesisRecord MAX_RECALLED_CHARS select_reminders summarise_mechanisms",
            "seeds": "read_seeds",
        },
    )
