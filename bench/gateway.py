"""Does one tenant's flood move another's tail over real HTTP? The gateway of `alphaloom models gate`.

python -m bench.gateway                           8, 16 and 32 places, replies of the flood four times as long
python -m bench.gateway --places 8 --longer 1     one, replies of the same length

The law of calls is that of bench.fairness, `--speed` times as fast: a quiet tenant whose calls come at random and
use half of what half the endpoint can do, beside one that always has 100 calls waiting and streams its replies without
saying usage. Endpoint, gateway and load are three processes on this machine. In turns: the quiet tenant alone on half
of the places, beside the flood in order of arrival (FIFO), by virtual token counters (VTC), and so that no tenant holds
more than three quarters of the places (`calls`). Same calls at the same moments in all of them; the figure is the quiet
tenant's 99th percentile over that alone, with a 95 % interval from 2,000 paired resamples of its calls. `again` is
alone once more, at the end: where it is far from 1, the machine was busy and the line says little. The endpoint is a
stand-in that holds a call for as long as its tokens say: it measures the gateway and the order, not a model.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import numpy as np

from alphaloom.desk.cli.serve.server import ServerTerms, serve_until_signal
from alphaloom.serving.gateway import Gateway, GatewayEndpoint, GatewaySettings, build_application
from alphaloom.serving.gateway.fair_scheduler import FairScheduler
from tests.serving.gateway.fairness import MEAN_SECONDS, ORDERS, WAITING, Size, sizes

CHAT = "/v1/chat/completions"
PIECE = 10
"""Tokens that the endpoint sends at once where it streams."""
WAYS = {"FIFO": ("FIFO", 1.0), "VTC": ("VTC", 1.0), "VTC, 3/4": ("VTC", 0.75)}
"""Orders, and the part of the places that one tenant may hold."""


@dataclass(frozen=True)
class Scenario:
    """Number of places, load of the quiet tenant on its half, length of the flood's replies, and speed."""

    places: int
    load: float
    longer: float
    calls: int
    seed: int
    speed: float


async def stand_in(there: socket.socket, speed: float) -> None:
    """Answer calls as long as their tokens take."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
                told = json.loads(await reader.readexactly(length)) if length else {}
                size = told.get("metadata", {})
                await reply(writer, Size(size.get("tokens_in", 0), size.get("tokens_out", 1)), bool(told.get("stream")))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def reply(writer: asyncio.StreamWriter, size: Size, stream: bool) -> None:
        await asyncio.sleep(size.tokens_in / 5000 / speed)
        head = b"HTTP/1.1 200 OK\r\ncontent-type: "
        if stream:
            writer.write(head + b"text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            for begin in range(0, size.tokens_out, PIECE):
                many = min(PIECE, size.tokens_out - begin)
                await asyncio.sleep(many / 50 / speed)
                event = b'data: {"choices": [{"index": 0, "delta": {"content": "%s"}}]}\n\n' % (b"word" * many)
                if writer.is_closing():  # hung up on
                    return
                writer.write(b"%x\r\n%s\r\n" % (len(event), event))
            writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
        else:
            await asyncio.sleep(size.tokens_out / 50 / speed)
            usage = {"prompt_tokens": size.tokens_in, "completion_tokens": size.tokens_out}
            body = json.dumps(
                {"choices": [{"message": {"content": "word" * size.tokens_out}}], "usage": usage}
            ).encode()
            writer.write(head + b"application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()

    async with await asyncio.start_server(talk, sock=there) as serving:
        await serving.serve_forever()


def gateway(there: socket.socket, address: str, order: str, places: int, part: float) -> None:
    """Serve a gateway whose tenants are called as their tokens."""
    rule, weight = ORDERS[order]
    default = {"queue": 10_000, "calls": max(1, int(part * places)) if part < 1 else None}
    settings = GatewaySettings.model_validate({"places": places, "output_weight": weight, "default": default})
    fairness = settings.build_fairness()
    gate = FairScheduler(fairness, clock=time.monotonic, order=rule)
    serve_until_signal(
        build_application(Gateway(GatewayEndpoint(address), gate, fairness, settings, str)),
        there,
        ServerTerms(1),
        lambda: False,
    )


@contextmanager
def started(*arguments: str) -> Iterator[str]:
    """Start a part of this file as a process that listens on a socket of ours; yield its address."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as there:
        there.bind(("127.0.0.1", 0))
        there.listen(512)
        command = [sys.executable, "-m", "bench.gateway", *arguments, "--socket", str(there.fileno())]
        process = subprocess.Popen(command, pass_fds=[there.fileno()])
        try:
            yield f"http://127.0.0.1:{there.getsockname()[1]}"
        finally:
            process.kill()
            process.wait()


async def ask(http: httpx2.AsyncClient, tenant: str, size: Size, **more: Any) -> None:
    """Ask once; an answer that is none ends the benchmark."""
    content = "word" * size.tokens_in
    body = {"messages": [{"role": "user", "content": content}], "max_tokens": 4000, "metadata": vars(size), **more}
    answer = await http.post(CHAT, json=body, headers={"authorization": f"Bearer {tenant}"})
    answer.raise_for_status()


