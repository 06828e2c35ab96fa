"""Connections of a public server: how many there are, how long each may take, and which one makes room.

uvicorn and asyncio accept every connection until no descriptor is left, and wait for a request for ever. Here each
connection has a place from the moment it is accepted, before TLS, and is in one of four states:

OWED      the client owes something: the rest of its request, or reading the response. There is a time limit.
IDLE      its last request was answered, and no byte of the next one came.
ASKED     a whole request is worked on, and the application has not identified the caller.
KNOWN     a whole request is worked on, and the application has set `scope["state"]["known"]`: it is never cut off.

When all places are taken, the connection that has been longest in the first of these states makes room for a new one.
So silent, half-sent, slow and idle connections cost an honest client nothing, from whatever address they come.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.flow_control import service_unavailable
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

OWED_STATE, IDLE_STATE, ASKED_STATE, KNOWN_STATE = "owed", "idle", "asked", "known"
HEADER_SECONDS, REQUEST_SECONDS = 10.0, 75.0
"""Time limits of a client: for a TLS handshake and a request's header, and for a whole request or for reading the
response. The latter is longer than the gateway's own 60 s for a body, which it answers with 408."""
YOUNG_SECONDS = 1.0
"""For so long a client that is sending its request is spared if another can make room."""
SPARE_CONNECTIONS = 16
"""Connections beyond all places, so that a client is told with 503 if every place is a known caller's."""
ACCEPTS_PER_TURN = 32
"""Connections that are accepted before other tasks run."""
OVERDUE_POLL_SECONDS = 0.5
ACCEPT_PAUSE_SECONDS = 0.05
BROKEN_SOCKET_ERRNOS = frozenset({errno.EBADF, errno.EINVAL, errno.ENOTSOCK})
"""Errors of the listening socket itself. Any other error of accept() concerns one connection, or passes."""


@dataclass(eq=False)
class PlacedConnection:
    """One connection.

    Attributes
    ----------
    hang_up : callable
        Closes it at once.
    connection : Connection
        Knows what it waits for.
    state, since
        One of the states above, and the time since when.
    """

    connection: Connection
    hang_up: Callable[[], None] = lambda: None
    state: str = ""
    since: float = 0.0


@dataclass(eq=False)
class ConnectionTable:
    """All connections of one listener by state, each state in the order of entry."""

    most: int
    seconds: Callable[[], float]
    _all: dict[str, dict[PlacedConnection, None]] = field(
        default_factory=lambda: {state: {} for state in (OWED_STATE, IDLE_STATE, ASKED_STATE, KNOWN_STATE)}, init=False
    )

    def __len__(self) -> int:
        """Return the number of connections."""
        return sum(map(len, self._all.values()))

    @property
    def full(self) -> bool:
        """Whether every place is a known caller's: one more request is refused."""
        return len(self._all[KNOWN_STATE]) >= self.most

    def move(self, place: PlacedConnection, state: str) -> None:
        """Set the state of a connection, with the time if it changes."""
        if place.state == state:
            return
        self.leave(place)
        place.state, place.since = state, self.seconds()
        self._all[state][place] = None

    def leave(self, place: PlacedConnection) -> None:
        """Remove a connection."""
        if place.state:
            self._all[place.state].pop(place, None)
        place.state = ""

    def room(self) -> bool:
        """Make room for one more connection; return False if there is none."""
        if len(self) < self.most:
            return True
        if self._drop(OWED_STATE, YOUNG_SECONDS) or self._drop(IDLE_STATE) or self._drop(ASKED_STATE, YOUNG_SECONDS):
            return True
        return len(self) < self.most + SPARE_CONNECTIONS or self.shed()

    def shed(self) -> bool:
        """Drop one connection, if any may be dropped."""
        return self._drop(OWED_STATE) or self._drop(IDLE_STATE) or self._drop(ASKED_STATE)

    def overdue(self) -> None:
        """Drop every connection whose client has exceeded its time limit."""
        now = self.seconds()
        for place in self._list_owing():
            if now - place.since > place.connection.limit_s:
                self._end(place)

    def _drop(self, state: str, older: float = 0.0) -> bool:
        """Drop the connection that has been longest in a state, if for at least `older` seconds."""
        oldest = next(
            self._list_owing()
            if state == OWED_STATE
            else self._list_unknown()
            if state == ASKED_STATE
            else iter(self._all[state]),
            None,
        )
        if oldest is None or self.seconds() - oldest.since < older:
            return False
        self._end(oldest)
        return True

    def _list_owing(self) -> Iterator[PlacedConnection]:
        """Yield the connections whose client owes something; while the server itself does not read, time restarts."""
        for place in tuple(self._all[OWED_STATE]):
            if place.connection.unread:
                self.leave(place)
                self.move(place, OWED_STATE)
            else:
                yield place

    def _list_unknown(self) -> Iterator[PlacedConnection]:
        """Yield the connections whose caller is still unknown."""
        for place in tuple(self._all[ASKED_STATE]):
            if place.connection.known:
                self.move(place, KNOWN_STATE)
            else:
                yield place

    def _end(self, place: PlacedConnection) -> None:
        self.leave(place)
        place.hang_up()


