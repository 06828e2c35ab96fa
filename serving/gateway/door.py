"""The door: how much of one tenant may be open at once, from the first byte of a call to the last of its reply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import anyio
from starlette.types import Receive, Scope

from ...router import BadCall, QueueFull
from .outlet import ClientGone
from .quota import FairnessSettings

__all__ = ["AdmittedCall", "GatewayDoor"]

MAX_CALL_BYTES = 32 << 20
"""Of one call."""
CALLS_BETWEEN = 16
"""Calls of a tenant that may be on their way in or out, beside those that wait and those that hold a place."""


class GatewayDoor:
    """Counts what each tenant has open, before a byte of a call's body is read.

    Parameters
    ----------
    fairness : FairnessSettings
        Places, and how many calls of a tenant may wait.
    most_bytes : int
        Of all bodies that one tenant has open.
    """

    def __init__(self, fairness: FairnessSettings, most_bytes: int) -> None:
        self._fairness = fairness
        self._most_bytes = most_bytes
        self._calls: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()

    @contextmanager
    def open(self, name: str) -> Iterator[AdmittedCall]:
        """Let a call of a tenant in.

        Raises
        ------
        QueueFull
            If more are open than may wait and hold places.
        """
        most = self._fairness.of(name).queue + self._fairness.places + CALLS_BETWEEN
        if self._calls[name] >= most:
            raise QueueFull(
                f"{most} calls of {name} are open already", field=f"tenants.{name}.queue", allowed=most,
                hint="Ask again when some were answered, ask fewer at once, or raise the limit.",
            )  # fmt: skip
        visit = AdmittedCall(self, name)
        self._calls[name] += 1
        try:
            yield visit
        finally:
            self._calls[name] -= 1
            self._bytes[name] -= visit.filled

    def fill(self, visit: AdmittedCall, many: int) -> None:
        """Let more of a call in; `QueueFull` if its tenant has no room for as much."""
        if self._bytes[visit.name] + many > self._most_bytes:
            raise QueueFull(
                f"calls of {visit.name} that are open hold as many bytes as they may", field="megabytes",
                allowed=f"{self._most_bytes:,} bytes",
                hint="Ask again when some were answered, ask fewer at once, or raise `megabytes` of the file of tenants.",
            )  # fmt: skip
        self._bytes[visit.name] += many
        visit.filled += many


@dataclass
class AdmittedCall:
    """One call that was let in, and the bytes that it may fill."""

    door: GatewayDoor
    name: str
    filled: int = 0

    async def body(self, scope: Scope, receive: Receive, seconds: float) -> bytes:
        """Return the call's body, for which there is room from its first byte on.

        Raises
        ------
        BadCall
            If it is larger than a call may be, or not here in time.
        QueueFull
            If the tenant has no room for it.
        """
        try:
            with anyio.fail_after(seconds):
                return await self._read(_declared_length(scope), receive)
        except TimeoutError:
            raise _bad_body(408, "the body did not come", f"{seconds:g} s") from None

    async def _read(self, told: int, receive: Receive) -> bytes:
        found = bytearray()
        self._room(told)
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            found += message.get("body", b"")
            self._room(len(found))
            if not message.get("more_body", False):
                return bytes(found)

    def _room(self, many: int) -> None:
        """Make sure of room for so many bytes in all."""
        if many > MAX_CALL_BYTES:
            raise _bad_body(413, "the body is too large", f"{MAX_CALL_BYTES:,} bytes")
        if many > self.filled:
            self.door.fill(self, many - self.filled)


def _declared_length(scope: Scope) -> int:
    """Return how long a body says that it is, 0 if it does not."""
    value: bytes = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    return int(value) if value.isdigit() and len(value) < 20 else 0


def _bad_body(status: int, what: str, allowed: str) -> BadCall:
    refused = BadCall(what, field="body", allowed=allowed)
    refused.status = status
    return refused
