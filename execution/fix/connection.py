"""The socket of an initiator: it connects, again where a connection is lost, and moves bytes of a `FixSession`.

All of it happens within the calls of the caller's thread. An engine that hangs therefore sends no heartbeat, loses
its session, and the venue cancels what is open.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Callable, Sequence, Set as AbstractSet
from contextlib import suppress
from pathlib import Path
from typing import Final

from ..orders import US_PER_SECOND
from .codec import decode
from .errors import FixError
from .link import Outgoing
from .message import FixMessage
from .session import FixSession, SessionSettings
from .session_store import SessionStore

READ_BYTES: Final = 1 << 16
POLL_SECONDS: Final = 0.2
"""Longest wait on a socket: heartbeats are due between."""
CONNECT_PAUSE_SECONDS: Final = 0.1
CONNECT_SECONDS: Final = 2.0
NO_LINGER: Final = struct.pack("ii", 1, 0)


class FixConnection:
    """A `FixLink` over our own session and a TCP connection.

    Parameters
    ----------
    host, port
        Where the counterparty listens.
    settings
        Of the session, as an initiator.
    path
        The file of the session's numbers and messages.
    clock_us
        Returns the time in microseconds since 1970.

    Raises
    ------
    FixError
        From any call: the counterparty refuses the session, so that trying again would not help.
    """

    def __init__(
        self, host: str, port: int, settings: SessionSettings, path: Path, clock_us: Callable[[], int]
    ) -> None:
        self._address = (host, port)
        self._clock_us = clock_us
        self._store = SessionStore(path)
        self._session = FixSession(settings, self._store)
        self._socket: socket.socket | None = None
        self._unsent = b""
        self._inbox: list[FixMessage] = []
        self._retry_us = 0

    @property
    def withdrawn(self) -> AbstractSet[str]:
        """Return the notes of messages that will never be sent again."""
        return self._store.withdrawn

    def wait_until_ready(self, timeout_s: float) -> bool:
        """Connect where there is no connection, and return whether the other side has what was sent before."""
        end_us = self._clock_us() + int(timeout_s * US_PER_SECOND)
        while True:
            self._pump(0.0 if self._session.synchronised else self._left(end_us))
            if self._session.synchronised or self._clock_us() >= end_us:
                return self._session.synchronised

    def send(self, messages: Sequence[Outgoing]) -> None:
        """Put messages on record, each under its note; all that the socket takes leaves at once."""
        for one in messages:
            self._session.send(one.kind, one.fields, self._clock_us(), one.note)
        self._pump(0.0)

    def receive(self, timeout_s: float) -> list[FixMessage]:
        """Return the messages that came, the oldest first, and wait for one for at most so many seconds."""
        end_us = self._clock_us() + int(timeout_s * US_PER_SECOND)
        while True:
            self._pump(0.0 if self._inbox else self._left(end_us))
            if self._inbox or self._clock_us() >= end_us:
                messages, self._inbox = self._inbox, []
                return messages

    def confirm(self) -> None:
        """Note that what was received is on record."""
        if not self._inbox:
            self._session.confirm()

    def find(self, note: str) -> FixMessage | None:
        """Return the message that was put on record under a note."""
        kept = self._store.read_sent(self._store.notes.get(note, 0))
        return decode(kept[1].encode("latin-1")) if kept and kept[0] == note else None

    def find_number(self, number: int) -> str:
        """Return the note of the message that had a MsgSeqNum; empty where there is none."""
        kept = self._store.read_sent(number)
        return kept[0] if kept else ""

    def close(self) -> None:
        """Log out, wait for the answer for two seconds at most, and close."""
        try:
            if self._socket is not None:
                self._session.log_out("", self._clock_us())
            while self._socket is not None:
                self._pump(POLL_SECONDS)
        except FixError:  # it ends anyway
            pass
        finally:
            self._drop()
            self._store.close()

    def _left(self, end_us: int) -> float:
        return min(max(end_us - self._clock_us(), 0) / US_PER_SECOND, POLL_SECONDS)

    def _pump(self, wait_s: float) -> None:
        """Connect, send and receive what can be; wait for at most so many seconds."""
        if self._socket is None and not self._connect(wait_s):
            return
        assert self._socket is not None
        self._session.tick(self._clock_us())
        self._unsent += self._session.take_output()
        if self._session.closing:
            self._abort()
            return
        try:
            writing = [self._socket] if self._unsent else []
            readable, writable, _ = select.select([self._socket], writing, [], wait_s)
            if writable:
                self._unsent = self._unsent[self._socket.send(self._unsent) :]
            if readable:
                self._read(self._socket.recv(READ_BYTES))
        except OSError:
            self._drop()

    def _read(self, data: bytes) -> None:
        if not data:
            self._drop()
            return
        self._inbox += self._session.receive(data, self._clock_us())
        self._unsent += self._session.take_output()
        if self._session.closing:
            self._end()

    def _end(self) -> None:
        """Send what is left, close, and raise where the session was refused."""
        refusal = self._session.refusal
        if self._socket is not None:
            with suppress(OSError):
                self._socket.settimeout(CONNECT_SECONDS)
                self._socket.sendall(self._unsent)
        self._drop()
        if refusal:
            raise FixError(
                f"The FIX session is refused: {refusal}.",
                field=f"{self._address[0]}:{self._address[1]}",
                hint="Agree with the counterparty on both sequence numbers and CompIDs; then begin again.",
                code="fix_refused",
                exit_code=1,
            )

    def _connect(self, wait_s: float) -> bool:
        """Connect; where nobody listens, wait before it is tried again."""
        if self._clock_us() < self._retry_us:
            time.sleep(min(wait_s, CONNECT_PAUSE_SECONDS))
            return False
        self._retry_us = self._clock_us() + int(CONNECT_PAUSE_SECONDS * US_PER_SECOND)
        try:
            self._socket = socket.create_connection(self._address, CONNECT_SECONDS)
        except OSError:
            return False
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setblocking(False)
        self._session.connect(self._clock_us())
        return True

    def _abort(self) -> None:
        """Leave a counterparty that is silent, and throw away what was not sent: it would leave late."""
        if self._socket is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        self._drop()

    def _drop(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket, self._unsent = None, b""
        self._session.disconnect()
