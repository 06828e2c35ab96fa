"""What dead, hanging, dying and busy servers cost: calls through the router to real servers on this machine.

python -m bench.router failover                  all of it; about two minutes
python -m bench.router failover --calls 30       fewer calls

A deaf server takes connections and never says a word; a hanging one answers looks and never a call. A call that waited
for its time in vain is a timeout. LiteLLM's own router is measured beside, on the same servers, without retries, with a
fallback and a cooldown longer than the run. A prompt that two servers answered, or one twice, would have been paid
twice.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from alphaloom.ledger import Ledger, Run
from alphaloom.router import Message, Reply, Router, RouterConfig, Task
from alphaloom.router.calls.providers import load_litellm
from tests.router.servers import Server

TIMEOUT_S = 1.0
PATIENT_S = 60.0
"""Time of a call where the crowd, not the servers, makes calls slow: this machine is both."""
HEALTH = {"probe_seconds": 1.0, "heartbeat_seconds": 0.2, "patience_seconds": 30.0}
PATIENT_HEALTH = {"heartbeat_seconds": 0.2}
"""As a user has it: where what counts is that nothing is lost, a crowded machine may take its time."""


class Idea(BaseModel):
    """What is asked for."""

    text: str
    direction: int


@dataclass(frozen=True)
class Row:
    """What was measured, in words, and whether it is as it should be."""

    what: str
    found: str
    good: bool


def at(server: Server, **settings: Any) -> dict[str, Any]:
    """Return a model's settings."""
    return {"model": "hosted_vllm/tiny", "place": "local", "api_base": server.address, **settings}


def task(text: str, **changes: Any) -> Task:
    """Return a question."""
    fields: dict[str, Any] = {"role": "factor", "intent": "new", "prompt": "p", "run": "one", "seed": 1} | changes
    return Task(messages=(Message("user", text),), schema=Idea, max_tokens=100, **fields)


def _now() -> datetime:
    """Return the time of day."""
    return datetime.now(UTC)


@contextmanager
def routed(servers: Sequence[dict[str, Any]], **settings: Any) -> Iterator[tuple[Router, Ledger]]:
    """Give a router to some servers, on a fresh ledger."""
    models = {f"m{number}": each for number, each in enumerate(servers, 1)}
    config = {"models": models, "roles": {"factor": "local"}, "health": HEALTH, "timeout_seconds": TIMEOUT_S}
    with tempfile.TemporaryDirectory() as folder, Ledger.open(Path(folder), clock=_now) as ledger:
        ledger.runs.start(Run("one", {}, 1, "data", "2026-01-02"))
        yield Router(RouterConfig.model_validate({**config, "cooldown_seconds": 60.0, **settings}), ledger), ledger


async def ask(router: Router, tasks: Sequence[Task], *, together: bool) -> list[Reply[Any]]:
    """Ask at once, or one after the other, and close."""
    try:
        if together:
            return list(await asyncio.gather(*(router.ask(request) for request in tasks)))
        return [await router.ask(request) for request in tasks]
    finally:
        await router.close()


def gone(calls: int, *, deaf: bool, together: bool) -> Row:
    """Measure calls to a server that is gone and one that is there."""
    with Server(deaf=deaf, hangs=not deaf) as first, Server() as second:
        seconds = PATIENT_S if deaf else TIMEOUT_S
        with routed([at(first), at(second)], retries=0, timeout_seconds=seconds) as (router, _):
            began = time.monotonic()
            replies = asyncio.run(ask(router, [task(str(i)) for i in range(calls)], together=together))
            seconds = time.monotonic() - began
        looks = sum(first.gets.values())
    kind, how = "deaf" if deaf else "hanging", "at once" if together else "in turn"
    said = f"{len(replies)} answers, {first.posts} calls sent to it, {looks} looks at it, {seconds:.1f} s in all"
    good = (len(replies), first.posts) == (calls, 0 if deaf else 1) and (looks <= 1 or not deaf)
    return Row(f"{calls} calls {how}, [{kind}, alive]", said, good)


def litellm_router(calls: int, *, deaf: bool) -> Row:
    """Measure LiteLLM's router on the same servers, one call after the other."""
    litellm = load_litellm()
    with Server(deaf=deaf, hangs=not deaf) as first, Server() as second:
        deployments = [
            {
                "model_name": name,
                "litellm_params": {"model": "hosted_vllm/tiny", "api_base": server.address, "api_key": "x"},
            }
            for name, server in (("m1", first), ("m2", second))
        ]
        router = litellm.Router(
            model_list=deployments, num_retries=0, timeout=TIMEOUT_S, cooldown_time=600, fallbacks=[{"m1": ["m2"]}]
        )

        async def course() -> None:
            for i in range(calls):
                await router.acompletion(model="m1", messages=[{"role": "user", "content": str(i)}])
            await litellm.close_litellm_async_clients()

        began = time.monotonic()
        asyncio.run(course())
        seconds = time.monotonic() - began
    said = f"{sum(second.served.values())} answers, {first.posts} calls sent to it, {seconds:.1f} s in all"
    return Row(f"{calls} calls in turn, [{'deaf' if deaf else 'hanging'}, alive], LiteLLM's router", said, True)


def twice(*servers: Server) -> int:
    """Return how many prompts were answered more than once."""
    total = sum((server.served for server in servers), start=type(servers[0].served)())
    return sum(times > 1 for times in total.values())


