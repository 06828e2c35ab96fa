"""Connections of a server that strangers reach: how many there are, how long each may wait for its client, and who makes room.

uvicorn, and asyncio below it, accept whatever comes until no descriptor is left, and wait for a request for ever. Here each
connection has a place from the moment it is accepted, before TLS, and is in one of four states:

OWED      the client owes something: the rest of its request, or taking what is sent to it. There is a time limit.
IDLE      its last request was answered, and no byte of the next one came.
ASKED     a whole request is worked on, and the application has not said whose it is.
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

__all__ = ["KNOWN_STATE", "Connection", "ConnectionTable", "Listener", "PlacedConnection"]

OWED_STATE, IDLE_STATE, ASKED_STATE, KNOWN_STATE = "owed", "idle", "asked", "known"
HEADER_SECONDS, REQUEST_SECONDS = 10.0, 75.0
"""How long a client may take for a TLS handshake, for a request's header, and for all of it or for taking what is sent:
longer than the gateway's own 60 s for a body, which it answers with 408.
"""
YOUNG_SECONDS = 1.0
"""For so long a client that sends its request is spared where another can make room."""
SPARE_CONNECTIONS = 16
"""Connections beyond all places, so that where every place is a known caller's a further one is told so with 503."""
ACCEPTS_PER_TURN = 32
"""Connections accepted before the others have their turn."""
OVERDUE_POLL_SECONDS = 0.5
ACCEPT_PAUSE_SECONDS = 0.05
BROKEN_SOCKET_ERRNOS = frozenset({errno.EBADF, errno.EINVAL, errno.ENOTSOCK})
"""What says that the listening socket itself is gone. Any other error of accept() concerns one connection, or passes."""


@dataclass(eq=False)
class PlacedConnection:
    """One connection.

    Attributes
    ----------
    hang_up : callable
        Closes it at once.
    connection : Connection
        Says what it waits for.
    state, since
        As above, and since when.
    """

    connection: Connection
    hang_up: Callable[[], None] = lambda: None
    state: str = ""
    since: float = 0.0


@dataclass(eq=False)
class ConnectionTable:
    """All connections of one listener, by state, each state in the order in which they came to be in it."""

    most: int
    seconds: Callable[[], float]
    _all: dict[str, dict[PlacedConnection, None]] = field(
        default_factory=lambda: {state: {} for state in (OWED_STATE, IDLE_STATE, ASKED_STATE, KNOWN_STATE)}, init=False
    )

    def __len__(self) -> int:
        """Return how many connections there are."""
        return sum(map(len, self._all.values()))

    @property
    def full(self) -> bool:
        """Whether every place is a known caller's: one more request is refused."""
        return len(self._all[KNOWN_STATE]) >= self.most

    def move(self, place: PlacedConnection, state: str) -> None:
        """Note the state of a connection; since when it is in it if that is new."""
        if place.state == state:
            return
        self.leave(place)
        place.state, place.since = state, self.seconds()
        self._all[state][place] = None

    def leave(self, place: PlacedConnection) -> None:
        """Forget a connection."""
        if place.state:
            self._all[place.state].pop(place, None)
        place.state = ""

    def room(self) -> bool:
        """Make room for one more connection; False where there is none."""
        if len(self) < self.most:
            return True
        if self._drop(OWED_STATE, YOUNG_SECONDS) or self._drop(IDLE_STATE) or self._drop(ASKED_STATE, YOUNG_SECONDS):
            return True
        return len(self) < self.most + SPARE_CONNECTIONS or self.shed()

    def shed(self) -> bool:
        """Drop one connection, if any may be."""
        return self._drop(OWED_STATE) or self._drop(IDLE_STATE) or self._drop(ASKED_STATE)

    def overdue(self) -> None:
        """Drop every connection whose client has owed something for too long."""
        now = self.seconds()
        for place in self._due():
            if now - place.since > place.connection.limit_s:
                self._end(place)

    def _drop(self, state: str, older: float = 0.0) -> bool:
        """Drop the connection that has been longest in a state, if it was for so many seconds."""
        found = next(
            self._due() if state == OWED_STATE else self._unknown() if state == ASKED_STATE else iter(self._all[state]),
            None,
        )
        if found is None or self.seconds() - found.since < older:
            return False
        self._end(found)
        return True

    def _due(self) -> Iterator[PlacedConnection]:
        """Yield those whose client owes something; where it is the server that does not read, the time begins anew."""
        for place in tuple(self._all[OWED_STATE]):
            if place.connection.unread:
                self.leave(place)
                self.move(place, OWED_STATE)
            else:
                yield place

    def _unknown(self) -> Iterator[PlacedConnection]:
        """Yield those of which it is not known whose request is worked on."""
        for place in tuple(self._all[ASKED_STATE]):
            if place.connection.known:
                self.move(place, KNOWN_STATE)
            else:
                yield place

    def _end(self, place: PlacedConnection) -> None:
        self.leave(place)
        place.hang_up()


