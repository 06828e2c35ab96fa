"""The state of all configured models: the order of a route, the outcomes of attempts, and probes of the servers.

Servers are probed only while calls are under way.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from ..config import HealthSettings, RouterConfig
from ..timing import Timing
from .breaker import Breaker, Permit
from .endpoint import Endpoint, find_probe_address, is_slow
from .failures import Failure
from .probe import fetch_text, fetch_version, probe_server, read_load, strip_api_version

LOOK_AGAIN_S = 1.0
"""Seconds between probes of a server that a call waits for."""
LOAD_TIMEOUT_S = 0.3
LOADS_EVERY_S = 1.0
NO_LOADS_S = 30.0
"""Seconds until a server without a load report is asked again."""


class Endpoints:
    """The state of all configured models.

    Parameters
    ----------
    config : RouterConfig
        Models, and the settings of breakers and probes.
    keys : mapping of str to str or None
        Each model's key, for probes of its server.
    inside : collection of str
        Models that run in this process: they are neither probed nor compared.
    timing : Timing
        Clock, sleep and jitter.
    """

    def __init__(
        self, config: RouterConfig, keys: Mapping[str, str | None], inside: Collection[str], timing: Timing
    ) -> None:
        self._settings = config.health
        self._timing = timing
        self._of: dict[str, Endpoint] = {}
        for name, settings in config.models.items():
            by_time = name in inside or not find_probe_address(settings)
            breaker = Breaker(config.health.failures, config.cooldown_seconds, timing, by_time=by_time)
            self._of[name] = Endpoint(name, settings, keys[name], name in inside, breaker, timing)
        self._monitor = ServerMonitor(self._of, config.health, timing)

    def __getitem__(self, name: str) -> Endpoint:
        """Return the state of a model."""
        return self._of[name]

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[None]:
        """Probe the servers while a call is under way."""
        async with self._monitor.run():
            yield

    async def close(self) -> None:
        """End the background tasks."""
        await self._monitor.close()

    async def order(self, names: Sequence[str]) -> list[str]:
        """Return the models in the order of the route: equal models by load, slow models last of their tier."""
        equal: dict[tuple[object, ...], list[str]] = {}
        for name in names:
            equal.setdefault(self._of[name].kind, []).append(name)
        if self._settings.load:
            several = [self._of[name] for group in equal.values() if len(group) > 1 for name in group]
            await asyncio.gather(*(self._monitor.look(endpoint) for endpoint in several if endpoint.unknown))
            reachable = [endpoint for endpoint in several if endpoint.address and endpoint.away_since is None]
            await asyncio.gather(*(self._monitor.weigh(endpoint) for endpoint in reachable))
            for group in equal.values():
                group.sort(key=lambda name: self._of[name].queue)
        turns = {kind: iter(group) for kind, group in equal.items()}
        listed = [next(turns[self._of[name].kind]) for name in names]
        tiers = list(dict.fromkeys(self._of[name].settings.tier for name in names))
        return sorted(listed, key=lambda name: (tiers.index(self._of[name].settings.tier), self._is_slow(name)))

    async def admit(self, name: str, *, force: bool = False) -> Permit | None:
        """Return a permit to ask a model; None while it rests.

        A server that was never reached is probed first, so that a dead one costs a single probe, however many calls
        start at once. `force` is for the only model of a route: it is asked although it rests, unless its server is
        gone. A gone server is probed once per rest, and a single failed probe does not count as proof that it is gone.
        """
        endpoint = self._of[name]
        endpoint.asked = True
        if endpoint.unknown:
            await self._monitor.look(endpoint)
        if endpoint.away_since is not None and not (force and await self._may_be_there(endpoint)):
            self._glance(endpoint)
            return None
        permit = endpoint.breaker.enter(force=force)
        if permit is None:
            self._glance(endpoint)
        return permit

    def note_answer(self, name: str, permit: Permit, seconds: float) -> None:
        """Note an answer, and whether the model is slow beside its peers."""
        endpoint = self._of[name]
        endpoint.note_answer(permit, seconds)
        peers = [
            other.latency for other in self._of.values() if other is not endpoint and self._are_alike(other, endpoint)
        ]
        if not endpoint.inside and is_slow(endpoint.latency, peers, self._settings.slow_factor):
            endpoint.slow_until = self._timing.clock() + self._timing.spread(self._settings.slow_seconds)
            endpoint.latency.excuse()

    async def note_failure(self, name: str, permit: Permit, failure: Failure) -> None:
        """Note a failure; after a timeout or a lost connection, probe the server unless its state is known."""
        endpoint = self._of[name]
        if failure.kind == "refused":
            endpoint.note_refusal(permit)
            return
        if failure.kind in ("late", "lost"):
            endpoint.note_silence()
            if endpoint.address and endpoint.breaker.state != "open" and not await self._monitor.look(endpoint):
                return
        endpoint.note_failure(permit, failure)

    def find_twin(self, name: str, names: Sequence[str]) -> str | None:
        """Return the next model that may be asked beside this one: same tier and kind of place, breaker closed."""
        for other in names:
            candidate = self._of[other]
            if other != name and self._are_alike(candidate, self._of[name]) and candidate.breaker.state == "closed":
                return other
        return None

    async def wait_for_return(self, names: Collection[str]) -> str | None:
        """Wait for gone servers, and return the model of the first one that is back; None when patience ends."""
        seen_alive = [self._of[name] for name in names if self._of[name].alive]
        while awaited := [endpoint for endpoint in seen_alive if self._is_waited_for(endpoint)]:
            for endpoint in awaited:
                if endpoint.away_since is None or await self._monitor.look(endpoint):
                    return endpoint.name
            await self._timing.sleep(LOOK_AGAIN_S)
        return None

    def list_resting(self, names: Sequence[str]) -> dict[str, str]:
        """Return the reasons of the resting models, by name."""
        now = self._timing.clock()
        return {
            name: f"{endpoint.said or 'it rests'}"
            + (f" (for {now - endpoint.away_since:.0f} s)" if endpoint.away_since else "")
            for name in names
            if (endpoint := self._of[name]).breaker.state != "closed"
        }

    async def _may_be_there(self, endpoint: Endpoint) -> bool:
        """Return whether a server that was found gone may be asked, as the only one of a route."""
        return endpoint.doubtful or (endpoint.breaker.rested and await self._monitor.look(endpoint))

    def _glance(self, endpoint: Endpoint) -> None:
        """Probe a server in the background after its rest."""
        if endpoint.address and endpoint.breaker.state == "open" and endpoint.breaker.rested:
            self._monitor.glance(endpoint)

    def _is_waited_for(self, endpoint: Endpoint) -> bool:
        """Return whether a server is back, or not gone for longer than the configured patience."""
        gone = endpoint.away_since
        return gone is None or self._timing.clock() - gone < self._settings.patience_seconds

    def _is_slow(self, name: str) -> bool:
        return self._timing.clock() < self._of[name].slow_until

    def _are_alike(self, one: Endpoint, other: Endpoint) -> bool:
        """Return whether two models have the same tier, kind of place and region."""
        mine, theirs = one.settings, other.settings
        return (mine.tier, mine.place, mine.region) == (theirs.tier, theirs.place, theirs.region)


class ServerMonitor:
    """Probes the servers of models; its background tasks end with the last call.

    Concurrent probes of one server are a single probe. Used from one event loop at a time.
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
    async def run(self) -> AsyncIterator[None]:
        """Run the heartbeat while a call is under way."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # tasks of a closed loop ended with it
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
        """End the background tasks."""
        tasks = [*self._jobs.values(), *([self._heart] if self._heart else [])]
        self._heart = None
        self._jobs.clear()
        for task in tasks:
            task.cancel()
        if self._loop is asyncio.get_running_loop():
            await asyncio.gather(*tasks, return_exceptions=True)

    async def look(self, endpoint: Endpoint) -> bool:
        """Probe a model's server, and return whether it is reachable."""
        await self._join("look", endpoint, lambda: self._look(endpoint))
        return endpoint.away_since is None

    def glance(self, endpoint: Endpoint) -> None:
        """Probe in the background."""
        self._start("look", endpoint, lambda: self._look(endpoint))

    async def weigh(self, endpoint: Endpoint) -> None:
        """Refresh a server's load if it is over a second old; only the first reading is awaited."""
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
        """Wait for a job; a cancelled waiter does not end it for the others."""
        await asyncio.shield(self._start(what, endpoint, job))

    async def _look(self, endpoint: Endpoint) -> None:
        """Probe, and note the result for every model of the same server."""
        state = await probe_server(endpoint.address, endpoint.key, self._settings.probe_seconds, own=endpoint.own)
        if state.up and endpoint.tells_version:
            state = replace(state, version=await fetch_version(endpoint.address, self._settings.probe_seconds))
        for other in self._endpoints.values():
            if other.address == endpoint.address:
                other.note_look(state)

    async def _weigh(self, endpoint: Endpoint) -> None:
        """Read the load of a server, for every model of it."""
        began = endpoint.under_way
        response = await fetch_text(f"{strip_api_version(endpoint.address)}/metrics", None, LOAD_TIMEOUT_S)
        load = read_load(response.text) if response.status == 200 else None
        rest = NO_LOADS_S if load is None else LOADS_EVERY_S
        for other in self._endpoints.values():
            if other.address == endpoint.address:
                other.load, other.load_calls, other.weigh_at = load, began, self._timing.clock() + rest

    async def _beat(self) -> None:
        """Probe every server that calls were sent to, at each heartbeat."""
        for _ in itertools.count():
            await self._timing.sleep(max(0.0, self._beat_at - self._timing.clock()))
            self._beat_at = self._timing.clock() + self._timing.spread(self._settings.heartbeat_seconds)
            due = {endpoint.address: endpoint for endpoint in self._endpoints.values() if endpoint.wants_look}
            await asyncio.gather(*(self.look(endpoint) for endpoint in due.values()))
