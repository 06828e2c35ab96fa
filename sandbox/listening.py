"""Where the processes of this machine listen, as Linux's /proc tells it."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path

__all__ = ["descendants", "find_exposed_addresses"]

_LISTENING = "0A"
_PROC = Path("/proc")


def find_exposed_addresses(processes: Iterable[int]) -> list[str]:
    """Return the addresses, `host:port`, sorted, at which these processes can be reached from other machines."""
    owned = {inode for process in processes for inode in _sockets(process)}
    found = {address for inode, address in _listeners() if inode in owned}
    return sorted(address for address in found if not _is_loopback(address.rpartition(":")[0]))


def descendants(process: int) -> list[int]:
    """Return a process and all that it started, and they, as long as each one's parent lives."""
    children: dict[int, list[int]] = {}
    for place in _PROC.glob("[0-9]*"):
        try:
            parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(place.name))
    found = [process]
    for one in found:
        found.extend(children.get(one, []))
    return found


def _sockets(process: int) -> Iterator[str]:
    try:
        places = list((_PROC / str(process) / "fd").iterdir())
    except OSError:
        return
    for place in places:
        try:
            target = os.readlink(place)
        except OSError:
            continue
        if target.startswith("socket:["):
            yield target[8:-1]


def _listeners() -> Iterator[tuple[str, str]]:
    """Yield the inode and the address of every listening TCP socket."""
    for family, name in ((socket.AF_INET, "tcp"), (socket.AF_INET6, "tcp6")):
        try:
            lines = (_PROC / "net" / name).read_text().splitlines()[1:]
        except OSError:
            continue
        for words in map(str.split, lines):
            if words[3] == _LISTENING:
                host, port = words[1].split(":")
                yield words[9], f"{_host(family, host)}:{int(port, 16)}"


def _host(family: socket.AddressFamily, text: str) -> str:
    """Read an address as /proc writes it: words of 32 bits in the machine's own order."""
    raw = b"".join(int(text[i : i + 8], 16).to_bytes(4, "little") for i in range(0, len(text), 8))
    return socket.inet_ntop(family, raw)


def _is_loopback(host: str) -> bool:
    plain = host.removeprefix("::ffff:")
    return plain == "::1" or plain.startswith("127.")
