"""A connection to a server that is reopened after a loss, and whose interrupted work is repeated."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import WorkspaceError
from .server import PostgresServer, driver

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")


class PostgresLink:
    """One connection, shared by threads that take turns; `renewed` is called with each new one before it is used."""

    def __init__(self, server: PostgresServer, renewed: Callable[[Any], None] = lambda _: None) -> None:
        self._server, self._renewed = server, renewed
        self._lock, self._over = threading.RLock(), False
        self.connection: psycopg.Connection[Any] = server.connect()

    def repeated(self, deed: Callable[[psycopg.Connection[Any]], T]) -> T:
        """Run `deed`; repeat it when the connection is lost and the server comes back in time.

        Raises
        ------
        LedgerError
            The server refuses; `ServerError` if it does not come back.
        """
        with self._lock:
            return self._repeat(deed)

    def _repeat(self, deed: Callable[[psycopg.Connection[Any]], T]) -> T:
        until = None
        while True:
            try:
                return deed(self._open())
            except driver().Error as error:
                until = until or time.monotonic() + self._server.patience_s
                if not self._server.is_lost(error, self.connection) or time.monotonic() > until:
                    self._server.refuse(error)

    def _open(self) -> psycopg.Connection[Any]:
        """Return the connection, a new one if the last was lost."""
        if self._over:
            raise WorkspaceError(f"the ledger {self._server.address} is closed or misused", field="ledger")
        if self.connection.closed:
            self.connection = self._server.connect(again=True)
            self._renewed(self.connection)
        return self.connection

    def close(self) -> None:
        """Close the connection; a second time does nothing."""
        with self._lock:
            self._over = True
            self.connection.close()
