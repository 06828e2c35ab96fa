"""A gateway as a server, until it is asked to end."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from .gateway import Gateway, application

if TYPE_CHECKING:
    import uvicorn

__all__ = ["run", "server"]

KEEP_ALIVE_S = 120
"""How long a silent client's connection is kept: one that is given up in the moment of the next call is an error to it."""


def server(gateway: Gateway, grace_s: int, asked: Callable[[], bool] = lambda: False) -> uvicorn.Server:
    """Return the server of a gateway; as it ends, calls that hold a place have `grace_s` seconds, those that wait none.

    `asked` tells whether it was asked to end before it began.
    """
    import uvicorn

    class Server(uvicorn.Server):
        """Tells the gateway first."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            self.should_exit = self.should_exit or asked()  # from now on uvicorn hears signals itself

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            gateway.end()
            await super().shutdown(sockets)

    return Server(
        uvicorn.Config(
            application(gateway), log_level="critical", access_log=False, server_header=False, date_header=False,
            timeout_graceful_shutdown=grace_s, timeout_keep_alive=KEEP_ALIVE_S,
            limit_concurrency=gateway.settings.connections,
        )
    )  # fmt: skip


def run(gateway: Gateway, listening: socket.socket, grace_s: int, asked: Callable[[], bool]) -> None:
    """Serve until SIGINT or SIGTERM."""
    server(gateway, grace_s, asked).run(sockets=[listening])
