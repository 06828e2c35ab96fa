"""Connections to model servers: to the configured address only, with bounded answers, and each request sent once.

Servers that speak the OpenAI protocol at a configured address are asked here, without proxies and without LiteLLM.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import ssl
import zlib
from collections.abc import Mapping
from typing import Any

from ..config import ModelSettings
from ..endpoints.failures import ServerRefused
from .completions import MAX_ERROR_BYTES, Completion, Unreadable, parse_completion, read_error_words

MAX_COMPLETION_BYTES = 1 << 22
"""Maximum size of an answer, unpacked; a reply of 100,000 tokens takes a tenth of it."""
ACCEPTED_ENCODING = "gzip"
PACKED_ENCODINGS = ("gzip", "x-gzip", "deflate")
CHAT_PATH = "/chat/completions"


class ServerClients:
    """Asks servers of the OpenAI protocol; one client for each endpoint and event loop.

    Parameters
    ----------
    seconds : float
        Timeout between bytes.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._loop: asyncio.AbstractEventLoop | None = None
        self._made: dict[tuple[str, str], Any] = {}

    async def ask(
        self, name: str, settings: ModelSettings, key: str | None, pinned: str | None, body: Mapping[str, Any]
    ) -> Completion:
        """Send one chat request to a model's address; `pinned` (PEM) is the only certificate that is accepted.

        Raises
        ------
        ServerRefused
            If the server answers with another status than 2xx.
        Unreadable
            If its answer is too large, or no chat completion.
        """
        address = (settings.api_base or "").rstrip("/").removesuffix(CHAT_PATH)
        headers = {"Accept-Encoding": ACCEPTED_ENCODING} | ({"Authorization": f"Bearer {key}"} if key else {})
        request = {"model": settings.model.partition("/")[2], **body}
        client = self._connect(name, address, pinned)
        async with client.stream("POST", f"{address}{CHAT_PATH}", json=request, headers=headers) as response:
            answer = await read_body(response)
        require_success(response, answer)
        return parse_completion(answer)

    async def close(self) -> None:
        """Close the clients of this event loop."""
        clients, self._made = self._made, {}
        if self._loop is asyncio.get_running_loop():
            for client in clients.values():
                await client.aclose()

    def _connect(self, name: str, address: str, pinned: str | None) -> Any:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # connections of a closed loop ended with it
            self._loop, self._made = loop, {}
        place = name, pinned or ""
        if place not in self._made:
            httpx2: Any = importlib.import_module("httpx2")
            verify: Any = False
            if address.startswith("https:"):
                verify = ssl.create_default_context(cadata=pinned)  # without one, the system's roots
            self._made[place] = httpx2.AsyncClient(verify=verify, trust_env=False, timeout=self._seconds)
        return self._made[place]


def require_success(response: Any, body: bytes) -> None:
    """Raise `ServerRefused` for a status other than 2xx, with what the server says in its body."""
    if 200 <= response.status_code < 300:
        return
    body = body[:MAX_ERROR_BYTES]
    try:
        words = read_error_words(json.loads(body))
    except (ValueError, RecursionError):
        words = ""
    raise ServerRefused(response.status_code, words or body.decode(errors="replace"), dict(response.headers))


async def read_body(response: Any) -> bytes:
    """Return an answer's body, unpacked; httpx would unpack without a size limit, and nested encodings too."""
    body = bytearray()
    async for piece in response.aiter_raw():
        body += piece
        _check_size(body)
    packed = response.headers.get("content-encoding", "identity").strip().lower()
    if packed == "identity":
        return bytes(body)
    if packed not in PACKED_ENCODINGS:
        raise Unreadable(f"its answer is packed as {packed[:40]!r}, which nobody asked for")
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 32)  # detects gzip and zlib by the header
    try:
        unpacked = unpacking.decompress(body, MAX_COMPLETION_BYTES + 1)
    except zlib.error:
        raise Unreadable("its answer cannot be unpacked") from None
    _check_size(unpacked)
    return unpacked


def _check_size(body: bytes | bytearray) -> None:
    if len(body) > MAX_COMPLETION_BYTES:
        raise Unreadable(f"its answer is larger than {MAX_COMPLETION_BYTES >> 20} MiB")
