"""The guard: a process of its own that cancels what is open once trading is halted, and the drill that measures it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .drill import DrillResult as DrillResult, run_drills as run_drills
    from .guard import (
        Guard as Guard,
        GuardAnswer as GuardAnswer,
        keep_answer as keep_answer,
        list_answers as list_answers,
    )
    from .heartbeat import BEAT_FILE as BEAT_FILE, GuardBeat as GuardBeat, read_beat as read_beat
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "drill": "DrillResult run_drills",
            "guard": "Guard GuardAnswer keep_answer list_answers",
            "heartbeat": "BEAT_FILE GuardBeat read_beat",
        },
    )
