"""The servers over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .web import CallerLimits as CallerLimits, Protected as Protected, build_web_app as build_web_app
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "web": "CallerLimits Protected build_web_app",
        },
    )