class Connection(H11Protocol):
    """uvicorn's HTTP/1.1 protocol, with a place in its listener's table."""

    def __init__(
        self, config: uvicorn.Config, server_state: ServerState, app_state: dict[str, Any], places: ConnectionTable
    ) -> None:
        super().__init__(config, server_state, app_state, asyncio.get_running_loop())
        self._places = places
        self.place = PlacedConnection(self)
        places.move(self.place, OWED_STATE)

    @property
    def limit_s(self) -> float:
        """Seconds that the client has for what it owes now."""
        if self.flow is not None and self.flow.write_paused:
            return REQUEST_SECONDS
        return HEADER_SECONDS if self.cycle is None or self.cycle.response_complete else REQUEST_SECONDS

    @property
    def unread(self) -> bool:
        """Whether the server itself has stopped reading from the client."""
        return self.flow is not None and self.flow.read_paused and not self.flow.write_paused

    @property
    def known(self) -> bool:
        """Whether the application has identified the caller."""
        return bool(self.scope is not None and self.scope.get("state", {}).get("known"))

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin; from now on the connection can be closed without waiting for its client."""
        super().connection_made(transport)
        self.place.hang_up = transport.abort

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the place."""
        super().connection_lost(exc)
        self._places.leave(self.place)

    def data_received(self, data: bytes) -> None:
        """Read on; if every place is a known caller's, the request is refused."""
        self.app = service_unavailable if self._places.full else self.config.loaded_app
        super().data_received(data)
        self._settle()

    def on_response_complete(self) -> None:
        """Update the state: the next request, or the rest of this one, is due."""
        super().on_response_complete()
        self._settle()

    def pause_writing(self) -> None:
        """Update the state: the client does not read the response."""
        super().pause_writing()
        self._settle()

    def resume_writing(self) -> None:
        """Update the state: the client reads again."""
        super().resume_writing()
        self._settle()

    def send_400_response(self, msg: str) -> None:
        """Refuse data that is not HTTP; uvicorn would fail with a trace if a response has begun or is still to come."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            super().send_400_response(msg)
        else:
            self.transport.close()

    def shutdown(self) -> None:
        """Close at the server's end: at once, unless a whole request is worked on."""
        if self.place.state in {ASKED_STATE, KNOWN_STATE}:
            super().shutdown()
        else:
            self.transport.abort()

    def _settle(self) -> None:
        if not self.place.state or self.transport.is_closing():
            return
        cycle = self.cycle
        if self.flow.write_paused or cycle is None:
            self._places.move(self.place, OWED_STATE)
        elif not cycle.response_complete:
            self._work(cycle.more_body)
        else:
            between = self.conn.their_state in {h11.IDLE, h11.DONE} and not self.conn.trailing_data[0]
            self._places.move(self.place, IDLE_STATE if between else OWED_STATE)

    def _work(self, more_body: bool) -> None:
        """Set the state of a request that is read or worked on; a known one stays known."""
        if more_body or not (self.place.state == KNOWN_STATE and self.known):
            self._places.move(self.place, OWED_STATE if more_body else ASKED_STATE)


class Listener:
    """Accept connections, each to a place; uvicorn closes it as it closes asyncio's own servers.

    Parameters
    ----------
    there : socket
        The listening socket.
    places : ConnectionTable
        The table of places.
    made : callable
        Returns the protocol of one more connection.
    failed : callable
        Receives the error that ends accepting.
    tls : SSLContext or None
        For TLS; None: plain.
    """

    def __init__(
        self,
        listener: socket.socket,
        places: ConnectionTable,
        make: Callable[[], Connection],
        failed: Callable[[BaseException | None], None],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._there, self._places, self._made, self._tls = listener, places, make, tls
        self._begun: set[asyncio.Task[None]] = set()
        listener.setblocking(False)
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._accept()), loop.create_task(self._watch())]
        for task in self._tasks:
            task.add_done_callback(lambda ended: None if ended.cancelled() else failed(ended.exception()))

    def close(self) -> None:
        """Stop accepting; connections that are still being set up are given up."""
        for task in (*self._tasks, *self._begun):
            task.cancel()

    async def wait_closed(self) -> None:
        """Wait until accepting has ended."""
        await asyncio.wait(self._tasks)

    async def _accept(self) -> None:
        while True:
            try:
                for _ in range(ACCEPTS_PER_TURN):
                    await self._accept_one()
            except OSError as error:
                if error.errno in BROKEN_SOCKET_ERRNOS:
                    raise
                self._places.shed()  # most likely no descriptor is left
                await asyncio.sleep(ACCEPT_PAUSE_SECONDS)
            await asyncio.sleep(0)

    async def _accept_one(self) -> None:
        """Wait for one connection and accept it."""
        wire, _ = await asyncio.get_running_loop().sock_accept(self._there)
        if not self._places.room():
            wire.close()
            return
        connection = self._made()
        task = asyncio.get_running_loop().create_task(self._begin(wire, connection))
        connection.place.hang_up = task.cancel  # type: ignore[assignment]
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)
        task.add_done_callback(lambda ended: self._give_up(ended, wire, connection))

    async def _begin(self, wire: socket.socket, connection: Connection) -> None:
        with suppress(OSError):  # the client has gone, or does not speak TLS
            limit = HEADER_SECONDS if self._tls else None
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection, wire, ssl=self._tls, ssl_handshake_timeout=limit
            )

    def _give_up(self, task: asyncio.Task[None], wire: socket.socket, connection: Connection) -> None:
        if connection.transport is None:
            self._places.leave(connection.place)
            wire.close()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(OVERDUE_POLL_SECONDS)
            self._places.overdue()
