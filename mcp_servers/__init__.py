"""The rooms as tools for agents and for any MCP client: thin, and unable to trade.

The public names are imported when first used: `access`, which says who may call, is needed without the rooms too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .session import Session, open_own_sessions, open_sessions
    from .tools.servers import SERVERS, build_server

__all__ = ["SERVERS", "Session", "build_server", "open_own_sessions", "open_sessions"]

_LAZY_MODULES = {
    "SERVERS": "tools.servers",
    "Session": "session",
    "build_server": "tools.servers",
    "open_sessions": "session",
    "open_own_sessions": "session",
}

__getattr__ = lazy_names(__name__, _LAZY_MODULES)
