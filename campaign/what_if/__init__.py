"""What would happen: signals asked of the gate, a book under a scenario, its last days again. Nothing is recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .held_book import HeldBook as HeldBook, find_policy as find_policy, read_held_book as read_held_book
    from .rehearsal import rehearse as rehearse
    from .scenario import (
        EVERY as EVERY,
        BookScenario as BookScenario,
        make_crash as make_crash,
        make_field_move as make_field_move,
        make_given as make_given,
        make_month as make_month,
    )
    from .signal_check import (
        RefusedSignal as RefusedSignal,
        SignalCheck as SignalCheck,
        check_signals as check_signals,
        tell_check as tell_check,
    )
    from .stress import BookStress as BookStress, NameLoss as NameLoss, stress_book as stress_book
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "held_book": "HeldBook find_policy read_held_book",
            "rehearsal": "rehearse",
            "scenario": "EVERY BookScenario make_crash make_field_move make_given make_month",
            "signal_check": "RefusedSignal SignalCheck check_signals tell_check",
            "stress": "BookStress NameLoss stress_book",
        },
    )
