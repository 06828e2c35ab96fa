"""A quiet tenant beside one that always has calls waiting, on the real gate in simulated time (`bench/fairness.py`)."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from alphaloom.serving.gateway.fair_scheduler import FairScheduler, PickTenant, pick_fairest
from alphaloom.serving.gateway.tenants import FairnessSettings, Tenant

T = TypeVar("T")
WAITING = 100
"""Calls that the flood always has in its queue."""


class _Jump(selectors.DefaultSelector):
    """Waits by moving the clock on."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what happened; without a timer that could ever fire, everybody waits for nothing."""
        if timeout is None:
            raise RuntimeError("everybody waits, and nothing will wake anybody")
        self.now += max(timeout, 0.0)
        return super().select(0)


class Hurried(asyncio.SelectorEventLoop):
    """An event loop in simulated time: sleeping takes none."""

    def __init__(self) -> None:
        self._jump = _Jump()
        super().__init__(self._jump)

    def time(self) -> float:
        """Return simulated seconds."""
        return self._jump.now


def hurried(main: Coroutine[Any, Any, T]) -> T:
    """Run in simulated time."""
    with asyncio.Runner(loop_factory=Hurried) as runner:
        return runner.run(main)


def first_come(ready: Sequence[Tenant]) -> Tenant:
    """Return the tenant whose call came first (FIFO)."""
    return min(ready, key=lambda tenant: tenant.waiting[0].number)


def in_turn(ready: Sequence[Tenant]) -> Tenant:
    """Return the tenant that was served longest ago (round robin)."""
    return min(ready, key=lambda tenant: (tenant.last, tenant.waiting[0].number))


ORDERS: dict[str, tuple[PickTenant, float]] = {
    "FIFO": (first_come, 1.0),
    "round robin": (in_turn, 1.0),
    "VTC": (pick_fairest, 100.0),
    "VTC 1:2": (pick_fairest, 2.0),
}
"""Orders, and what a token out weighs in them beside one in; it keeps a place of this endpoint 100 times as long."""


@dataclass(frozen=True)
class Size:
    """Tokens of a call, and the seconds of its service."""

    tokens_in: int
    tokens_out: int

    @property
    def seconds(self) -> float:
        """5,000 tokens a second in, 50 out."""
        return self.tokens_in / 5000 + self.tokens_out / 50


def sizes(seed: int, longer: float = 1.0) -> Iterator[Size]:
    """Yield sizes of calls: log-normal, cut off."""
    rng = np.random.default_rng(seed)
    while True:
        for into, out in zip(rng.lognormal(6, 0.7, 256), rng.lognormal(5, 0.7, 256), strict=True):
            yield Size(int(min(into, 2000)), max(1, int(min(out * longer, 600 * longer))))


MEAN_SECONDS = 3.8
"""About the mean service of a call of the usual size."""


@dataclass(frozen=True)
class Scenario:
    """How many places, how busy the quiet tenant keeps its half, and how much longer the flood's replies are."""

    places: int = 16
    load: float = 0.5
    longer: float = 1.0
    calls: int = 10_000
    seed: int = 0


async def quiet(gate: FairScheduler, scenario: Scenario) -> list[float]:
    """Return waiting and service of each call of the quiet tenant, in seconds."""
    loop, rng = asyncio.get_running_loop(), np.random.default_rng([scenario.seed, 1])
    found: list[float] = []

    async def one(size: Size) -> None:
        came = loop.time()
        async with gate.acquire("quiet", size.tokens_in, 1000) as place:
            await asyncio.sleep(size.seconds)
            place.report_output(size.tokens_out)
        found.append(loop.time() - came)

    gap = MEAN_SECONDS / (scenario.load * scenario.places / 2)
    async with asyncio.TaskGroup() as calls:
        for size, _ in zip(sizes(scenario.seed), range(scenario.calls), strict=False):
            await asyncio.sleep(rng.exponential(gap))
            calls.create_task(one(size))
    return found


async def flood(gate: FairScheduler, scenario: Scenario, kind: Iterator[Size]) -> None:
    """Ask again and again, at once."""
    while True:
        size = next(kind)
        async with gate.acquire("flood", size.tokens_in, int(1000 * scenario.longer)) as place:
            await asyncio.sleep(size.seconds)
            place.report_output(size.tokens_out)


async def beside_flood(scenario: Scenario, order: PickTenant, weight: float) -> list[float]:
    """Return the quiet tenant's seconds beside the flood."""
    settings = FairnessSettings.model_validate({"places": scenario.places, "default": {"queue": 10_000}})
    settings = settings.model_copy(update={"output_weight": weight})
    gate = FairScheduler(settings, clock=asyncio.get_running_loop().time, order=order)
    kind = sizes(scenario.seed + 1000, scenario.longer)
    tasks = [asyncio.create_task(flood(gate, scenario, kind)) for _ in range(WAITING + scenario.places)]
    found = await quiet(gate, scenario)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return found


async def alone(scenario: Scenario) -> list[float]:
    """Return the quiet tenant's seconds alone, on half of the places."""
    settings = FairnessSettings.model_validate({"places": scenario.places // 2, "default": {"queue": 10_000}})
    return await quiet(FairScheduler(settings, clock=asyncio.get_running_loop().time), scenario)


def tail(seconds: Sequence[float]) -> float:
    """Return the 99th percentile."""
    return float(np.quantile(seconds, 0.99))


def ratios(scenario: Scenario) -> dict[str, float]:
    """Return the quiet tenant's 99th percentile beside the flood over that alone on its share, by order."""
    own = tail(hurried(alone(scenario)))
    return {name: tail(hurried(beside_flood(scenario, *order))) / own for name, order in ORDERS.items()}
