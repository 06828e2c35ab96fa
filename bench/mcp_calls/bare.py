"""The rival: a server of the SDK alone, without scopes, record, limits or refusals in words.

python -m bench.mcp_calls.bare             over standard input and output
python -m bench.mcp_calls.bare 0           over HTTP; its address goes to standard error
"""

from __future__ import annotations

import socket
import sys
from functools import cache
from typing import Any

import numpy as np
from mcp.server import MCPServer

DAYS, NAMES = 500, 500
PATH = "/mcp"


@cache
def values() -> list[list[float]]:
    """Return a panel's worth of numbers."""
    found: list[list[float]] = np.random.default_rng(0).normal(size=(DAYS, NAMES)).tolist()
    return found


def bare_server() -> MCPServer:
    """Return a server with one trivial tool, and one that answers with a whole panel."""
    server = MCPServer("bare")

    @server.tool()
    def get_budget() -> dict[str, Any]:
        """Return two numbers."""
        return {"evaluations_left": 40, "trials_left": 8}

    @server.tool()
    def get_panel() -> dict[str, Any]:
        """Return a panel inline."""
        return {"values": values()}

    return server


def main(port: str | None) -> None:
    """Serve until the client hangs up, or until a signal."""
    if port is None:
        bare_server().run("stdio")
        return
    import uvicorn

    with socket.socket(proto=socket.IPPROTO_TCP) as listening:  # else asyncio leaves Nagle's delay on
        listening.bind(("127.0.0.1", int(port)))
        listening.listen()
        print(f"http://127.0.0.1:{listening.getsockname()[1]}{PATH}", file=sys.stderr, flush=True)
        app = bare_server().streamable_http_app(streamable_http_path=PATH, json_response=True, stateless_http=True)
        config = uvicorn.Config(app, log_level="warning", access_log=False)
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