def killed(calls: int) -> Row:
    """Measure calls at once to two servers, one of which is killed while it thinks about them."""
    with Server() as first, Server(delay_s=0.05) as second:
        with routed([at(first), at(second)], timeout_seconds=PATIENT_S, health=PATIENT_HEALTH) as (router, ledger):

            async def course() -> list[Reply[Any]]:
                await router.ask(task("warm"))
                first.delay_s = 5.0
                return await ask(router, [task(str(i)) for i in range(calls)], together=True)

            with after(_busy(first, calls // 3), first.kill):
                replies = asyncio.run(course())
            rows = len(ledger.calls.of("one"))
        broken, again = first.posts - sum(first.served.values()), twice(first, second)
    said = (
        f"{len(replies)} answers, {broken} calls broken, {again} prompts answered twice, {rows - 1} rows in the ledger"
    )
    return Row(
        f"{calls} calls at once, one of two servers killed", said, (len(replies), again, rows) == (calls, 0, calls + 1)
    )


def restarted(calls: int) -> Row:
    """Measure calls at once to the only server, which is killed and comes back."""

    def away(server: Server) -> None:
        server.kill()
        time.sleep(2.0)
        server.delay_s = 0.05
        server.start()

    with Server() as only:
        with routed([at(only)], timeout_seconds=PATIENT_S, health=PATIENT_HEALTH) as (router, ledger):

            async def course() -> list[Reply[Any]]:
                await router.ask(task("warm"))
                only.delay_s = 5.0
                return await ask(router, [task(str(i)) for i in range(calls)], together=True)

            began = time.monotonic()
            with after(_busy(only, calls // 3), lambda: away(only)):
                replies = asyncio.run(course())
            seconds, rows = time.monotonic() - began, len(ledger.calls.of("one"))
        again = twice(only)
    said = f"{len(replies)} answers, {again} prompts answered twice, {seconds:.1f} s in all (2 s away)"
    return Row(
        f"{calls} calls at once, the only server restarted", said, (len(replies), again, rows - 1) == (calls, 0, calls)
    )


def hedged(calls: int, *, hedge: bool, slow_s: float = 1.5) -> tuple[Row, float]:
    """Measure a server of which every twentieth call is slow, and another beside it; return its 99th percentile too."""
    paid = {"input_cost_per_mtok": 1.0, "output_cost_per_mtok": 10.0}
    health = HEALTH | {"hedge": hedge, "slow_factor": 0.0}
    took: list[float] = []
    with Server(delay_s=0.03, slow_s=slow_s, slow_every=20) as first, Server(delay_s=0.03) as second:
        other = at(second, **paid, model="hosted_vllm/other")
        with routed([at(first, **paid), other], health=health, timeout_seconds=PATIENT_S) as (router, ledger):

            async def course() -> None:
                await router.ask(task("warm"))
                for i in range(calls):
                    began = time.monotonic()
                    await router.ask(task(str(i), idempotent=True))
                    took.append(time.monotonic() - began)
                await router.close()

            asyncio.run(course())
            usd = sum(call.cost_usd for call in ledger.calls.of("one"))
    took.sort()
    median, tail = took[len(took) // 2], took[int(0.99 * len(took))]
    said = (
        f"p50 {1e3 * median:.0f} ms, p99 {1e3 * tail:.0f} ms, {1e3 * usd:.1f} thousandths of a dollar, "
        f"{second.posts} asked beside"
    )
    return Row(f"{calls} calls in turn, every 20th slow, hedging {'on' if hedge else 'off'}", said, True), tail


def shared(calls: int, waiting: int) -> Row:
    """Measure two servers of one model, of which one says that calls wait."""
    page = "vllm:num_requests_waiting {}\nvllm:kv_cache_usage_perc 0.1\n"
    with (
        Server(delay_s=0.5, metrics=page.format(waiting)) as first,
        Server(delay_s=0.5, metrics=page.format(0)) as second,
    ):
        with routed([at(first), at(second)], timeout_seconds=PATIENT_S) as (router, _):
            asyncio.run(ask(router, [task(str(i)) for i in range(calls)], together=True))
        share = first.posts, second.posts
    good = abs(share[1] - share[0] - min(waiting, calls)) <= 2
    return Row(
        f"{calls} calls at once, two servers, {waiting} wait at the first", f"{share[0]} and {share[1]} calls", good
    )


@contextmanager
def after(ready: Callable[[], bool], act: Callable[[], None]) -> Iterator[None]:
    """Do something when it is time, beside what goes on, or when that is over."""
    over = threading.Event()

    def wait() -> None:
        while not ready() and not over.wait(0.005):
            pass
        act()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    yield
    over.set()
    thread.join()


def _busy(server: Server, calls: int) -> Callable[[], bool]:
    """Return whether a server thinks about so many calls beside the first."""
    return lambda: server.posts > calls


def measured(calls: int) -> Iterator[Row]:
    """Yield all rows."""
    for together in (False, True):
        yield gone(calls, deaf=True, together=together)
    yield gone(calls, deaf=False, together=False)
    for deaf in (True, False):
        yield litellm_router(min(calls, 20), deaf=deaf)
    yield killed(calls // 2)
    yield restarted(calls // 5)
    plain, before = hedged(2 * calls, hedge=False)
    quick, then = hedged(2 * calls, hedge=True)
    yield from (plain, Row(quick.what, quick.found, then < before))
    for waiting in (0, 10):
        yield shared(40, waiting)


def main(given: Sequence[str]) -> int:
    """Measure and print; 1 if anything is lost, paid twice, or waited for more than once."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--calls", type=int, default=100, help="calls of a row")
    load_litellm()
    good = True
    for row in measured(options.parse_args(given).calls):
        good &= row.good
        sys.stdout.write(f"{'ok  ' if row.good else 'BAD '}{row.what:58s} {row.found}\n")
        sys.stdout.flush()
    return int(not good)
