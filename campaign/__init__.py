"""A campaign: its settings, search, close and progress."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .campaign import (
        WORKSPACE as WORKSPACE,
        Campaign as Campaign,
        Clock as Clock,
        Settings as Settings,
        Show as Show,
    )
    from .funnel import Best as Best, Counts as Counts, Funnel as Funnel, ModelSpend as ModelSpend
    from .progress import Progress as Progress, ProgressMeter as ProgressMeter
    from .progress_reporter import CLOSED_BY_HAND as CLOSED_BY_HAND, read_last_progress as read_last_progress
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "campaign": "Campaign Clock Settings Show WORKSPACE",
            "funnel": "Best Counts Funnel ModelSpend",
            "progress": "Progress ProgressMeter",
            "progress_reporter": "CLOSED_BY_HAND read_last_progress",
        },
    )
