"""The client's side of a call: limits on a tenant's open calls, and replies relayed to slow clients.

A client may read slowly; the endpoint and its places do not wait for it.
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
"""Bytes of one call."""
CALLS_BETWEEN = 16
"""Calls of a tenant that may be arriving or leaving, besides those that wait or hold a place."""
MAX_RELAYED_BYTES = 1 << 20
"""Bytes of one answer that are buffered for a slow client: some 5,000 pieces of a stream."""


class TenantAdmission:
    """Count the open calls and bytes of each tenant, before a call's body is read.

    Parameters
    ----------
    fairness : FairnessSettings
        Places, and how many calls of a tenant may wait.
    most_bytes : int
        Bytes of all bodies that one tenant may have open.
    """

    def __init__(self, fairness: FairnessSettings, most_bytes: int) -> None:
        self._fairness = fairness
        self._most_bytes = most_bytes
        self._calls: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()

    @contextmanager
    def open(self, name: str) -> Iterator[AdmittedCall]:
        """Admit a call of a tenant.

        Raises
        ------
        QueueFull
            If the tenant has as many calls open as it may.
        """
        most = self._fairness.find_tenant(name).queue + self._fairness.places + CALLS_BETWEEN
        if self._calls[name] >= most:
            raise QueueFull(
                f"{most} calls of {name} are open already",
                field=f"tenants.{name}.queue",
                allowed=most,
                hint="Ask again when some were answered, ask fewer at once, or raise the limit.",
            )
        visit = AdmittedCall(self, name)
        self._calls[name] += 1
        try:
            yield visit
        finally:
            self._calls[name] -= 1
            self._bytes[name] -= visit.filled

    def fill(self, visit: AdmittedCall, many: int) -> None:
        """Reserve more bytes for a call; `QueueFull` if its tenant has no room for them."""
        if self._bytes[visit.name] + many > self._most_bytes:
            raise QueueFull(
                f"calls of {visit.name} that are open hold as many bytes as they may",
                field="megabytes",
                allowed=f"{self._most_bytes:,} bytes",
                hint=(
                    "Ask again when some were answered, ask fewer at once, or raise `megabytes` of the file of tenants."
                ),
            )
        self._bytes[visit.name] += many
        visit.filled += many


@dataclass
class AdmittedCall:
    """One admitted call, and the bytes reserved for it."""

    door: TenantAdmission
    name: str
    filled: int = 0

    async def read_body(self, scope: Scope, receive: Receive, seconds: float) -> bytes:
        """Return the call's body; room for it is reserved before it is read.

        Raises
        ------
        GatewayError
            If it is larger than a call may be, or does not arrive in time.
        QueueFull
            If the tenant has no room for it.
        """
        try:
            with anyio.fail_after(seconds):
                return await self._receive_body(_read_content_length(scope), receive)
        except TimeoutError:
            raise _make_body_error(408, "the body did not come", f"{seconds:g} s") from None

    async def _receive_body(self, length: int, receive: Receive) -> bytes:
        body = bytearray()
        self._reserve(length)
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            body += message.get("body", b"")
            self._reserve(len(body))
            if not message.get("more_body", False):
                return bytes(body)

    def _reserve(self, many: int) -> None:
        """Reserve room for `many` bytes in total."""
        if many > MAX_CALL_BYTES:
            raise _make_body_error(413, "the body is too large", f"{MAX_CALL_BYTES:,} bytes")
        if many > self.filled:
            self.door.fill(self, many - self.filled)


def _read_content_length(scope: Scope) -> int:
    """Return the declared length of a body in bytes, 0 if there is none."""
    value: bytes = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    return int(value) if value.isdigit() and len(value) < 20 else 0


def _make_body_error(status: int, what: str, allowed: str) -> GatewayError:
    return bad_call(what, field="body", allowed=allowed, status=status)


class ClientGone(Exception):
    """The client hung up, or reads no more."""


@dataclass
class ReplyRelay:
    """Buffer an answer from the endpoint and send it as fast as the client reads it.

    A client is dropped if it reads nothing for `patience` seconds, or if the endpoint, `MAX_RELAYED_BYTES` bytes ahead,
    waited for it for a quarter of that in total, because the call holds its place meanwhile.
    """

    send: Send
    patience: float
    seconds: Callable[[], float]
    started: bool = False
    _pending: deque[Message] = field(default_factory=deque)
    _bytes: int = 0
    _waited: float = 0.0
    _changed: anyio.Event = field(default_factory=anyio.Event)

    async def __call__(self, message: Message) -> None:
        """Buffer a piece of the answer; wait only if too much of it is buffered."""
        if self._bytes > MAX_RELAYED_BYTES:
            await self._wait_for_room()
        self.started = True
        self._pending.append(message)
        self._bytes += len(message.get("body", b""))
        self._notify()

    async def drain(self) -> None:
        """Wait until the whole buffer is sent."""
        while self._pending:
            await self._changed.wait()

    async def run(self, call_scope: anyio.CancelScope) -> None:
        """Send the buffered pieces until the client is gone, which cancels the call."""
        try:
            while True:
                while not self._pending:
                    await self._changed.wait()
                message = self._pending[0]
                with anyio.fail_after(self.patience):
                    await self.send(message)
                self._pending.popleft()
                self._bytes -= len(message.get("body", b""))
                self._notify()
        except (TimeoutError, OSError):
            call_scope.cancel()

    async def _wait_for_room(self) -> None:
        start = self.seconds()
        try:
            with anyio.fail_after(max(0.0, self.patience / 4 - self._waited)):
                while self._bytes > MAX_RELAYED_BYTES:
                    await self._changed.wait()
        except TimeoutError:
            raise ClientGone from None
        self._waited += self.seconds() - start

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def relay(self, work: Callable[[], Awaitable[str]], receive: Receive) -> str:
        """Run `work`, which answers a call, and send the answer; return the outcome, "left" if the client went away."""
        outcome, failure, result = "left", None, ""
        async with anyio.create_task_group() as group:
            group.start_soon(_cancel_when_gone, receive, group.cancel_scope)
            group.start_soon(self.run, group.cancel_scope)
            try:
                result = await work()
            except ClientGone:
                group.cancel_scope.cancel()
            except AlphaloomError as error:  # a group would wrap it
                failure = error
            await self.drain()
            outcome = result
            group.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return outcome


async def _cancel_when_gone(receive: Receive, call_scope: anyio.CancelScope) -> None:
    """Cancel a call whose client hangs up."""
    while (await receive())["type"] != "http.disconnect":
        pass
    call_scope.cancel()
