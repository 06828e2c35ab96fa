"""Where an answer goes: to a client that may take its time, while the endpoint and its places may not wait for that."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio
from starlette.types import Message, Receive, Send

from ...ledger import AlphaloomError

__all__ = ["ClientGone", "Outlet"]

MAX_OUTLET_BYTES = 1 << 20
"""Bytes of one answer that are kept for a client which does not take them at once: some 5,000 pieces of a stream."""


class ClientGone(Exception):
    """The client hung up, or takes nothing any more."""


@dataclass
class Outlet:
    """Takes an answer as fast as it comes and hands it on as fast as the client takes it.

    A client is given up that takes nothing for `patience` seconds; and one that takes so little that the endpoint waited
    for it, `MAX_OUTLET_BYTES` bytes ahead, for a quarter of them in all: a place is held meanwhile.
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
        if self._bytes > MAX_OUTLET_BYTES:
            await self._room()
        self.begun = True
        self._kept.append(message)
        self._bytes += len(message.get("body", b""))
        self._change()

    async def emptied(self) -> None:
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
                while self._bytes > MAX_OUTLET_BYTES:
                    await self._changed.wait()
        except TimeoutError:
            raise ClientGone from None
        self._waited += self.seconds() - began

    def _change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def during(self, work: Callable[[], Awaitable[str]], receive: Receive) -> str:
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
            await self.emptied()
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
