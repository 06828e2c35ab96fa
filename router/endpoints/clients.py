"""Connections to endpoints that a configuration names: to that address, through no proxy, and following nobody elsewhere."""

from __future__ import annotations

import asyncio
import importlib
import ssl
from typing import Any

from ..calls.wire import wrap_transport
from ..config import SERVER_PROVIDERS, ModelSettings

SDK = ("openai",)
"""Providers that LiteLLM reaches by OpenAI's library; it takes a client of another kind."""


class Clients:
    """One client for each endpoint and loop. LiteLLM's own would go through the environment's proxies and follow redirections.

    Parameters
    ----------
    seconds : float
        For silence.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._loop: asyncio.AbstractEventLoop | None = None
        self._made: dict[tuple[str, str], Any] = {}

    def of(self, name: str, settings: ModelSettings, key: str | None, pinned: str | None) -> Any:
        """Return the client for a model; None where LiteLLM finds the way by the provider's name.

        `pinned` is the file of the only certificate that the connection may show.
        """
        provider = settings.model.partition("/")[0]
        if settings.api_base is None or provider not in SERVER_PROVIDERS:
            return None
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # what was connected in a loop that was closed ended with it
            self._loop, self._made = loop, {}
        place = name, pinned or ""
        if place not in self._made:
            self._made[place] = self._make(provider, settings.api_base, key, pinned)
        return self._made[place]

    async def close(self) -> None:
        """Close what was opened in this loop."""
        made, self._made = self._made, {}
        if self._loop is asyncio.get_running_loop():
            for client in made.values():
                await client.close()

    def _make(self, provider: str, address: str, key: str | None, pinned: str | None) -> Any:
        httpx: Any = importlib.import_module("httpx")
        verify: Any = False
        if address.startswith("https:"):
            verify = ssl.create_default_context(cafile=pinned) if pinned else ssl.create_default_context()
        transport = wrap_transport(httpx.AsyncHTTPTransport(verify=verify, trust_env=False))
        if provider not in SDK:
            handlers: Any = importlib.import_module("litellm.llms.custom_httpx.http_handler")
            return handlers.AsyncHTTPHandler(timeout=self._seconds, transport=transport, follow_redirects=False)
        sdk: Any = importlib.import_module("openai")
        plain = httpx.AsyncClient(transport=transport, timeout=self._seconds, follow_redirects=False, trust_env=False)
        return sdk.AsyncOpenAI(api_key=key or "none", base_url=address, http_client=plain, max_retries=0)
