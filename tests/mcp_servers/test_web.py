"""The servers over HTTP: real clients of both eras, each its own data; what is refused, and that all of it is on record."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from alphaloom.evidence import Budget
from alphaloom.evidence.mandate import Mandate
from alphaloom.ledger import Ledger
from alphaloom.ledger.calls import Outcome, ToolCall
from alphaloom.mcp_servers.access import Caller
from alphaloom.mcp_servers.entry import EVERYTHING
from alphaloom.mcp_servers.errors import TokenRefused
from alphaloom.mcp_servers.rooms import Ground, Rooms
from alphaloom.mcp_servers.served import Served
from alphaloom.mcp_servers.web import Limits, web

from ..evidence.lab import market
from .test_as_of import SETTINGS

PANEL = market(days=420, names=60)
DAYS = {"early": PANEL.dates[380].astype(object), "late": PANEL.dates[410].astype(object)}


def clock() -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Known:
    """Knows callers by their names alone: what tokens are has tests of its own."""

    waits: bool = False

    def verify(self, bearer: str) -> Caller:
        if bearer not in (*DAYS, "reader"):
            raise TokenRefused("not known")
        scopes = frozenset({"data:read"}) if bearer == "reader" else EVERYTHING
        return Caller(bearer, scopes, as_of=DAYS.get(bearer, DAYS["early"]))


@dataclass
class Running:
    url: str
    calls: list[ToolCall] = field(default_factory=list)


@contextmanager
def running(folder: Path, rooms_of: type[Rooms] = Rooms, **limits: Any) -> Iterator[Running]:
    with Ledger.open(folder, clock=clock) as ledger, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        served = Running(f"http://127.0.0.1:{port}")
        with rooms_of(
            Ground(PANEL, "market", ledger, SETTINGS, Budget(), Mandate(), clock, served.calls.append)
        ) as rooms:
            app = web(rooms, Known(), Limits(**limits))
            server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on"))
            free.listen()
            thread = threading.Thread(target=server.run, kwargs={"sockets": [free]})
            thread.start()
            try:
                while not server.started:
                    pass
                yield served
            finally:
                server.should_exit = True
                thread.join()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("web")) as started:
        yield started


@asynccontextmanager
async def attached(served: Running, who: str, server: str, mode: str) -> Any:
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {who}"}) as http:
        transport = streamable_http_client(f"{served.url}/{server}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_callers_of_both_eras_see_their_own_days_at_the_same_time(served: Running, mode: str) -> None:
    found: dict[str, list[str]] = {}

    async def look(who: str) -> None:
        async with attached(served, who, "market", mode) as client:
            for _ in range(5):
                said = await client.call_tool("describe_universe", {})
                found.setdefault(who, []).append(said.structured_content["window"]["last"])

    async def both() -> None:
        async with anyio.create_task_group() as tasks:
            for who in DAYS:
                tasks.start_soon(look, who)

    anyio.run(both)
    assert {who: len(days) for who, days in found.items()} == dict.fromkeys(DAYS, 5)
    assert all(day < str(DAYS[who]) for who, days in found.items() for day in days)
    kept = [call for call in served.calls if call.tool == "describe_universe"]
    assert {(call.who, call.as_of) for call in kept} == set(DAYS.items())


def test_a_caller_lists_what_it_may_call(served: Running) -> None:
    async def listed(server: str) -> list[str]:
        async with attached(served, "reader", server, "auto") as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    assert "search_fields" in anyio.run(listed, "market")
    assert anyio.run(listed, "evaluation") == []
    assert anyio.run(listed, "news") == []


def test_what_is_refused_before_a_tool_is_told_and_on_record(served: Running) -> None:
    before = len(served.calls)
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    with httpx2.Client(base_url=served.url) as http:
        assert http.get("/health").json()["status"] == "ok"
        stranger = http.post("/market/mcp", json=asked, headers={"Authorization": "Bearer stranger"})
        nobody = http.post("/market/mcp", json=asked)
        assert (stranger.status_code, nobody.status_code) == (401, 401)
        assert stranger.json() == nobody.json()
        assert http.post("/trading/mcp", json=asked).status_code == 404
        own = {"Authorization": "Bearer early", "Accept": "application/json, text/event-stream"}
        assert http.post("/market/mcp", json=asked, headers=own | {"Host": "evil.example"}).status_code == 421
        assert http.post("/market/mcp", json=asked, headers=own | {"Origin": "https://evil.example"}).status_code == 403
        assert http.post("/market/mcp", content=b"x" * (2 << 20), headers=own).status_code == 413
        assert http.get("/market/mcp", headers=own).status_code == 405
        modern = own | {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "resources/read"}
        assert http.post("/market/mcp", content=b"{", headers=modern).status_code == 400
    assert [(call.who, call.tool, call.code) for call in served.calls[before:]] == [
        *[("anonymous", "http", "unauthorized")] * 2,
        ("anonymous", "http", "unknown_server"),
        *(("early", "http", code) for code in ("http_421", "http_403", "http_413", "method", "http_400")),
    ]
    assert all(call.outcome is Outcome.REFUSED for call in served.calls[before:])


def test_no_stream_is_promised_and_none_is_held_open(served: Running) -> None:
    async def promised() -> tuple[Any, Any, Any]:
        async with attached(served, "early", "market", "auto") as client:
            told = client.server_capabilities
            return told.tools.list_changed, told.resources.list_changed, told.resources.subscribe

    assert not any(anyio.run(promised))
    with httpx2.Client(base_url=served.url, timeout=5) as http:
        own = {"Authorization": "Bearer early", "Accept": "text/event-stream"}
        asked = http.get("/market/mcp", headers=own)
        assert (asked.status_code, asked.headers["allow"]) == (405, "POST")
        assert http.get("/market/mcp").status_code == 401


def test_a_resource_that_is_not_there_is_refused_by_its_address(served: Running) -> None:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "alphaloom://panels"}}
    own = {"Authorization": "Bearer early", "Accept": "application/json, text/event-stream"}
    with httpx2.Client(base_url=served.url, headers=own) as http:
        told = http.post("/market/mcp", json=asked).json()["error"]["data"]
        assert (told["code"], told["uri"]) == ("unknown_resource", "alphaloom://panels")
        half = json.dumps(asked).replace("panels", r"\ud800")
        broken = http.post("/market/mcp", content=half, headers={"Content-Type": "application/json"})
        assert broken.json()["error"]["code"] < 0


def test_more_calls_than_allowed_wait_and_another_caller_does_not(tmp_path: Path) -> None:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    with running(tmp_path, calls_per_minute=3) as served, httpx2.Client(base_url=served.url) as http:
        answers = [
            http.post("/market/mcp", json=asked, headers={"Authorization": "Bearer early"}).status_code
            for _ in range(5)
        ]
        assert answers.count(429) == 2
        late = http.post("/market/mcp", json=asked, headers={"Authorization": "Bearer late"})
        assert late.status_code != 429
        assert [call.code for call in served.calls].count("too_many") == 2


OPENING, GO_ON = threading.Event(), threading.Event()


class Slow(Rooms):
    """Rooms of which one caller's take their time."""

    def served(self, caller: Caller) -> Served:
        if caller.id == "late":
            OPENING.set()
            GO_ON.wait(30)
        return super().served(caller)


def test_a_caller_with_a_server_does_not_wait_while_another_ones_is_opened(tmp_path: Path) -> None:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    with running(tmp_path, Slow) as served, httpx2.Client(base_url=served.url, timeout=20) as http:

        def status(who: str) -> int:
            return http.post("/market/mcp", json=asked, headers={"Authorization": f"Bearer {who}"}).status_code

        first = status("early")
        with ThreadPoolExecutor(1) as pool:
            late = pool.submit(status, "late")
            assert OPENING.wait(20)
            assert status("early") == first
            assert not late.done()
            GO_ON.set()
            assert late.result() == first