class Connection(H11Protocol):
    """uvicorn's HTTP/1.1, with a place among the connections of its listener."""

    def __init__(
        self, config: uvicorn.Config, server_state: ServerState, app_state: dict[str, Any], places: ConnectionTable
    ) -> None:
        super().__init__(config, server_state, app_state, asyncio.get_running_loop())
        self._places = places
        self.place = PlacedConnection(self)
        places.move(self.place, OWED_STATE)

    @property
    def limit_s(self) -> float:
        """How long the client may owe what it owes now."""
        if self.flow is not None and self.flow.write_paused:
            return REQUEST_SECONDS
        return HEADER_SECONDS if self.cycle is None or self.cycle.response_complete else REQUEST_SECONDS

    @property
    def unread(self) -> bool:
        """Whether the server itself does not read now what the client sends."""
        return self.flow is not None and self.flow.read_paused and not self.flow.write_paused

    @property
    def known(self) -> bool:
        """Whether the application knows whose request this is."""
        return bool(self.scope is not None and self.scope.get("state", {}).get("known"))

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin; from now on the connection can be closed without waiting for its client."""
        super().connection_made(transport)
        self.place.hang_up = transport.abort

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back."""
        super().connection_lost(exc)
        self._places.leave(self.place)

    def data_received(self, data: bytes) -> None:
        """Read on; where every place is a known caller's, a request is refused."""
        self.app = service_unavailable if self._places.full else self.config.loaded_app
        super().data_received(data)
        self._settle()

    def on_response_complete(self) -> None:
        """Note that the next request, or the rest of this one, is due."""
        super().on_response_complete()
        self._settle()

    def pause_writing(self) -> None:
        """Note that the client does not take what is sent."""
        super().pause_writing()
        self._settle()

    def resume_writing(self) -> None:
        """Note that it does."""
        super().resume_writing()
        self._settle()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP; uvicorn fails with a trace where an answer was begun, or is still to come."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            super().send_400_response(msg)
        else:
            self.transport.close()

    def shutdown(self) -> None:
        """End as the server ends: at once, but when a whole request is worked on."""
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
        """Note that a request is read or worked on; a known one stays known."""
        if more_body or not (self.place.state == KNOWN_STATE and self.known):
            self._places.move(self.place, OWED_STATE if more_body else ASKED_STATE)


class Listener:
    """Accepts connections, each to a place; uvicorn ends it as it ends asyncio's own servers.

    Parameters
    ----------
    there : socket
        Where it listens.
    places : Places
        Who has a place.
    made : callable
        Returns the protocol of one more connection.
    failed : callable
        Told why it can accept no more.
    tls : SSLContext or None
        With which it speaks TLS.
    """

    def __init__(
        self, there: socket.socket, places: ConnectionTable, made: Callable[[], Connection], failed: Callable[[BaseException | None], None],
        tls: ssl.SSLContext | None = None,
    ) -> None:  # fmt: skip
        self._there, self._places, self._made, self._tls = there, places, made, tls
        self._begun: set[asyncio.Task[None]] = set()
        there.setblocking(False)
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._accept()), loop.create_task(self._watch())]
        for task in self._tasks:
            task.add_done_callback(lambda ended: None if ended.cancelled() else failed(ended.exception()))

    def close(self) -> None:
        """Accept no more; connections that are only being begun are given up."""
        for task in (*self._tasks, *self._begun):
            task.cancel()

    async def wait_closed(self) -> None:
        """Wait until nothing is accepted any more."""
        await asyncio.wait(self._tasks)

    async def _accept(self) -> None:
        while True:
            try:
                for _ in range(ACCEPTS_PER_TURN):
                    await self._one()
            except OSError as error:
                if error.errno in BROKEN_SOCKET_ERRNOS:
                    raise
                self._places.shed()  # there is no descriptor left, most likely
                await asyncio.sleep(ACCEPT_PAUSE_SECONDS)
            await asyncio.sleep(0)

    async def _one(self) -> None:
        """Accept one connection, waiting until there is one."""
        wire, _ = await asyncio.get_running_loop().sock_accept(self._there)
        if not self._places.room():
            wire.close()
            return
        made = self._made()
        task = asyncio.get_running_loop().create_task(self._begin(wire, made))
        made.place.hang_up = task.cancel  # type: ignore[assignment]
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)
        task.add_done_callback(lambda ended: self._given_up(ended, wire, made))

    async def _begin(self, wire: socket.socket, made: Connection) -> None:
        with suppress(OSError):  # the client is gone, or does not speak TLS
            limit = HEADER_SECONDS if self._tls else None
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: made, wire, ssl=self._tls, ssl_handshake_timeout=limit
            )

    def _given_up(self, ended: asyncio.Task[None], wire: socket.socket, made: Connection) -> None:
        if made.transport is None:
            self._places.leave(made.place)
            wire.close()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(OVERDUE_POLL_SECONDS)
            self._places.overdue()
