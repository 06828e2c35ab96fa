"""A connection to PostgreSQL on which nobody waits forever: a server that is there and says nothing counts as gone.

Keepalives tell of a machine that went down, and the server's own time limits hold while it works. A server that froze
(a disk that hangs, a machine that is paused) keeps its end open, and the driver would wait for it without limit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from typing import Any

# Whoever imports this module is about to open a connection; see `Server`.
from psycopg import Connection, OperationalError  # noqa: TID253 - this file is imported only where a server keeps the ledger

__all__ = ["WatchedConnection"]

SocketWait = Generator[int, int, Any]


class WatchedConnection(Connection[Any]):  # type: ignore[misc]  # it is not installed where types are checked
    """A connection that is closed, as if it had been lost, when the server says nothing for `silence_s` seconds."""

    silence_s: float = math.inf

    def wait(self, gen: SocketWait, *more: Any, **named: Any) -> Any:
        """Do what needs the server.

        Raises
        ------
        OperationalError
            The server was silent for too long, and the connection is closed.
        """
        return super().wait(self._heard(gen), *more, **named)

    def _heard(self, waiting: SocketWait) -> SocketWait:
        """Hand on what the driver says of its socket: that there is something to read or write, or, ten times a second, nothing."""
        try:
            wanted, last = next(waiting), time.monotonic()
            while True:
                ready = yield wanted
                if ready:
                    last = time.monotonic()
                elif time.monotonic() - last > self.silence_s:
                    self.close()
                    raise OperationalError(f"the server said nothing for {self.silence_s:g} seconds")
                wanted = waiting.send(ready)
        except StopIteration as done:
            return done.value
