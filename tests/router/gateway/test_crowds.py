"""What one client, with a token or without, can keep others from: places, memory, the event loop, the endpoint."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from typing import Any, TypeAlias

import pytest

from alphaloom.router.errors import QueueFull
from alphaloom.router.gateway.counting import MOST_KEPT
from alphaloom.router.gateway.door import BETWEEN, Door
from alphaloom.router.quota import FairnessSettings

from .modelled import Endpoint as Modelled
from .modelled import modelled
from .test_gateway import CHAT, Stage, call, play

Connection: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture(autouse=True)
def no_network() -> None:
    """These tests connect to this machine."""


@pytest.fixture
def endpoint() -> Iterator[Modelled]:
    with modelled() as endpoint:
        yield endpoint


async def begun(stage: Stage, body: bytes, said: int, key: str = "key-a") -> Connection:
    """Begin a call by hand, of a body said to be so long."""
    base = stage.http.base_url
    reader, writer = await asyncio.open_connection(base.host, base.port, limit=1)
    writer.write(b"POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s"
                 % (CHAT.encode(), key.encode(), said, body))  # fmt: skip
    return reader, writer


def test_a_count_without_end_hurts_nobody_else(endpoint: Modelled) -> None:
    async def steps(stage: Stage) -> None:
        first = asyncio.create_task(stage.ask("key-a", pause=0.2))
        await stage.until(lambda: endpoint.under_way == 1)
        wild = asyncio.create_task(stage.ask("key-a", max_tokens=10**400))
        assert (await stage.ask("key-b")).status_code == 200
        assert [(await first).status_code, (await wild).status_code] == [200, 400]

    play(steps, endpoint.address, places=1)


def test_a_slow_reader_holds_no_place_once_the_endpoint_is_done(endpoint: Modelled) -> None:
    async def steps(stage: Stage) -> None:
        body = json.dumps(call(max_tokens=150_000)).encode()  # 900 kB: more than sockets hold, less than is kept
        _, writer = await begun(stage, body, len(body))
        await stage.until(lambda: len(endpoint.calls) == 1)
        await stage.until(lambda: stage.free == 2 and endpoint.under_way == 0)
        writer.close()

    play(steps, endpoint.address)


def test_a_reader_that_lets_the_endpoint_wait_is_given_up(endpoint: Modelled) -> None:
    """However often it takes a little: what counts is how long a place was held for it in all."""

    async def steps(stage: Stage) -> None:
        body = json.dumps(call(max_tokens=3_000_000)).encode()
        reader, writer = await begun(stage, body, len(body))
        await stage.until(lambda: stage.free == 1)
        began = time.monotonic()
        while stage.free == 1:
            assert await asyncio.wait_for(reader.read(300_000), 1)
            await asyncio.sleep(0.15)
            assert time.monotonic() - began < 1.5
        writer.close()

    play(steps, endpoint.address, patience=0.4)


def test_calls_of_one_tenant_are_refused_at_the_door_before_they_are_read(endpoint: Modelled) -> None:
    async def steps(stage: Stage) -> None:
        open_ = [(await begun(stage, b"{", 9))[1] for _ in range(2 + BETWEEN)]
        await stage.until(lambda: stage.gateway._door._calls["alice"] == len(open_))
        refused = await stage.ask("key-a")
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "queue_full")
        assert (await stage.ask("key-b")).status_code == 200
        for writer in open_:
            writer.close()
        await stage.until(lambda: stage.gateway._door._calls["alice"] == 0)
        assert (await stage.ask("key-a")).status_code == 200
        told = (await stage.http.get("/metrics", headers={"authorization": "Bearer key-a"})).text
        assert 'calls_total{tenant="alice",outcome="refused"} 1\n' in told
        assert f'calls_total{{tenant="alice",outcome="left"}} {len(open_)}\n' in told

    play(steps, endpoint.address, default={"queue": 0})


def test_bytes_of_one_tenant_are_bounded(endpoint: Modelled) -> None:
    async def steps(stage: Stage) -> None:
        _, writer = await begun(stage, b"{", 900_000)
        await stage.until(lambda: stage.gateway._door._bytes["alice"] == 900_000)
        more: dict[str, Any] = {"messages": [{"role": "user", "content": "x" * 200_000}]}
        assert (await stage.ask("key-a", **more)).json()["error"]["param"] == "megabytes"
        assert [(await stage.ask("key-a")).status_code, (await stage.ask("key-b", **more)).status_code] == [200, 200]
        writer.close()
        await stage.until(lambda: stage.gateway._door._bytes["alice"] == 0)
        assert (await stage.ask("key-a", **more)).status_code == 200

    play(steps, endpoint.address, megabytes=1)


def test_bytes_that_nobody_announced_count_too() -> None:
    door = Door(FairnessSettings(places=1), 100)
    with door.open("a") as one, door.open("b") as other:
        door.fill(one, 60)
        with pytest.raises(QueueFull), door.open("a") as second:
            door.fill(second, 41)
        door.fill(other, 100)
        door.fill(one, 40)


def test_a_body_that_does_not_come_is_not_waited_for(endpoint: Modelled) -> None:
    async def steps(stage: Stage) -> None:
        _, writer = await begun(stage, b"{", 9)
        await stage.until(lambda: stage.gateway._door._calls["alice"] == 1)
        await stage.until(lambda: stage.gateway._door._calls["alice"] == 0)
        writer.close()

    play(steps, endpoint.address, patience=0.2)


def test_a_large_call_is_read_beside_the_others(endpoint: Modelled) -> None:
    """Half a million parts: the loop hears of nothing else for a part of the time only."""

    async def steps(stage: Stage) -> None:
        body = b'{"messages":[' + b'{"content":"a"},' * 240_000 + b"{}]}"
        large = asyncio.create_task(stage.http.post(CHAT, content=body, headers={"authorization": "Bearer key-a"}))
        longest, last = 0.0, time.monotonic()
        while not large.done():
            await asyncio.sleep(0.001)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
        assert (await large).status_code == 200
        assert longest < 0.5

    play(steps, endpoint.address)


def test_more_connections_than_may_be_are_refused(endpoint: Modelled) -> None:
    async def steps(stage: Stage) -> None:
        base = stage.http.base_url
        idle = [(await asyncio.open_connection(base.host, base.port))[1] for _ in range(3)]
        await asyncio.sleep(0.05)
        assert (await stage.http.get("/health")).status_code == 503
        for writer in idle:
            writer.close()

    play(steps, endpoint.address, connections=3)


def test_a_reply_too_large_to_be_read_is_charged_as_the_most_it_may_be(endpoint: Modelled) -> None:
    async def steps(stage: Stage) -> None:
        await stage.ask("key-a", max_tokens=1)
        before = stage.gateway.gate.served("alice")
        await stage.ask("key-a", max_tokens=MOST_KEPT // 6 + 1000)
        assert stage.gateway.gate.served("alice") - before > 2 * MOST_KEPT // 6

    play(steps, endpoint.address)


def test_the_endpoint_is_looked_at_once_however_many_ask(endpoint: Modelled) -> None:
    async def steps(stage: Stage) -> None:
        answers = await asyncio.gather(*(stage.http.get("/metrics") for _ in range(8)))
        assert {answer.status_code for answer in answers} == {200}
        assert endpoint.looks == ["/metrics"]
        stage.gateway._looks.seconds = lambda: time.monotonic() + 1.5
        await stage.http.get("/metrics")
        assert endpoint.looks == ["/metrics", "/metrics"]

    play(steps, endpoint.address)


def test_that_the_endpoint_is_away_is_asked_once_too() -> None:
    async def steps(stage: Stage) -> None:
        stage.gateway.look = 0.2
        began = time.monotonic()
        answers = await asyncio.gather(*(stage.http.get("/health") for _ in range(8)))
        assert {answer.status_code for answer in answers} == {503}
        assert time.monotonic() - began < 1.2

    with socket.create_server(("127.0.0.1", 0)) as silent:
        play(steps, f"http://127.0.0.1:{silent.getsockname()[1]}")
