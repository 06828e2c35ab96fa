"""One GET to an address that is configured, and to no other: whether a server is there, and what it says of itself."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import cache

MAX_PROBE_BYTES = 1 << 22


@dataclass(frozen=True)
class ProbeResponse:
    """The status and the text that came back; status None: nothing did, and `text` says why. `refused`: nobody listens."""

    status: int | None
    text: str
    refused: bool = False


@dataclass(frozen=True)
class ServerState:
    """Whether a server is there, in words, and whether that is certain: one that is slow to say so may only be busy."""

    up: bool
    sure: bool
    said: str


async def fetch_text(address: str, key: str | None, seconds: float) -> ProbeResponse:
    """Ask an address; no redirection is followed, no proxy is asked, and the seconds are for all of it."""
    import anyio.lowlevel
    import httpx2

    await anyio.lowlevel.checkpoint()  # has what is imported late imported before the time runs: a second, once
    headers = {"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {key}"} if key else {})
    verify = _roots() if address.startswith("https:") else False
    try:
        async with (
            asyncio.timeout(seconds),
            httpx2.AsyncClient(verify=verify, trust_env=False, timeout=seconds) as client,
            client.stream("GET", address, headers=headers) as response,
        ):
            return ProbeResponse(response.status_code, await _text(response.aiter_raw()))
    except (TimeoutError, httpx2.TimeoutException):
        return ProbeResponse(None, f"nothing came within {seconds:g} s")
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        said = str(error) or type(error).__name__
        return ProbeResponse(
            None, said.replace(key.strip(), "***") if key else said, isinstance(error, httpx2.ConnectError)
        )


async def look_at(api_base: str, key: str | None, seconds: float, *, own: bool) -> ServerState:
    """Look whether a server is there, without a paid call: /health of one's own, then the list of models.

    vLLM lists its models while its engine is dead, hence /health first; a stranger's server is asked for its models only.
    """
    if own:
        address = f"{server_root(api_base)}/health"
        seen = await fetch_text(address, None, seconds)
        if seen.status is None or seen.status < 300 or _is_failure(seen.status):
            return _judge_answer(address, seen)
    address = f"{api_base.rstrip('/')}/models"
    return _judge_answer(address, await fetch_text(address, key, seconds))


def server_root(api_base: str) -> str:
    """Return the address of the server itself, before the version of its protocol."""
    return api_base.rstrip("/").removesuffix("/v1")


def _judge_answer(address: str, seen: ProbeResponse) -> ServerState:
    """Say what an answer means: whoever refuses a key, or knows no such page, is there."""
    if seen.status is None:
        return ServerState(False, seen.refused, f"{address} does not answer: {seen.text}")
    return ServerState(not _is_failure(seen.status), True, f"{address} answers ({seen.status})")


def _is_failure(status: int) -> bool:
    return status >= 500 and status != 501


async def _text(parts: AsyncIterator[bytes]) -> str:
    """Read a body as it was sent, and no more of it than is reasonable: unpacked it could be of any size."""
    body = b""
    async for part in parts:
        body += part
        if len(body) > MAX_PROBE_BYTES:
            break
    return body[:MAX_PROBE_BYTES].decode(errors="replace")


@cache
def _roots() -> ssl.SSLContext:
    """Return whom to trust; reading that takes a while."""
    return ssl.create_default_context()
