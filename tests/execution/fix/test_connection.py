"""The socket of a session: a counterparty that is silent is gone, and a session that ends ends."""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path

from alphaloom.execution.fix import TRADING_RESENT, FixConnection, FixSession, Outgoing, SessionSettings, SessionStore

from .wire import ORDER, US

HEARTBEAT_S = 30
SECOND = 1_000_000


class QuietVenue:
    """A venue that answers until it is told to be silent; a host that is gone closes no connection."""

    def __init__(self, folder: Path) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.store = SessionStore(folder / "venue")
        self.session = FixSession(
            SessionSettings("FIX.4.4", "VENUE", "DESK", False, HEARTBEAT_S, frozenset("8")), self.store
        )
        self.connections: list[socket.socket] = []

    def accept(self) -> None:
        self.connections.append(self.listener.accept()[0])
        self.connections[-1].settimeout(0.2)
        self.session.connect(US)

    def answer(self, now_us: int) -> None:
        """Take what came, and answer it."""
        try:
            self.session.receive(self.connections[-1].recv(1 << 16), now_us)
        except TimeoutError:
            return
        self.connections[-1].sendall(self.session.take_output())

    def drain(self) -> bytes:
        """Return what came on all connections and was not read."""
        data = b""
        for one in self.connections:
            with suppress(ConnectionResetError):  # the desk left it
                data += one.recv(1 << 16)
        return data

    def close(self) -> None:
        for one in (*self.connections, self.listener):
            one.close()
        self.store.close()


class Desk:
    """A connection on a clock that a test moves."""

    def __init__(self, folder: Path, port: int) -> None:
        self.now_us, self.step_us = US, SECOND // 100
        settings = SessionSettings("FIX.4.4", "DESK", "VENUE", True, HEARTBEAT_S, TRADING_RESENT)
        self.link = FixConnection("127.0.0.1", port, settings, folder / "desk", self.read_clock)

    def read_clock(self) -> int:
        self.now_us += self.step_us
        return self.now_us


def log_on(folder: Path) -> tuple[QuietVenue, Desk]:
    venue = QuietVenue(folder)
    desk = Desk(folder, venue.listener.getsockname()[1])
    desk.link.wait_until_ready(0)
    venue.accept()
    for _ in range(4):
        venue.answer(desk.now_us)
        desk.link.wait_until_ready(0.02)
    assert desk.link.wait_until_ready(0)
    return venue, desk


def test_a_counterparty_that_is_silent_for_too_long_is_left_and_no_order_waits_in_its_socket(tmp_path: Path) -> None:
    venue, desk = log_on(tmp_path)
    desk.now_us += HEARTBEAT_S * 3 * SECOND
    assert not desk.link.wait_until_ready(0.05)  # connected anew, and nobody answers the Logon
    desk.link.send([Outgoing("D", ORDER, "0f3a-1")])
    venue.accept()
    desk.now_us += 11 * SECOND  # no Logon came in 10 seconds
    assert not desk.link.wait_until_ready(0.05)
    venue.accept()
    assert b"35=D" not in venue.drain()
    desk.link.close()
    venue.close()


def test_a_session_ends_although_nobody_answers_the_logout(tmp_path: Path) -> None:
    venue, desk = log_on(tmp_path)
    desk.step_us = SECOND
    began_us = desk.now_us
    desk.link.close()
    assert desk.now_us - began_us < 20 * SECOND
    venue.close()
