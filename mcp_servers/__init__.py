"""The rooms as tools for agents and for any MCP client: thin, and unable to trade."""

from __future__ import annotations

from .session import Session, open_sessions
from .tools import SERVERS, build_server

__all__ = ["SERVERS", "Session", "build_server", "open_sessions"]
