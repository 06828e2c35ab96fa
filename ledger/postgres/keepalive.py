"""Client-side statement timeout: a connected but unresponsive PostgreSQL server is treated as lost.

Keepalives detect a machine that went down, and the server's own timeouts hold while it works. A frozen server (a
hanging disk, a paused machine) keeps its connections open, and the driver would wait for it without limit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from typing import Any

# Whoever imports this module is about to open a connection; see `Server`.
from psycopg import Connection, OperationalError  # noqa: TID253 - this file is imported only where a server keeps the ledger

SocketWait = Generator[int, int, Any]


class WatchedConnection(Connection[Any]):  # type: ignore[misc]  # it is not installed where types are checked
    """A connection that is closed, as if lost, when the server sends nothing for `silence_s` seconds."""

    silence_s: float = math.inf

    def wait(self, gen: SocketWait, *more: Any, **options: Any) -> Any:
        """Run a generator of the driver that waits for the server.

        Raises
        ------
        OperationalError
            The server was silent for too long; the connection is closed.
        """
        return super().wait(self._watch_silence(gen), *more, **options)

    def _watch_silence(self, waiting: SocketWait) -> SocketWait:
        """Pass the readiness of the socket to the driver; raise after `silence_s` seconds without any."""
        try:
            interest, last = next(waiting), time.monotonic()
            while True:
                ready = yield interest
                if ready:
                    last = time.monotonic()
                elif time.monotonic() - last > self.silence_s:
                    self.close()
                    raise OperationalError(f"the server said nothing for {self.silence_s:g} seconds")
                interest = waiting.send(ready)
        except StopIteration as done:
            return done.value
