"""One GET to an address that is configured, and to no other: whether a server is there, and what it says of itself."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import cache

__all__ = ["Look", "Seen", "get", "look_at", "root"]

MOST_BYTES = 1 << 22


@dataclass(frozen=True)
class Seen:
    """The status and the text that came back; status None: nothing did, and `text` says why. `refused`: nobody listens."""

    status: int | None
    text: str
    refused: bool = False


@dataclass(frozen=True)
class Look:
    """Whether a server is there, in words, and whether that is certain: one that is slow to say so may only be busy."""

    up: bool
    sure: bool
    said: str


async def get(address: str, key: str | None, seconds: float) -> Seen:
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
            return Seen(response.status_code, await _text(response.aiter_raw()))
    except (TimeoutError, httpx2.TimeoutException):
        return Seen(None, f"nothing came within {seconds:g} s")
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        said = str(error) or type(error).__name__
        return Seen(None, said.replace(key.strip(), "***") if key else said, isinstance(error, httpx2.ConnectError))


async def look_at(api_base: str, key: str | None, seconds: float, *, own: bool) -> Look:
    """Look whether a server is there, without a paid call: /health of one's own, then the list of models.

    vLLM lists its models while its engine is dead, hence /health first; a stranger's server is asked for its models only.
    """
    if own:
        address = f"{root(api_base)}/health"
        seen = await get(address, None, seconds)
        if seen.status is None or seen.status < 300 or _fails(seen.status):
            return _look(address, seen)
    address = f"{api_base.rstrip('/')}/models"
    return _look(address, await get(address, key, seconds))


def root(api_base: str) -> str:
    """Return the address of the server itself, before the version of its protocol."""
    return api_base.rstrip("/").removesuffix("/v1")


def _look(address: str, seen: Seen) -> Look:
    """Say what an answer means: whoever refuses a key, or knows no such page, is there."""
    if seen.status is None:
        return Look(False, seen.refused, f"{address} does not answer: {seen.text}")
    return Look(not _fails(seen.status), True, f"{address} answers ({seen.status})")


def _fails(status: int) -> bool:
    return status >= 500 and status != 501


async def _text(parts: AsyncIterator[bytes]) -> str:
    """Read a body as it was sent, and no more of it than is reasonable: unpacked it could be of any size."""
    body = b""
    async for part in parts:
        body += part
        if len(body) > MOST_BYTES:
            break
    return body[:MOST_BYTES].decode(errors="replace")


@cache
def _roots() -> ssl.SSLContext:
    """Return whom to trust; reading that takes a while."""
    return ssl.create_default_context()
