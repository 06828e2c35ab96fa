"""The rooms as tools for agents and for any MCP client; no tool can trade.

The public names are imported when first used, because `access` (who may call) is also needed without the rooms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .callers import CallerContexts as CallerContexts, ServerSetup as ServerSetup
    from .errors import TokenRefused as TokenRefused
    from .http_app import CallerLimits as CallerLimits, build_web_app as build_web_app
    from .served_caller import CallerEntry as CallerEntry, ServedCaller as ServedCaller
    from .session import Session as Session, open_own_sessions as open_own_sessions, open_sessions as open_sessions
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "callers": "CallerContexts ServerSetup",
            "errors": "TokenRefused",
            "http_app": "CallerLimits build_web_app",
            "served_caller": "CallerEntry ServedCaller",
            "session": "Session open_own_sessions open_sessions",
        },
    )
