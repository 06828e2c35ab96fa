"""Which servers there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mcp.server import MCPServer

from .evaluation import evaluation_server
from .factors import factors_server
from .market import market_server
from .served import Served

SERVERS: Mapping[str, Callable[[Served], MCPServer]] = {
    "evaluation": evaluation_server,
    "factors": factors_server,
    "market": market_server,
}


def build_server(name: str, served: Served) -> MCPServer:
    """Return a caller's server by name; who asks has checked that the name is one of `SERVERS`."""
    return SERVERS[name](served)
