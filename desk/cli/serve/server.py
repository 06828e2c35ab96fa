"""An HTTP server from its socket to its end: places for connections, signals, and a time limit for the end."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from ...errors import DeskError
from .connections import SPARE_CONNECTIONS, Connection, ConnectionTable, Listener

MAX_CONNECTIONS = 1_000
KEEP_ALIVE_SECONDS = 120
"""How long an idle connection is kept while there is room. Agents pause between calls, and a connection that is closed
at the moment of the next call is an error to the client."""
END_SECONDS, AFTER_GRACE_SECONDS = 4.8, 1.8
"""Time limits for the end of a process, whatever its threads do: in all, and after the grace of requests."""
LAST_TASKS_SECONDS = 0.3
MAX_DESCRIPTORS, RESERVED_DESCRIPTORS, MIN_CONNECTIONS = 65_536, 64, 8
"""The most descriptors that are requested, those reserved for other uses beside a quarter of all, and the fewest
connections."""
LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class ServerTerms:
    """The conditions of a server.

    Attributes
    ----------
    grace_s : int
        Seconds that requests under way have at the end.
    connections, descriptors : int
        The most connections, if the system allows them, and the descriptors that each takes.
    ending : callable
        Called when the end begins.
    tls : SSLContext or None
        For TLS; None: plain.
    """

    grace_s: int
    connections: int = MAX_CONNECTIONS
    descriptors: int = 1
    ending: Callable[[], None] = lambda: None
    tls: ssl.SSLContext | None = None


class HttpServer(uvicorn.Server):
    """uvicorn's server, whose connections have places.

    Parameters
    ----------
    app : ASGI application
        It sets `scope["state"]["known"]` when it has identified the caller.
    terms : ServerTerms
        Its conditions.
    asked : callable
        Returns whether it was asked to end before it began.
    limit : callable
        Called when it is asked to end.
    """

    def __init__(
        self,
        app: ASGIApp,
        terms: ServerTerms,
        asked: Callable[[], bool] = lambda: False,
        limit: Callable[[], None] = lambda: None,
    ) -> None:
        config = uvicorn.Config(
            app, http=Connection, ws="none", log_config=None, log_level="error", access_log=False, proxy_headers=False,
            server_header=False, timeout_graceful_shutdown=terms.grace_s, timeout_keep_alive=KEEP_ALIVE_SECONDS,
        )  # fmt: skip  # a table
        super().__init__(config)
        self.broken = False
        self._terms, self._asked, self._limit = terms, asked, limit

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept."""
        await super().startup(sockets=[])
        places = ConnectionTable(count_places(self._terms), time.monotonic)
        listeners: list[Any] = [
            Listener(listener, places, lambda: self._make_connection(places), self._mark_broken, self._terms.tls)
            for listener in sockets or ()
        ]
        self.servers += listeners  # uvicorn closes them as it closes asyncio's
        if self._asked():  # from now on uvicorn handles signals itself
            self._limit()
            self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End: requests under way have their grace, and nothing else is waited for."""
        logging.getLogger("uvicorn.error").setLevel(
            logging.CRITICAL
        )  # it would log a trace for each request that it cancels
        self._terms.ending()
        try:
            async with asyncio.timeout(self._terms.grace_s + LAST_TASKS_SECONDS):
                await super().shutdown(sockets)
        except TimeoutError:
            LOG.warning(
                "requests were still worked on %d seconds after the servers were asked to end", self._terms.grace_s
            )

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a signal: the time limit begins, and after a second Ctrl-C no request is waited for.

        uvicorn's own handler raises the signal again at the end, where it would look like another Ctrl-C.
        """
        self._limit()
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True

    def _make_connection(self, places: ConnectionTable) -> Connection:
        return Connection(self.config, self.server_state, self.lifespan.state, places)

    def _mark_broken(self, error: BaseException | None) -> None:
        LOG.error("no more connections are accepted: %s", error)
        self.broken = self.should_exit = True


def serve_until_signal(app: ASGIApp, listener: socket.socket, terms: ServerTerms, asked: Callable[[], bool]) -> None:
    """Serve until SIGINT or SIGTERM; then the process has a few seconds to end, or is killed.

    Raises
    ------
    DeskError
        It accepts no more connections without a request to end.
    """
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")
    limit = partial(_set_time_limit, max(END_SECONDS, terms.grace_s + AFTER_GRACE_SECONDS))
    server, loop = HttpServer(app, terms, asked, limit), asyncio.new_event_loop()
    try:
        loop.run_until_complete(server.serve(sockets=[listener]))
    except BaseException:
        limit()
        raise
    finally:
        _cancel_tasks(loop)
    if server.broken:
        limit()
        raise DeskError(
            "The server accepts no more connections.",
            hint="Start it again; its log says more.",
            code="serving",
            exit_code=1,
        )


def _set_time_limit(seconds: float) -> None:
    """End the process after so many seconds by SIGALRM, even if a thread still runs or blocks all others."""
    if hasattr(signal, "setitimer"):  # not on Windows
        signal.setitimer(signal.ITIMER_REAL, seconds)


def count_places(terms: ServerTerms) -> int:
    """Return the number of places for connections, as far as the system grants the descriptors."""
    descriptors = _raise_descriptor_limit()
    fit = (descriptors - descriptors // 4 - RESERVED_DESCRIPTORS) // terms.descriptors - SPARE_CONNECTIONS
    if fit < terms.connections:
        LOG.warning(
            "places for %d connections, not %d: this process may have %d descriptors (ulimit -n)",
            max(fit, MIN_CONNECTIONS),
            terms.connections,
            descriptors,
        )
    return max(min(fit, terms.connections), MIN_CONNECTIONS)


def _raise_descriptor_limit() -> int:
    """Return the number of descriptors that this process may have, after raising the limit."""
    try:
        import resource
    except ImportError:  # this system has no such limit
        return MAX_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(MAX_DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        soft = limit
    return MAX_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


def _cancel_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel the remaining tasks of a loop and close it; a task that waits for a thread is not waited for."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks, timeout=LAST_TASKS_SECONDS))
    loop.close()
