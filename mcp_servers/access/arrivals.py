"""What is checked of a request before anybody is known behind it: its addresses, and how many came."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LOCAL_HOSTS = ("127.0.0.1:*", "localhost:*", "[::1]:*")
"""Values of the header Host that reach this machine alone; ``:*`` stands for any port."""
LOCAL_ORIGINS = tuple(f"http://{host}" for host in LOCAL_HOSTS)


@dataclass
class Bucket:
    """A token bucket: the requests that a caller may still make, refilled over time."""

    left: float
    at: float

    def take(self, per_minute: int, now: float) -> float:
        """Take one request and return 0; if none is left, return the seconds until the next one."""
        self.left = min(per_minute, self.left + (now - self.at) * per_minute / 60.0)
        self.at = now
        if self.left < 1.0:
            return (1.0 - self.left) * 60.0 / per_minute
        self.left -= 1.0
        return 0.0


def find_misdirection(
    headers: Iterable[tuple[bytes, bytes]], hosts: Sequence[str], origins: Sequence[str]
) -> int | None:
    """Return the HTTP status for a request with a wrong Host (421) or Origin (403); None if both are allowed."""
    pairs = list(headers)
    named, came_from = ([value for name, value in pairs if name == header] for header in (b"host", b"origin"))
    if len(named) != 1 or not _is_allowed_host(named[0], hosts):
        return 421
    return None if all(_is_allowed_host(origin, origins) for origin in came_from) else 403


def _is_allowed_host(value: bytes, allowed: Sequence[str]) -> bool:
    """Return whether a Host or Origin is allowed. It is compared as a whole, since anyone can own a longer name."""
    host = value.decode("latin-1").lower()
    name, _, port = host.rpartition(":")
    return host in allowed or (f"{name}:*" in allowed and re.fullmatch(r"[0-9]{1,5}", port) is not None)
