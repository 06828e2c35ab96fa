"""Looks at servers while calls are under way, and only then: whether they are there, and how busy they are."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any

from ..config import HealthSettings
from ..timing import Timing
from .endpoint import Endpoint
from .load import read_load
from .probe import fetch_text, look_at, server_root

LOAD_TIMEOUT_S = 0.3
LOADS_EVERY_S = 1.0
NO_LOADS_S = 30.0
"""Until a server that told no load is asked for it again."""


class ServerMonitor:
    """Looks at the servers of some models; what runs in the background ends with the last call.

    Equal looks at once are one look. Used from one event loop at a time.
    """

    def __init__(self, endpoints: Mapping[str, Endpoint], settings: HealthSettings, timing: Timing) -> None:
        self._endpoints = endpoints
        self._settings = settings
        self._timing = timing
        self._calls = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._heart: asyncio.Task[None] | None = None
        self._jobs: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._beat_at = timing.clock() + settings.heartbeat_seconds

    @asynccontextmanager
    async def over(self) -> AsyncIterator[None]:
        """Watch while a call is under way."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # what ran in a loop that was closed ended with it
            self._loop, self._calls, self._heart = loop, 0, None
            self._jobs.clear()
        self._calls += 1
        if self._heart is None and self._settings.heartbeat_seconds:
            self._heart = loop.create_task(self._beat())
        try:
            yield
        finally:
            self._calls -= 1
            if not self._calls:
                await self.close()

    async def close(self) -> None:
        """End what runs in the background."""
        tasks = [*self._jobs.values(), *([self._heart] if self._heart else [])]
        self._heart = None
        self._jobs.clear()
        for task in tasks:
            task.cancel()
        if self._loop is asyncio.get_running_loop():
            await asyncio.gather(*tasks, return_exceptions=True)

    async def look(self, endpoint: Endpoint) -> bool:
        """Return whether a model's server is there."""
        await self._join("look", endpoint, lambda: self._look(endpoint))
        return endpoint.away_since is None

    def glance(self, endpoint: Endpoint) -> None:
        """Look in the background."""
        self._start("look", endpoint, lambda: self._look(endpoint))

    async def weigh(self, endpoint: Endpoint) -> None:
        """See to it that a server's load is known as of a second ago; only the first reading is waited for."""
        if self._timing.clock() < endpoint.weigh_at:
            return
        if endpoint.weigh_at > 0:
            self._start("load", endpoint, lambda: self._weigh(endpoint))
        else:
            await self._join("load", endpoint, lambda: self._weigh(endpoint))

    def _start(self, what: str, endpoint: Endpoint, job: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
        """Begin a job, unless it is under way."""
        key = (what, endpoint.address)
        if key not in self._jobs:
            task = self._jobs[key] = asyncio.get_running_loop().create_task(job())
            task.add_done_callback(lambda done: self._jobs.pop(key) if self._jobs.get(key) is done else None)
        return self._jobs[key]

    async def _join(self, what: str, endpoint: Endpoint, job: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Wait for a job; who gives up waiting does not end it for the others."""
        await asyncio.shield(self._start(what, endpoint, job))

    async def _look(self, endpoint: Endpoint) -> None:
        """Look, and tell every model of the same server."""
        seen = await look_at(endpoint.address, endpoint.key, self._settings.probe_seconds, own=endpoint.own)
        for each in self._endpoints.values():
            if each.address == endpoint.address:
                each.looked(seen)

    async def _weigh(self, endpoint: Endpoint) -> None:
        """Read the load of a server."""
        began = endpoint.under_way
        seen = await fetch_text(f"{server_root(endpoint.address)}/metrics", None, LOAD_TIMEOUT_S)
        load = read_load(seen.text) if seen.status == 200 else None
        rest = NO_LOADS_S if load is None else LOADS_EVERY_S
        for each in self._endpoints.values():
            if each.address == endpoint.address:
                each.load, each.load_calls, each.weigh_at = load, began, self._timing.clock() + rest

    async def _beat(self) -> None:
        """Look at every server that a call was for, again and again."""
        for _ in itertools.count():
            await self._timing.sleep(max(0.0, self._beat_at - self._timing.clock()))
            self._beat_at = self._timing.clock() + self._timing.spread(self._settings.heartbeat_seconds)
            due = {each.address: each for each in self._endpoints.values() if each.wants_look}
            await asyncio.gather(*(self.look(each) for each in due.values()))
