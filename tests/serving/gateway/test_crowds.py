"""What one client, with a token or without, can keep others from: places, memory, the event loop, the endpoint."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from typing import Any, TypeAlias

import pytest

from alphaloom.desk.cli.serve.connections import SPARE_CONNECTIONS
from alphaloom.serving.errors import QueueFull
from alphaloom.serving.gateway.calls import MAX_WHOLE_REPLY_BYTES
from alphaloom.serving.gateway.client import CALLS_BETWEEN, TenantAdmission
from alphaloom.serving.gateway.gateway import MAX_INLINE_BYTES
from alphaloom.serving.gateway.tenants import FairnessSettings

from .modelled import Endpoint as Modelled, modelled
from .test_gateway import CHAT, Stage, call, play

HEAD = b"POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n"
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
    writer.write(HEAD % (CHAT.encode(), key.encode(), said) + body)
    return reader, writer


async def asking(stage: Stage, **told: Any) -> socket.socket:
    """Ask through a socket that holds little of the answer."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 10)
    client.setblocking(False)
    loop, base, body = asyncio.get_running_loop(), stage.http.base_url, json.dumps(call(**told)).encode()
    await loop.sock_connect(client, (base.host, base.port))
    await loop.sock_sendall(client, HEAD % (CHAT.encode(), b"key-a", len(body)) + body)
    return client


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
        with await asking(stage, max_tokens=150_000):  # 900 kB: more than the sockets hold, less than is kept
            await stage.until(lambda: len(endpoint.calls) == 1)
            await stage.until(lambda: stage.free == 2 and endpoint.under_way == 0)

    play(steps, endpoint.address)


def test_a_reader_that_lets_the_endpoint_wait_is_given_up(endpoint: Modelled) -> None:
    """However often it takes a little: what counts is how long a place was held for it in all."""

    async def steps(stage: Stage) -> None:
        with await asking(stage, max_tokens=tokens) as client:
            await stage.until(lambda: stage.free == 1)
            loop, taken = asyncio.get_running_loop(), 0
            while stage.free == 1:
                least = taken + (128 << 10)
                while taken < least and stage.free == 1:
                    taken += len(await asyncio.wait_for(loop.sock_recv(client, 64 << 10), 30))
                await asyncio.sleep(0.05)
            assert taken < len("wörd ".encode()) * tokens / 2  # it was given up long before the whole reply was read

    tokens = 3_000_000
    play(steps, endpoint.address, patience=1.2)


def test_calls_of_one_tenant_are_refused_at_the_door_before_they_are_read(endpoint: Modelled) -> None:
    async def steps(stage: Stage) -> None:
        open_ = [(await begun(stage, b"{", 9))[1] for _ in range(2 + CALLS_BETWEEN)]
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
    door = TenantAdmission(FairnessSettings(places=1), 100)
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


def test_a_large_call_is_read_beside_the_others_and_one_at_a_time(endpoint: Modelled) -> None:
    async def steps(stage: Stage) -> None:
        await stage.ask("key-a")
        reading = stage.gateway._tenants["alice"].reading
        large: dict[str, Any] = {"messages": [{"role": "user", "content": "x" * MAX_INLINE_BYTES}]}
        async with reading:
            waits = asyncio.create_task(stage.ask("key-a", **large))
            await stage.until(lambda: reading.statistics().tasks_waiting == 1)
            for answer in (await stage.ask("key-a"), await stage.ask("key-b", **large)):
                assert answer.status_code == 200
        assert (await waits).status_code == 200

    play(steps, endpoint.address)


def test_idle_connections_make_room(endpoint: Modelled) -> None:
    async def steps(stage: Stage) -> None:
        base = stage.http.base_url
        idle = [await asyncio.open_connection(base.host, base.port) for _ in range(8 + SPARE_CONNECTIONS)]
        await asyncio.sleep(0.05)
        assert (await stage.ask()).status_code == 200
        async with asyncio.timeout(5):
            assert await idle[0][0].read() == b"", "the oldest was closed"
        for _, writer in idle:
            writer.close()

    play(steps, endpoint.address, connections=8)


def test_connections_of_tenants_that_are_answered_make_no_room(endpoint: Modelled) -> None:
    async def steps(stage: Stage) -> None:
        calls = [asyncio.create_task(stage.ask(pause=1.0)) for _ in range(8)]
        await stage.until(lambda: stage.gateway._door._calls["alice"] == 8)
        assert (await stage.ask("key-b")).status_code == 503
        assert {(await request).status_code for request in calls} == {200}
        assert (await stage.ask("key-b")).status_code == 200

    play(steps, endpoint.address, connections=8, places=8)


def test_a_reply_too_large_to_be_read_is_charged_as_the_most_it_may_be(endpoint: Modelled) -> None:
    async def steps(stage: Stage) -> None:
        await stage.ask("key-a", max_tokens=1)
        before = stage.gateway.gate.served_tokens("alice")
        await stage.ask("key-a", max_tokens=MAX_WHOLE_REPLY_BYTES // 6 + 1000)
        assert stage.gateway.gate.served_tokens("alice") - before > 2 * MAX_WHOLE_REPLY_BYTES // 6

    play(steps, endpoint.address)


def test_the_endpoint_is_looked_at_once_however_many_ask(endpoint: Modelled) -> None:
    async def steps(stage: Stage) -> None:
        stage.gateway._probe.seconds = lambda: 0.0
        answers = await asyncio.gather(*(stage.http.get("/metrics") for _ in range(8)))
        assert {answer.status_code for answer in answers} == {200}
        assert endpoint.looks == ["/metrics"]
        stage.gateway._probe.seconds = lambda: 1.5
        await stage.http.get("/metrics")
        assert endpoint.looks == ["/metrics", "/metrics"]

    play(steps, endpoint.address)


def test_that_the_endpoint_is_away_is_asked_once_too() -> None:
    async def steps(stage: Stage) -> None:
        stage.gateway.probe_timeout = 0.3
        stage.gateway._probe.seconds = lambda: 0.0
        answers = await asyncio.gather(*(stage.http.get("/health") for _ in range(8)))
        assert {answer.status_code for answer in answers} == {503}

    with socket.create_server(("127.0.0.1", 0)) as silent:
        play(steps, f"http://127.0.0.1:{silent.getsockname()[1]}")
        silent.setblocking(False)
        silent.accept()[0].close()
        with pytest.raises(BlockingIOError):  # there was no second connection
            silent.accept()
