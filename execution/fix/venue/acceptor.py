"""The FIX acceptor of the simulated venue: any number of sessions, one thread, and a journal of what came in.

What a client sends is in the journal before the exchange sees it; what the exchange answers has its number on the disk
before it leaves. After `kill -9` the journal is played into a new exchange: each order is there once, and each report
that had no number yet gets one.
"""

from __future__ import annotations

import re
import selectors
import socket
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...orders import US_PER_SECOND
from ..codec import FrameReader, decode, encode
from ..dictionary import BEGIN_STRINGS
from ..errors import FixError, GarbledMessage, InvalidMessage
from ..journal import LineJournal
from ..message import FixMessage
from ..session import FixSession, SessionSettings
from ..session_store import SessionStore
from .exchange import Exchange, VenueReport
from .faults import MALFORMED_KINDS, VenueFaults, make_malformed

COMP_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
VENUE_NAME: Final = "VENUE"
LOST: Final = "-"
SOCKET_WAIT_SECONDS: Final = 0.5
"""Longest wait for a socket: heartbeats are due between."""
READ_BYTES: Final = 1 << 16
MOST_UNSENT: Final = 16 << 20
"""Bytes that a client may leave unread before its connection is closed."""
HELLO_US: Final = 10 * US_PER_SECOND
HEARTBEAT_SECONDS: Final = 30
RESENT: Final = frozenset("89rj")
VERSIONS: Final = {begin: version for version, begin in BEGIN_STRINGS.items()}


@dataclass(frozen=True, slots=True)
class AcceptorSettings:
    """How the acceptor treats its clients.

    Attributes
    ----------
    latency_us
        Time between an order and its reports.
    faults
        What goes wrong on demand.
    cancel_on_disconnect
        Whether the open orders of a session that is gone are cancelled.
    """

    latency_us: int
    faults: VenueFaults
    cancel_on_disconnect: bool


class _Client:
    """A connection, and its session once the Logon came."""

    def __init__(self, connection: socket.socket, now_us: int) -> None:
        self.socket = connection
        self.session: FixSession | None = None
        self.hello = b""
        self.unsent = bytearray()
        self.since_us = now_us

    @property
    def name(self) -> str:
        return self.session.settings.target if self.session else ""


