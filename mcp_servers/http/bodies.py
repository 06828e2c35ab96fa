"""What a client sends, read before anything parses it: a megabyte of empty lists would hold up every other caller."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from starlette.types import Message, Receive

__all__ = ["MAX_BODY_PARTS", "Body"]

MAX_BODY_PARTS = 10_000
"""Commas and opening brackets of one request outside of its texts. A message is parsed and checked on the event loop, where
a million of them take more than a second; what tools take has a few thousand.
"""


@dataclass(eq=False)
class Body:
    """A body that was read and is handed on as it came."""

    receive: Receive
    _messages: deque[Message] = field(default_factory=deque, init=False)

    async def parts(self, most_bytes: int) -> int:
        """Read the body, or as much of it as shows that it is too large; return how many parts it has at least."""
        size, more = 0, True
        while more and size <= most_bytes:
            message = await self.receive()
            self._messages.append(message)
            size += len(message.get("body", b""))
            more = message.get("more_body", False)
        return _parts(b"".join(message.get("body", b"") for message in self._messages))

    async def __call__(self) -> Message:
        """Return the next part of the body, and then whatever else comes."""
        return self._messages.popleft() if self._messages else await self.receive()


def _parts(body: bytes) -> int:
    """Count commas and opening brackets; texts are left out, since formulas and code are full of them.

    A zero byte stands in no JSON of UTF-8; in UTF-16, which one of the parsers reads, quotes are spelled otherwise.
    """
    plain = [body] if b"\0" in body else body.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2]
    return sum(sum(map(piece.count, (b",", b"[", b"{"))) for piece in plain)
