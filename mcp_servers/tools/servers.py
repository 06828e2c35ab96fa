"""Which servers there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mcp.server import MCPServer

from ..served import ServedCaller
from ..server import ToolServer
from .bundle import Bundle
from .evaluation import evaluation_server
from .factors import factors_server
from .market import market_server
from .news import news_server

ALL_SERVERS = "all"
"""The name of all of them behind one connection."""
SERVERS: Mapping[str, Callable[[ServedCaller], ToolServer]] = {
    "evaluation": evaluation_server,
    "factors": factors_server,
    "market": market_server,
    "news": news_server,
}


def build_server(name: str, served: ServedCaller) -> MCPServer:
    """Return a caller's server by name, or all of them as one; who asks has checked that the name is known."""
    return Bundle([make(served) for make in SERVERS.values()]) if name == ALL_SERVERS else SERVERS[name](served)
