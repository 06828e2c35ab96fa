"""Which servers there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from mcp.server import MCPServer

from ..evidence import Evaluator
from .entry import Entry
from .evaluation import evaluation_server
from .factors import factors_server
from .market import market_server


class Build(Protocol):
    """Makes one server of an evaluator, for one caller where one is given."""

    def __call__(self, evaluator: Evaluator, entry: Entry | None = None) -> MCPServer:
        """Return the server."""


SERVERS: Mapping[str, Build] = {
    "evaluation": evaluation_server,
    "factors": factors_server,
    "market": market_server,
}


def build_server(name: str, evaluator: Evaluator, entry: Entry | None = None) -> MCPServer:
    """Return a server by name, for one caller where one is given; who asks has checked that the name is one of `SERVERS`."""
    return SERVERS[name](evaluator, entry)