async def quiet(http: httpx2.AsyncClient, scenario: Scenario) -> list[float]:
    """Return waiting and service of each call of the quiet tenant, in seconds, in the order in which they came."""
    rng = np.random.default_rng([scenario.seed, 1])
    gap = MEAN_SECONDS / (scenario.load * scenario.places / 2) / scenario.speed
    found = [0.0] * scenario.calls

    async def one(number: int, size: Size) -> None:
        came = time.monotonic()
        await ask(http, "quiet", size)
        found[number] = time.monotonic() - came

    begin = due = time.monotonic()
    async with asyncio.TaskGroup() as calls:
        for number, size in zip(range(scenario.calls), sizes(scenario.seed), strict=False):
            due += rng.exponential(gap)
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            calls.create_task(one(number, size))
    assert time.monotonic() > begin
    return found


async def measured(address: str, scenario: Scenario, *, flooded: bool) -> list[float]:
    """Return the quiet tenant's seconds at a gateway."""
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    kind = sizes(scenario.seed + 1000, scenario.longer)
    async with httpx2.AsyncClient(base_url=address, limits=limits, timeout=None, trust_env=False) as http:

        async def flood() -> None:
            while True:
                await ask(http, "flood", next(kind), stream=True)

        await ask(http, "quiet", Size(1, 1))
        tasks = [asyncio.create_task(flood()) for _ in range((WAITING + scenario.places) * flooded)]
        await asyncio.sleep(2 * MEAN_SECONDS / scenario.speed * flooded)
        found = await quiet(http, scenario)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return found


def tail(seconds: Any) -> Any:
    """Return the 99th percentile, of each row."""
    return np.quantile(seconds, 0.99, axis=-1)


def interval(beside: Sequence[float], alone: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the ratio of the tails, from paired resamples of the calls."""
    picks = np.random.default_rng(0).integers(0, len(alone), (2000, len(alone)))
    ratios = tail(np.asarray(beside)[picks]) / tail(np.asarray(alone)[picks])
    return float(np.quantile(ratios, 0.025)), float(np.quantile(ratios, 0.975))


def row(scenario: Scenario, upstream: str, ways: Collection[str] = WAYS.keys()) -> dict[str, float]:
    """Measure one line of the table and print it."""
    own = alone(scenario, upstream)
    said, found = f"{scenario.places:6d} {scenario.longer:6.0f}x {tail(own) * scenario.speed:8.1f} s", {}
    for name, (order, part) in ((name, WAYS[name]) for name in ways):
        given = ("--order", order, "--places", str(scenario.places), "--part", str(part))
        with started("--gateway", upstream, *given) as address:
            beside = asyncio.run(measured(address, scenario, flooded=True))
        low, high = interval(beside, own)
        found[name] = float(tail(beside) / tail(own))
        said += f"   {found[name]:6.2f} [{low:.2f}, {high:.2f}]"
    again = alone(scenario, upstream)
    sys.stdout.write(f"{said}   {tail(again) / tail(own):6.2f}\n")
    sys.stdout.flush()
    return found


def alone(scenario: Scenario, upstream: str) -> list[float]:
    """Return the quiet tenant's seconds alone, on half of the places."""
    with started("--gateway", upstream, "--order", "VTC", "--places", str(scenario.places // 2)) as address:
        return asyncio.run(measured(address, scenario, flooded=False))


def overhead(upstream: str, calls: int = 300) -> tuple[float, float]:
    """Return the median milliseconds of an instant call: straight to the endpoint, and through the gateway."""

    async def median(address: str) -> float:
        found = []
        async with httpx2.AsyncClient(base_url=address, timeout=20, trust_env=False) as http:
            for _ in range(calls):
                begin = time.perf_counter()
                await ask(http, "quiet", Size(1, 0))
                found.append(time.perf_counter() - begin)
        return 1e3 * float(np.median(found))

    with started("--gateway", upstream, "--order", "VTC", "--places", "8") as address:
        return asyncio.run(median(upstream)), asyncio.run(median(address))


def compare(given: argparse.Namespace) -> int:
    """Measure and print; 1 if a flood moves the tail by more than a fifth under VTC."""
    worst = 0.0
    with started("--endpoint", "--speed", str(given.speed)) as upstream:
        straight, through = overhead(upstream)
        sys.stdout.write(
            f"a call that takes no time: {straight:.1f} ms straight, {through:.1f} ms through the gateway\n"
        )
        heads = "".join(f"{name:>23s}" for name in WAYS)
        sys.stdout.write(f"places   flood    alone{heads}    again\n")
        for places in given.places:
            for longer in given.longer:
                scenario = Scenario(places, given.load, longer, given.calls, given.seed, given.speed)
                worst = max(worst, row(scenario, upstream)["VTC"])
    return int(worst > 1.2)


def main() -> int:
    """Compare, or be the part that the comparison starts."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--places", type=int, nargs="+", default=[8, 16, 32])
    options.add_argument("--longer", type=float, nargs="+", default=[4.0], help="than the quiet tenant's replies")
    options.add_argument("--load", type=float, default=0.5)
    options.add_argument("--calls", type=int, default=500, help="calls of the quiet tenant")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--speed", type=float, default=10.0, help="how many times as fast as a model all is")
    for name in ("--gateway", "--order", "--socket", "--part"):
        options.add_argument(name, help=argparse.SUPPRESS)
    options.add_argument("--endpoint", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.socket is None:
        return compare(given)
    there = socket.socket(fileno=int(given.socket))
    part: Callable[[], None] = (
        (lambda: asyncio.run(stand_in(there, given.speed)))
        if given.endpoint
        else (lambda: gateway(there, given.gateway, given.order, given.places[0], float(given.part or 1)))
    )
    part()
    return 0


if __name__ == "__main__":
    sys.exit(main())
