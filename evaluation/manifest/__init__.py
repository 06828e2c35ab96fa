"""The manifest of a campaign, and which days of its evidence a model can have read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .authors import Authors as Authors, DeclaredModel as DeclaredModel
    from .exposed_days import (
        DaySplit as DaySplit,
        RunExposure as RunExposure,
        SplitFigure as SplitFigure,
        WindowSplit as WindowSplit,
        read_exposure as read_exposure,
    )
    from .manifest import build_manifest as build_manifest, describe_licence as describe_licence
    from .software import find_software as find_software
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "authors": "Authors DeclaredModel",
            "exposed_days": "DaySplit RunExposure SplitFigure WindowSplit read_exposure",
            "manifest": "build_manifest describe_licence",
            "software": "find_software",
        },
    )
