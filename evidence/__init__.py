"""Windows, scores, originality, significance, and the acceptance gate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .archive import RunArchive as RunArchive
    from .errors import (
        BookUnavailable as BookUnavailable,
        EvidenceError as EvidenceError,
        LibraryFileError as LibraryFileError,
        LibraryRefused as LibraryRefused,
        NeedsSandbox as NeedsSandbox,
        OverLimits as OverLimits,
        PythonRefused as PythonRefused,
        ReviewRefused as ReviewRefused,
        RunHalted as RunHalted,
    )
    from .newey_west import (
        LAG_PER_HORIZON as LAG_PER_HORIZON,
        NeweyWest as NeweyWest,
        NullDistribution as NullDistribution,
        newey_west_t as newey_west_t,
        null_distribution as null_distribution,
    )
    from .proposal import (
        DATA_MINED_TITLE as DATA_MINED_TITLE,
        MECHANISM_EVENT as MECHANISM_EVENT,
        SET_PREFIX as SET_PREFIX,
        Claim as Claim,
        Proposal as Proposal,
        make_plain_error as make_plain_error,
        reserved_name_error as reserved_name_error,
    )
    from .replay import (
        RecordDifference as RecordDifference,
        Replay as Replay,
        find_differences as find_differences,
        find_series_difference as find_series_difference,
        read_trial_evidence as read_trial_evidence,
        replay_verdict as replay_verdict,
    )
    from .settings import (
        RECORDED_CONTEXT as RECORDED_CONTEXT,
        EvidenceSettings as EvidenceSettings,
        LibrarySettings as LibrarySettings,
        complete_settings as complete_settings,
    )
    from .windows import (
        HORIZONS as HORIZONS,
        Window as Window,
        Windows as Windows,
        fix_windows as fix_windows,
        windows_as_of as windows_as_of,
    )
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "archive": "RunArchive",
            "errors": (
                "BookUnavailable EvidenceError LibraryFileError LibraryRefused NeedsSandbox OverLimits PythonRefused "
                "ReviewRefused RunHalted"
            ),
            "newey_west": "LAG_PER_HORIZON NeweyWest NullDistribution newey_west_t null_distribution",
            "proposal": (
                "Claim DATA_MINED_TITLE MECHANISM_EVENT Proposal SET_PREFIX make_plain_error reserved_name_error"
            ),
            "replay": (
                "RecordDifference Replay find_differences find_series_difference read_trial_evidence replay_verdict"
            ),
            "settings": "EvidenceSettings LibrarySettings RECORDED_CONTEXT complete_settings",
            "windows": "HORIZONS Window Windows fix_windows windows_as_of",
        },
    )
