"""Which servers there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mcp.server import MCPServer

from ..served import Served
from ..server import ToolServer
from .bundle import Bundle
from .evaluation import evaluation_server
from .factors import factors_server
from .market import market_server
from .news import news_server

ALL = "all"
"""The name of all of them behind one connection."""
SERVERS: Mapping[str, Callable[[Served], ToolServer]] = {
    "evaluation": evaluation_server,
    "factors": factors_server,
    "market": market_server,
    "news": news_server,
}


def build_server(name: str, served: Served) -> MCPServer:
    """Return a caller's server by name, or all of them as one; who asks has checked that the name is known."""
    return Bundle([make(served) for make in SERVERS.values()]) if name == ALL else SERVERS[name](served)
