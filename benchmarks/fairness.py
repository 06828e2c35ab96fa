"""Does one tenant's flood move another tenant's tail? Calls through the router's gate, in simulated time.

python -m benchmarks.fairness                  FIFO, round robin and VTC in one run; a minute or two
python -m benchmarks.fairness --calls 2000     fewer calls

A quiet tenant and one that always has 100 calls waiting share an endpoint, half each. The quiet one's calls come at
random (Poisson) and use half of what half the endpoint can do; its 99th percentile of waiting and service is held
against that of the same calls alone on half of the endpoint's places. The gate is the real one; time is simulated, so
nothing depends on the machine. A place answers at a constant speed, whatever the others do. VTC weighs tokens by how
long they keep a place; "VTC 1:2" has the weights of the paper, which are not this endpoint's: it is fair in other
tokens than those that cost time. No call is interrupted, so where places are few and the flood's replies long, waiting
for the next place to fall free is what is left; hence the fifth is promised from 16 places on.
"""

from __future__ import annotations

import argparse
import asyncio
import selectors
import sys
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


def table(found: Sequence[tuple[Scenario, dict[str, float]]]) -> str:
    """Return the table as text."""
    lines = [
        f"{'places':>6s} {'load':>5s} {'replies of the flood':>20s}  " + "".join(f"{name:>12s}" for name in ORDERS)
    ]
    for scenario, by_order in found:
        cells = "".join(f"{by_order[name]:12.2f}" for name in ORDERS)
        lines.append(f"{scenario.places:6d} {scenario.load:5.1f} {scenario.longer:19.0f}x  {cells}")
    return "\n".join(lines)


def main() -> int:
    """Measure and print; 1 if the flood moves the tail under VTC by more than a fifth, from 16 places on."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--calls", type=int, default=10_000, help="calls of the quiet tenant")
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    scenarios = [
        Scenario(places, load, longer, given.calls, given.seed)
        for places in (8, 16, 64)
        for load in (0.5, 0.9)
        for longer in (1.0, 4.0)
    ]
    found = [(scenario, ratios(scenario)) for scenario in scenarios]
    sys.stdout.write("p99 of waiting and service beside a flood, over that alone on half of the places\n")
    sys.stdout.write(table(found) + "\n")
    return int(any(by_order["VTC"] > 1.2 for scenario, by_order in found if scenario.places >= 16))


if __name__ == "__main__":
    sys.exit(main())
