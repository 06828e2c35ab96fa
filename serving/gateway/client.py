"""The client's side of a call: how much its tenant may have open at once, and replies relayed to slow clients.

A client may read slowly. The endpoint and its places do not wait for it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio
from starlette.types import Message, Receive, Scope, Send

from ...ledger import AlphaloomError
from ..errors import GatewayError, QueueFull, bad_call
from .tenants import FairnessSettings

MAX_CALL_BYTES = 32 << 20
"""Of one call."""
CALLS_BETWEEN = 16
"""Calls of a tenant that may be on their way in or out, beside those that wait and those that hold a place."""
MAX_RELAYED_BYTES = 1 << 20
"""Bytes of one answer that are kept for a client which does not take them at once: some 5,000 pieces of a stream."""


class TenantAdmission:
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

    door: TenantAdmission
    name: str
    filled: int = 0

    async def read_body(self, scope: Scope, receive: Receive, seconds: float) -> bytes:
        """Return the call's body, for which there is room from its first byte on.

        Raises
        ------
        GatewayError
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


def _bad_body(status: int, what: str, allowed: str) -> GatewayError:
    return bad_call(what, field="body", allowed=allowed, status=status)


class ClientGone(Exception):
    """The client hung up, or takes nothing any more."""


@dataclass
class ReplyRelay:
    """Takes an answer as fast as it comes and hands it on as fast as the client takes it.

    A client is given up that takes nothing for `patience` seconds; and one that takes so little that the endpoint waited
    for it, `MAX_RELAYED_BYTES` bytes ahead, for a quarter of them in all: a place is held meanwhile.
    """

    send: Send
    patience: float
    seconds: Callable[[], float]
    begun: bool = False
    _kept: deque[Message] = field(default_factory=deque)
    _bytes: int = 0
    _waited: float = 0.0
    _changed: anyio.Event = field(default_factory=anyio.Event)

    async def __call__(self, message: Message) -> None:
        """Take a piece of the answer; wait only if too much of it lies here."""
        if self._bytes > MAX_RELAYED_BYTES:
            await self._room()
        self.begun = True
        self._kept.append(message)
        self._bytes += len(message.get("body", b""))
        self._change()

    async def drain(self) -> None:
        """Wait until all of it was handed on."""
        while self._kept:
            await self._changed.wait()

    async def run(self, whole: anyio.CancelScope) -> None:
        """Hand on what comes, until the client is gone, which ends the whole call."""
        try:
            while True:
                while not self._kept:
                    await self._changed.wait()
                message = self._kept[0]
                with anyio.fail_after(self.patience):
                    await self.send(message)
                self._kept.popleft()
                self._bytes -= len(message.get("body", b""))
                self._change()
        except (TimeoutError, OSError):
            whole.cancel()

    async def _room(self) -> None:
        began = self.seconds()
        try:
            with anyio.fail_after(max(0.0, self.patience / 4 - self._waited)):
                while self._bytes > MAX_RELAYED_BYTES:
                    await self._changed.wait()
        except TimeoutError:
            raise ClientGone from None
        self._waited += self.seconds() - began

    def _change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def relay(self, work: Callable[[], Awaitable[str]], receive: Receive) -> str:
        """Do what answers a call and hand the answer on; return what became of it, "left" if the client went away."""
        became, failed, found = "left", None, ""
        async with anyio.create_task_group() as group:
            group.start_soon(_cancel_when_gone, receive, group.cancel_scope)
            group.start_soon(self.run, group.cancel_scope)
            try:
                found = await work()
            except ClientGone:
                group.cancel_scope.cancel()
            except AlphaloomError as error:  # a group would wrap it
                failed = error
            await self.drain()
            became = found
            group.cancel_scope.cancel()
        if failed is not None:
            raise failed
        return became


async def _cancel_when_gone(receive: Receive, whole: anyio.CancelScope) -> None:
    """End a call whose client hangs up."""
    while (await receive())["type"] != "http.disconnect":
        pass
    whole.cancel()