class VenueAcceptor:
    """Serves an exchange over FIX until it is told to stop.

    Parameters
    ----------
    listener
        A listening socket.
    folder
        Of the journal and the sessions; what is there already is continued.
    exchange
        A new exchange, into which the journal is played.
    settings
        How clients are treated.
    clock_us
        Returns the time in microseconds since 1970.
    tell
        Called with a line on each session that comes or goes.
    """

    def __init__(
        self,
        listener: socket.socket,
        folder: Path,
        exchange: Exchange,
        settings: AcceptorSettings,
        clock_us: Callable[[], int],
        tell: Callable[[str], None],
    ) -> None:
        self._exchange, self._settings, self._clock_us, self._tell = exchange, settings, clock_us, tell
        self._folder, self._listener = folder, listener
        self._stack = ExitStack()
        self._stores: dict[str, SessionStore] = {}
        self._clients: dict[str, _Client] = {}
        self._unknown: list[_Client] = []
        self._outboxes: dict[str, deque[tuple[int, VenueReport]]] = {}
        self._taken: dict[tuple[str, int], int] = {}
        self._stopping = False
        self._journal = self._stack.enter_context(LineJournal(folder / "orders.journal"))
        self._selector = self._stack.enter_context(selectors.DefaultSelector())
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ)
        self._alarm, self._alarmed = socket.socketpair()
        self._stack.callback(self._alarm.close)
        self._stack.callback(self._alarmed.close)
        self._selector.register(self._alarmed, selectors.EVENT_READ)
        self._play()

    # The journal.

    def _play(self) -> None:
        """Play the journal into the exchange; sessions that had open orders are gone now."""
        for line in self._journal.lines:
            at_us, session, resets, text = line.split(" ", 3)
            if text == LOST:
                self._queue(self._exchange.lose(session, int(at_us)), 0)
                continue
            message = decode(text.encode("latin-1"))
            self._taken[session, int(resets)] = message.seq
            self._queue(self._exchange.handle(session, message, int(at_us)), 0)
        self._journal.lines.clear()
        for session in sorted({order.session for order in self._exchange.list_open()}):
            self._lose(session)

    def _take(self, client: _Client, message: FixMessage) -> None:
        """Write an application message into the journal, and hand it to the exchange."""
        assert client.session is not None
        name, now_us = client.name, self._clock_us()
        resets = client.session.store.resets
        self._journal.add(f"{now_us} {name} {resets} {encode(message).decode('latin-1')}")
        self._taken[name, resets] = message.seq
        self._queue(self._exchange.handle(name, message, now_us), now_us + self._settings.latency_us)

    def _lose(self, name: str) -> None:
        """Cancel the open orders of a session that is gone, where the venue does so."""
        if self._settings.cancel_on_disconnect:
            now_us = self._clock_us()
            reports = self._exchange.lose(name, now_us)
            if reports:
                self._journal.add(f"{now_us} {name} 0 {LOST}")
                self._journal.sync()
            self._queue(reports, now_us + self._settings.latency_us)

    def _queue(self, reports: list[VenueReport], due_us: int) -> None:
        for report in reports:
            self._outboxes.setdefault(report.session, deque()).append((due_us, report))

    # The loop.

    def stop(self) -> None:
        """End `run` at once, also from a signal handler."""
        self._stopping = True
        self._alarm.send(b"!")

    def run(self) -> None:
        """Serve until `stop`."""
        while not self._stopping:
            self.step(SOCKET_WAIT_SECONDS)

    def step(self, wait_s: float) -> None:
        """Do what is due, and wait for a socket for at most so many seconds."""
        for key, events in self._selector.select(min(wait_s, self._find_wait())):
            client = key.data
            if client is None:
                self._accept()  # of the listener; after `stop` nobody is there, and the loop ends
                continue
            if events & selectors.EVENT_READ and self._is_known(client):
                self._read(client)
            if events & selectors.EVENT_WRITE and self._is_known(client):
                self._write(client)
        now_us = self._clock_us()
        for client in list(self._clients.values()):
            self._serve(client, now_us)
        for client in [one for one in self._unknown if now_us - one.since_us > HELLO_US]:
            self._close(client, "no Logon came")

    def _find_wait(self) -> float:
        """Return the seconds until the next report of a connected session is due."""
        now_us = self._clock_us()
        due = [self._outboxes[name][0][0] for name in self._clients if self._outboxes.get(name)]
        return max(min(due) - now_us, 0) / US_PER_SECOND if due else SOCKET_WAIT_SECONDS

    def _is_known(self, client: _Client) -> bool:
        return client in self._unknown or self._clients.get(client.name) is client

    def _accept(self) -> None:
        with suppress(OSError):
            connection, _ = self._listener.accept()
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client = _Client(connection, self._clock_us())
            self._unknown.append(client)
            self._selector.register(connection, selectors.EVENT_READ, client)

    def _read(self, client: _Client) -> None:
        try:
            data = client.socket.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._close(client, "the connection was lost")
            return
        if client.session is None:
            client.hello += data
            data = self._greet(client)
        if data and client.session is not None:
            self._receive(client, client.session, data)

    def _greet(self, client: _Client) -> bytes:
        """Find the session of a new connection, and return the bytes for it once the Logon is whole."""
        reader = FrameReader()
        frames = reader.feed(client.hello)
        if not frames:
            if reader.garbled or len(client.hello) > READ_BYTES:
                self._close(client, "the first bytes are no Logon")
            return b""
        try:
            logon = decode(frames[0])
            problem = self._find_hello_problem(logon)
        except (InvalidMessage, GarbledMessage) as error:
            problem = error.message
        if problem:
            self._close(client, problem)
            return b""
        self._begin_session(client, logon)
        return client.hello

    def _find_hello_problem(self, logon: FixMessage) -> str:
        name = logon.get(49)
        if logon.begin not in VERSIONS:
            return f"BeginString {logon.begin} is not spoken here"
        if logon.get(56) != VENUE_NAME:
            return f"TargetCompID must be {VENUE_NAME}"
        if COMP_ID.fullmatch(name) is None or name == VENUE_NAME:
            return "SenderCompID may have 32 letters, digits, - and _"
        return f"{name} is connected already" if name in self._clients else ""

    def _begin_session(self, client: _Client, logon: FixMessage) -> None:
        name = logon.get(49)
        store = self._stores.get(name)
        if store is None:
            store = self._stores[name] = SessionStore(self._folder / "sessions" / f"{name}.journal")
            self._stack.callback(store.close)
            outbox = self._outboxes.get(name, deque())
            self._outboxes[name] = deque(pair for pair in outbox if pair[1].key not in store.notes)
        store.set_next_in(max(store.next_in, self._taken.get((name, store.resets), 0) + 1))
        settings = SessionSettings(VERSIONS[logon.begin], VENUE_NAME, name, False, HEARTBEAT_SECONDS, RESENT)
        client.session = FixSession(settings, store)
        client.session.connect(self._clock_us())
        self._unknown.remove(client)
        self._clients[name] = client

    def _receive(self, client: _Client, session: FixSession, data: bytes) -> None:
        was_up = session.state == "up"
        messages = session.receive(data, self._clock_us())
        if session.state == "up" and not was_up:
            self._tell(f"{client.name} logged on ({session.settings.version})")
        broken = ""
        for message in messages:
            self._take(client, message)
            if message.kind == "D" and self._settings.faults.breaks_connection(client.name, message.get(11)):
                broken = "the connection breaks on demand"
        self._journal.sync()
        session.confirm()
        if broken:
            self._close(client, broken)

    # Sending.

    def _serve(self, client: _Client, now_us: int) -> None:
        """Send what is due to a client, and close its connection where the session ends."""
        session = client.session
        assert session is not None
        session.tick(now_us)
        outbox = self._outboxes.get(client.name)
        while session.state == "up" and outbox and outbox[0][0] <= now_us:
            self._send_report(client, session, outbox.popleft()[1], now_us)
        client.unsent += session.take_output()
        self._write(client)
        if self._is_known(client) and (session.closing or len(client.unsent) > MOST_UNSENT):
            self._close(client, session.closing or "the client does not read")

    def _send_report(self, client: _Client, session: FixSession, report: VenueReport, now_us: int) -> None:
        fault = self._settings.faults.choose_malformed(report.session, report.key)
        if fault:
            client.unsent += session.take_output()  # what comes before the malformed message
            number = session.store.next_out
            whole = session.preview(report.kind, report.fields, now_us)
            if fault == MALFORMED_KINDS[-1]:  # its frame is intact, so it takes the number
                session.store.set_next_out(number + 1)
                session.store.sync()
            client.unsent += make_malformed(fault, whole)
        fields = report.fields
        if report.kind == "r" and session.settings.version == "FIX.5.0SP2":
            fields = (*fields, (1369, report.key))
        session.send(report.kind, fields, now_us, report.key)

    def _write(self, client: _Client) -> None:
        try:
            if client.unsent:
                del client.unsent[: client.socket.send(client.unsent)]
        except BlockingIOError:
            pass
        except OSError:
            self._close(client, "the connection was lost")
            return
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if client.unsent else 0)
        if self._selector.get_key(client.socket).events != events:
            self._selector.modify(client.socket, events, client)

    def _close(self, client: _Client, why: str) -> None:
        self._selector.unregister(client.socket)
        client.socket.close()
        if client in self._unknown:
            self._unknown.remove(client)
            self._tell(f"a connection was refused: {why}")
            return
        name = client.name
        del self._clients[name]
        self._tell(f"{name} is gone: {why}")
        self._lose(name)

    def close(self) -> None:
        """Say goodbye to all clients, and close sockets and files; what was not read stays unread."""
        now_us = self._clock_us()
        for client in [*self._clients.values(), *self._unknown]:
            with suppress(OSError, FixError):
                if client.session is not None:
                    client.session.log_out("the venue ends", now_us)
                    client.unsent += client.session.take_output()
                    client.socket.send(client.unsent)
            client.socket.close()
        self._listener.close()
        self._stack.close()
