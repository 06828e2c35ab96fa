"""Is it real? Windows, scores, originality, significance, and the acceptance gate."""

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
        OtherStream as OtherStream,
        OverLimits as OverLimits,
        PanelDisagrees as PanelDisagrees,
        PythonRefused as PythonRefused,
        ReviewRefused as ReviewRefused,
        RunHalted as RunHalted,
        RunPaused as RunPaused,
        RunStopped as RunStopped,
        TooFewDays as TooFewDays,
        TooFewNames as TooFewNames,
        UnknownFactor as UnknownFactor,
    )
    from .gate.alignment import Claim as Claim
    from .originality.catalogue import nearest as nearest
    from .originality.redundancy import rank_correlation as rank_correlation
    from .proposal import (
        SET_PREFIX as SET_PREFIX,
        Proposal as Proposal,
        make_plain_error as make_plain_error,
        reserved_name_error as reserved_name_error,
    )
    from .scoring.metrics import round_significant as round_significant
    from .settings import (
        RECORDED_CONTEXT as RECORDED_CONTEXT,
        EvidenceSettings as EvidenceSettings,
        LibrarySettings as LibrarySettings,
        complete_settings as complete_settings,
    )
    from .windows import (
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
            "errors": "BookUnavailable EvidenceError LibraryFileError LibraryRefused NeedsSandbox OtherStream OverLimits PanelDisagrees PythonRefused ReviewRefused RunHalted RunPaused RunStopped TooFewDays TooFewNames UnknownFactor",
            "gate.alignment": "Claim",
            "originality.catalogue": "nearest",
            "originality.redundancy": "rank_correlation",
            "proposal": "Proposal SET_PREFIX make_plain_error reserved_name_error",
            "scoring.metrics": "round_significant",
            "settings": "EvidenceSettings LibrarySettings RECORDED_CONTEXT complete_settings",
            "windows": "Window Windows fix_windows windows_as_of",
        },
    )
