"""The servers' addresses, sockets and signals."""

from __future__ import annotations

import re
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from ...errors import DeskError

__all__ = ["address", "format_host", "open_listener", "quiet_signals"]

BACKLOG = 4096
"""Connections that the system completes before they are accepted; with too few, an honest client waits a second."""


def address(text: str, option: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT."""
    found = re.fullmatch(r"\[?([^\[\]]+?)\]?:(\d{1,5})", text.strip())
    if found is None or int(found[2]) > 65_535:
        raise typer.BadParameter(f"{text!r} is no HOST:PORT such as 127.0.0.1:8765", param_hint=option)
    return found[1], int(found[2])


def open_listener(host: str, port: int, option: str) -> socket.socket:
    """Return a listening socket, before anything slow begins; port 0 is any that is free.

    Raises
    ------
    DeskError
        The address is in use or not permitted.
    """
    try:
        asked = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        family, kind, protocol, _, place = asked[0]
        found = socket.socket(family, kind, protocol)  # without the protocol named, every answer waits 40 ms for an ACK
        try:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(place)
            found.listen(BACKLOG)
        except OSError:
            found.close()
            raise
    except OSError as error:
        raise DeskError(
            f"The servers cannot listen at {host}:{port}: {error.strerror or error}.",
            field=option, got=f"{host}:{port}", hint="Name another port, or 0 for any that is free.",
            code="address", exit_code=1,
        ) from None  # fmt: skip
    return found


def format_host(host: str) -> str:
    """Return a host as it is written in an address."""
    return f"[{host}]" if ":" in host else host


@contextmanager
def quiet_signals() -> Iterator[list[int]]:
    """Record SIGINT and SIGTERM outside the servers' own handling, instead of their usual effect.

    Yields the list of signals that came while no server handled them, such as one before the start.
    """
    came: list[int] = []
    kept = {
        number: signal.signal(number, lambda which, _: came.append(which)) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield came
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
