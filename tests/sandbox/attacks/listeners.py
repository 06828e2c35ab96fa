"""Those who listen on the host, and tell whether anybody spoke to them."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Self

__all__ = ["Listeners"]


class Listeners:
    """TCP and UDP on loopback, a socket with a path, a socket with a name, one that takes datagrams."""

    def __init__(self, folder: Path, mark: str) -> None:
        self.path, self.datagram, self.abstract = str(folder / "socket"), str(folder / "datagram"), f"{mark}-listener"
        self.tcp, self.udp = _internet(socket.SOCK_STREAM), _internet(socket.SOCK_DGRAM)
        six = [
            _internet(kind, socket.AF_INET6, port)
            for kind, port in ((socket.SOCK_STREAM, self.tcp_port), (socket.SOCK_DGRAM, self.udp_port))
        ]
        local = [_local(self.path), _local("\0" + self.abstract)]
        letters = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        letters.bind(self.datagram)
        for path in (self.path, self.datagram):
            os.chmod(path, 0o777)
        self._streams = [("tcp", self.tcp), ("unix path", local[0]), ("unix name", local[1])]
        self._letters = [("udp", self.udp), ("unix datagram", letters)]
        for wire, names in zip(six, (self._streams, self._letters), strict=True):
            if wire is not None:
                names.append(("ipv6", wire))
        for _, wire in (*self._streams, *self._letters):
            wire.setblocking(False)

    @property
    def tcp_port(self) -> int:
        """Return the port of TCP."""
        return int(self.tcp.getsockname()[1])

    @property
    def udp_port(self) -> int:
        """Return the port of UDP."""
        return int(self.udp.getsockname()[1])

    def heard(self) -> list[str]:
        """Return who was spoken to since the last time."""
        return [name for name, wire in self._streams if _accepted(wire)] + [
            name for name, wire in self._letters if _received(wire)
        ]

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop listening."""
        for _name, wire in (*self._streams, *self._letters):
            wire.close()


def _internet(kind: int, family: int = socket.AF_INET, port: int = 0) -> socket.socket:
    wire = socket.socket(family, kind)
    try:
        if family == socket.AF_INET6:
            wire.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        wire.bind(("127.0.0.1" if family == socket.AF_INET else "::1", port))
    except OSError:
        wire.close()
        if family == socket.AF_INET:
            raise
        print("no IPv6 on loopback: nobody listens there", file=sys.stderr)
        return None  # type: ignore[return-value]
    if kind == socket.SOCK_STREAM:
        wire.listen(64)
    return wire


def _local(name: str) -> socket.socket:
    wire = socket.socket(socket.AF_UNIX)
    wire.bind(name)
    wire.listen(64)
    return wire


def _accepted(wire: socket.socket) -> bool:
    met = False
    while True:
        try:
            wire.accept()[0].close()
        except BlockingIOError:
            return met
        met = True


def _received(wire: socket.socket) -> bool:
    met = False
    while True:
        try:
            wire.recv(1 << 16)
        except BlockingIOError:
            return met
        met = True
