"""The servers' addresses, sockets and signals."""

from __future__ import annotations

import re
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from ...errors import DeskError

BACKLOG = 4096
"""Connections that the system completes before they are accepted; with too few, an honest client waits a second."""


def address(text: str, option: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT."""
    match = re.fullmatch(r"\[?([^\[\]]+?)\]?:(\d{1,5})", text.strip())
    if match is None or int(match[2]) > 65_535:
        raise typer.BadParameter(f"{text!r} is no HOST:PORT such as 127.0.0.1:8765", param_hint=option)
    return match[1], int(match[2])


def open_listener(host: str, port: int, option: str) -> socket.socket:
    """Return a listening socket, before anything slow begins; port 0 is any that is free.

    Raises
    ------
    DeskError
        The address is in use or not permitted.
    """
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        family, kind, protocol, _, place = addresses[0]
        listener = socket.socket(
            family, kind, protocol
        )  # without the protocol named, every answer waits 40 ms for an ACK
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(place)
            listener.listen(BACKLOG)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise DeskError(
            f"The servers cannot listen at {host}:{port}: {error.strerror or error}.",
            field=option,
            got=f"{host}:{port}",
            hint="Name another port, or 0 for any that is free.",
            code="address",
            exit_code=1,
        ) from None
    return listener


def format_host(host: str) -> str:
    """Return a host as it is written in an address."""
    return f"[{host}]" if ":" in host else host


@contextmanager
def quiet_signals() -> Iterator[list[int]]:
    """Record SIGINT and SIGTERM outside the servers' own handling, instead of their usual effect.

    Yields the list of signals that came while no server handled them, such as one before the start.
    """
    signals: list[int] = []
    handlers = {
        number: signal.signal(number, lambda which, _: signals.append(which))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield signals
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
