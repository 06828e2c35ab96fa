"""What the endpoint says of itself, asked now and then however often it is wanted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import anyio

from ...router import EndpointAway
from .endpoint import GatewayEndpoint, Headers, reply_headers

__all__ = ["EndpointAnswer", "EndpointProbe"]

FRESH_S = 1.0
"""For how long an answer, or that there was none, stands for the next."""


@dataclass(frozen=True)
class EndpointAnswer:
    """What a path of the endpoint answered, or why it did not."""

    at: float
    status: int = 0
    headers: Headers = field(default_factory=list)
    body: bytes = b""
    away: EndpointAway | None = None


@dataclass
class EndpointProbe:
    """Asks an endpoint for what spends nothing, one question at a time for each path."""

    endpoint: GatewayEndpoint
    seconds: Callable[[], float]
    _last: dict[str, EndpointAnswer] = field(default_factory=dict)
    _asking: dict[str, anyio.Lock] = field(default_factory=dict)

    async def at(self, path: str, within: float) -> EndpointAnswer:
        """Return what the endpoint says there, a second old at most.

        Raises
        ------
        EndpointAway
            If it does not answer within so many seconds.
        """
        async with self._asking.setdefault(path, anyio.Lock()):
            last = self._last.get(path)
            if last is None or self.seconds() - last.at > FRESH_S:
                last = self._last[path] = await self._asked(path, within)
        if last.away is not None:
            raise last.away
        return last

    async def _asked(self, path: str, within: float) -> EndpointAnswer:
        try:
            with anyio.fail_after(within):
                async with self.endpoint.asked("GET", path) as answer:
                    body = b"".join([piece async for piece in answer.aiter_raw()])
        except TimeoutError:
            away = EndpointAway(f"the endpoint did not answer within {within:g} s", hint="Ask again.")
            return EndpointAnswer(self.seconds(), away=away)
        except EndpointAway as away:
            return EndpointAnswer(self.seconds(), away=away)
        headers = [each for each in reply_headers(answer) if each[0] != b"content-length"]
        return EndpointAnswer(self.seconds(), answer.status_code, headers, body)
