"""Which servers there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mcp.server import MCPServer

from ..evidence import Evaluator
from .evaluation import evaluation_server
from .factors import factors_server
from .market import market_server

SERVERS: Mapping[str, Callable[[Evaluator], MCPServer]] = {
    "evaluation": evaluation_server,
    "factors": factors_server,
    "market": market_server,
}


def build_server(name: str, evaluator: Evaluator) -> MCPServer:
    """Return a server by name; the caller has checked that the name is one of `SERVERS`."""
    return SERVERS[name](evaluator)
