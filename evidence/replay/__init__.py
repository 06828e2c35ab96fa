"""A verdict run again from the record alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .difference import (
        RecordDifference as RecordDifference,
        differences as differences,
        series_difference as series_difference,
    )
    from .replay import Replay as Replay, read_trial_evidence as read_trial_evidence, replay_verdict as replay_verdict
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "difference": "RecordDifference differences series_difference",
            "replay": "Replay read_trial_evidence replay_verdict",
        },
    )
