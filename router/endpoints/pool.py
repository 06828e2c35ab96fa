"""All configured models: which is asked next, what is learned from each attempt, and checks of their servers.

Servers are checked only while calls are under way.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from ..config import HealthSettings, RouterConfig
from ..timing import Timing
from .breaker import Breaker, Permit
from .endpoint import Endpoint, find_probe_address, is_slow
from .failures import Failure
from .probe import fetch_text, probe_server, read_load, strip_api_version

LOOK_AGAIN_S = 1.0
"""Between looks at a server that a call waits for."""
LOAD_TIMEOUT_S = 0.3
LOADS_EVERY_S = 1.0
NO_LOADS_S = 30.0
"""Until a server that told no load is asked for it again."""


class Endpoints:
    """The state of all configured models.

    Parameters
    ----------
    config : RouterConfig
        Models, and what makes one rest.
    keys : mapping of str to str or None
        Each model's key, for looks at its server.
    inside : collection of str
        Models that run in this process: they are neither looked at nor compared.
    timing : Timing
        Clock, sleep and chance.
    """

    def __init__(
        self, config: RouterConfig, keys: Mapping[str, str | None], inside: Collection[str], timing: Timing
    ) -> None:
        self._settings = config.health
        self._timing = timing
        self._of: dict[str, Endpoint] = {}
        for name, each in config.models.items():
            by_time = name in inside or not find_probe_address(each)
            breaker = Breaker(config.health.failures, config.cooldown_seconds, timing, by_time=by_time)
            self._of[name] = Endpoint(name, each, keys[name], name in inside, breaker, timing)
        self._monitor = ServerMonitor(self._of, config.health, timing)

    def __getitem__(self, name: str) -> Endpoint:
        """Return the state of a model."""
        return self._of[name]

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[None]:
        """Check the servers while a call is under way."""
        async with self._monitor.run():
            yield

    async def close(self) -> None:
        """End what runs in the background."""
        await self._monitor.close()

    async def order(self, names: Sequence[str]) -> list[str]:
        """Return the models in the order of the route; among equal ones by load, those that are slow last of their tier."""
        equal: dict[tuple[object, ...], list[str]] = {}
        for name in names:
            equal.setdefault(self._of[name].kind, []).append(name)
        if self._settings.load:
            several = [self._of[name] for group in equal.values() if len(group) > 1 for name in group]
            await asyncio.gather(*(self._monitor.look(each) for each in several if each.unknown))
            there = [each for each in several if each.address and each.away_since is None]
            await asyncio.gather(*(self._monitor.weigh(each) for each in there))
            for group in equal.values():
                group.sort(key=lambda name: self._of[name].queue)
        turns = {kind: iter(group) for kind, group in equal.items()}
        listed = [next(turns[self._of[name].kind]) for name in names]
        tiers = list(dict.fromkeys(self._of[name].settings.tier for name in names))
        return sorted(listed, key=lambda name: (tiers.index(self._of[name].settings.tier), self._is_slow(name)))

    async def admit(self, name: str, *, force: bool = False) -> Permit | None:
        """Return leave to ask a model; None while it rests.

        A server of which nothing was heard yet is looked at first: one that is dead then costs that look, however many
        calls begin at once. `force` is for a model that has no other beside it: it is asked though it rests, unless its
        server is gone: that is looked at once a rest, and a single look in vain is not believed.
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
        """Learn from an answer."""
        endpoint = self._of[name]
        endpoint.note_answer(permit, seconds)
        peers = [each.latency for each in self._of.values() if each is not endpoint and self._alike(each, endpoint)]
        if not endpoint.inside and is_slow(endpoint.latency, peers, self._settings.slow_factor):
            endpoint.slow_until = self._timing.clock() + self._timing.spread(self._settings.slow_seconds)
            endpoint.latency.excuse()

    async def note_failure(self, name: str, permit: Permit, failure: Failure) -> None:
        """Learn from a failure; whether its server is there is looked at, unless that is known by now."""
        endpoint = self._of[name]
        if failure.kind == "refused":
            endpoint.note_refusal(permit)
            return
        if failure.kind in ("late", "lost"):
            endpoint.note_silence()
            if endpoint.address and endpoint.breaker.state != "open" and not await self._monitor.look(endpoint):
                return
        endpoint.note_failure(permit, failure)

    def usual_seconds(self, name: str) -> float | None:
        """Return the seconds within which 95 % of a model's answers came; None before there are enough of them."""
        return self._of[name].latency.percentile()

    def find_twin(self, name: str, names: Sequence[str]) -> str | None:
        """Return the next model that may be asked beside this one: of its tier, in a place of the same kind, and well."""
        for other in names:
            each = self._of[other]
            if other != name and self._alike(each, self._of[name]) and each.breaker.state == "closed":
                return other
        return None

    async def wait_for_return(self, names: Collection[str]) -> str | None:
        """Wait for servers that went away, and return the model of the first that is back; None when patience ends."""
        known = [self._of[name] for name in names if self._of[name].alive]
        while hoped := [each for each in known if self._is_waited_for(each)]:
            for endpoint in hoped:
                if endpoint.away_since is None or await self._monitor.look(endpoint):
                    return endpoint.name
            await self._timing.sleep(LOOK_AGAIN_S)
        return None

    def list_resting(self, names: Sequence[str]) -> dict[str, str]:
        """Return why those that rest do."""
        now = self._timing.clock()
        return {
            name: f"{each.said or 'it rests'}" + (f" (for {now - each.away_since:.0f} s)" if each.away_since else "")
            for name in names
            if (each := self._of[name]).breaker.state != "closed"
        }

    async def _may_be_there(self, endpoint: Endpoint) -> bool:
        """Return whether a call may be tried at a server that was found gone, where there is no other."""
        return endpoint.doubtful or (endpoint.breaker.rested and await self._monitor.look(endpoint))

    def _glance(self, endpoint: Endpoint) -> None:
        """Look in the background whether a server is back, once it rested."""
        if endpoint.address and endpoint.breaker.state == "open" and endpoint.breaker.rested:
            self._monitor.glance(endpoint)

    def _is_waited_for(self, endpoint: Endpoint) -> bool:
        """Return whether a server has not been away for too long."""
        gone = endpoint.away_since
        return gone is None or self._timing.clock() - gone < self._settings.patience_seconds

    def _is_slow(self, name: str) -> bool:
        return self._timing.clock() < self._of[name].slow_until

    def _alike(self, one: Endpoint, other: Endpoint) -> bool:
        """Return whether two models are of one tier and in places of one kind."""
        mine, theirs = one.settings, other.settings
        return (mine.tier, mine.place, mine.region) == (theirs.tier, theirs.place, theirs.region)


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
    async def run(self) -> AsyncIterator[None]:
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
        seen = await probe_server(endpoint.address, endpoint.key, self._settings.probe_seconds, own=endpoint.own)
        for each in self._endpoints.values():
            if each.address == endpoint.address:
                each.note_look(seen)

    async def _weigh(self, endpoint: Endpoint) -> None:
        """Read the load of a server."""
        began = endpoint.under_way
        seen = await fetch_text(f"{strip_api_version(endpoint.address)}/metrics", None, LOAD_TIMEOUT_S)
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
