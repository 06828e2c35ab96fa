"""The endpoint behind the gateway: called with its own key, never through a proxy, and probed once a second at most."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy

import anyio
import httpx2

from ..errors import EndpointAway

Headers = list[tuple[bytes, bytes]]
CONNECT_S, SILENT_S = 5.0, 900.0
"""Timeouts of the connection and of a silent endpoint; clients give up earlier."""
PASSED_HEADERS = frozenset({b"accept", b"content-type", b"user-agent"})
"""Request headers that reach the endpoint; others may be keys, names of callers, or controls of the endpoint."""
RETURNED_HEADERS = frozenset(
    {b"cache-control", b"content-encoding", b"content-length", b"content-type", b"retry-after", b"retry-after-ms",
     b"x-request-id", b"x-should-retry"}
)  # fmt: skip  # a table
"""Reply headers that clients of the OpenAI API read; others may be cookies or reveal internals of the endpoint."""
FRESH_S = 1.0
"""Seconds for which an answer, or its absence, is reused."""


class GatewayEndpoint:
    """The client of an endpoint; `address` ends before /v1.

    Parameters
    ----------
    address : str
        Its address, such as http://127.0.0.1:8000.
    key : str or None
        The endpoint's API key, if it requires one.
    """

    def __init__(self, address: str, key: str | None = None) -> None:
        self.address = address.rstrip("/").removesuffix("/v1")
        self._key = key
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(SILENT_S, connect=CONNECT_S),
            trust_env=False,
            follow_redirects=False,
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=256, keepalive_expiry=4.0),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),  # else tenants would share cookies
        )

    @asynccontextmanager
    async def request(
        self, method: str, path: str, headers: Iterable[tuple[bytes, bytes]] = (), body: bytes = b""
    ) -> AsyncIterator[httpx2.Response]:
        """Send a request and yield the reply once its head is here; leaving early hangs up and stops generation.

        Raises
        ------
        EndpointAway
            If it does not answer, or breaks off.
        """
        passed = [(name, value) for name, value in headers if name.lower() in PASSED_HEADERS]
        passed.append((b"accept-encoding", b"identity"))
        if self._key:
            passed.append((b"authorization", b"Bearer " + self._key.encode()))
        request = self._client.build_request(method, self.address + path, headers=passed, content=body or None)
        try:
            response = await self._client.send(request, stream=True)
            try:
                yield response
            finally:
                await response.aclose()
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            raise _make_away_error("does not answer", 503) from None
        except httpx2.TransportError as error:
            raise _make_away_error(f"broke off ({type(error).__name__})", 502) from None

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()


def select_reply_headers(response: httpx2.Response) -> Headers:
    """Return the headers of a reply that a client needs."""
    return [(name.lower(), value) for name, value in response.headers.raw if name.lower() in RETURNED_HEADERS]


def _make_away_error(how: str, status: int) -> EndpointAway:
    """Return the error; it does not reveal the endpoint's address to callers."""
    return EndpointAway(
        f"the endpoint {how}", hint="Ask again; whoever runs the gateway sees its server's log.", status=status
    )


@dataclass(frozen=True)
class EndpointAnswer:
    """The answer of one path of the endpoint, or why there is none."""

    at: float
    status: int = 0
    headers: Headers = field(default_factory=list)
    body: bytes = b""
    away: EndpointAway | None = None


@dataclass
class EndpointProbe:
    """Fetch the status paths of an endpoint, one request at a time for each path."""

    endpoint: GatewayEndpoint
    seconds: Callable[[], float]
    _last: dict[str, EndpointAnswer] = field(default_factory=dict)
    _asking: dict[str, anyio.Lock] = field(default_factory=dict)

    async def fetch(self, path: str, within: float) -> EndpointAnswer:
        """Return the endpoint's answer at a path, a second old at most.

        Raises
        ------
        EndpointAway
            If it does not answer within `within` seconds.
        """
        async with self._asking.setdefault(path, anyio.Lock()):
            last = self._last.get(path)
            if last is None or self.seconds() - last.at > FRESH_S:
                last = self._last[path] = await self._fetch(path, within)
        if last.away is not None:
            raise last.away
        return last

    async def _fetch(self, path: str, within: float) -> EndpointAnswer:
        try:
            with anyio.fail_after(within):
                async with self.endpoint.request("GET", path) as answer:
                    body = b"".join([piece async for piece in answer.aiter_raw()])
        except TimeoutError:
            away = EndpointAway(f"the endpoint did not answer within {within:g} s", hint="Ask again.")
            return EndpointAnswer(self.seconds(), away=away)
        except EndpointAway as away:
            return EndpointAnswer(self.seconds(), away=away)
        headers = [header for header in select_reply_headers(answer) if header[0] != b"content-length"]
        return EndpointAnswer(self.seconds(), answer.status_code, headers, body)
