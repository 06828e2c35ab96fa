"""The servers over HTTP: clients of both eras, each with its own data; refusals; all calls on record."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from alphaloom.desk.cli.serve.server import HttpServer, ServerTerms
from alphaloom.evaluation import Budget
from alphaloom.ledger import Ledger
from alphaloom.ledger.calls import CallOutcome, ToolCall
from alphaloom.ledger.errors import CallsUnwritable, WorkspaceError
from alphaloom.mcp_servers import http_app as web_module
from alphaloom.mcp_servers.access import EVERY_SCOPE, Caller, Protected, TokenVerifier
from alphaloom.mcp_servers.callers import CallerContexts, ServerSetup
from alphaloom.mcp_servers.errors import TokenRefused
from alphaloom.mcp_servers.http_app import (
    MAX_STRANGERS_WAITING,
    METADATA,
    STRANGERS_PER_MINUTE,
    TOKEN_CHECKS_AT_ONCE,
    CallerLimits,
    build_web_app,
)
from alphaloom.mcp_servers.served_caller import ServedCaller
from alphaloom.search.constraints import SearchConstraints

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
        scopes = frozenset({"data:read"}) if bearer == "reader" else EVERY_SCOPE
        return Caller(bearer, scopes, as_of=DAYS.get(bearer, DAYS["early"]))


@dataclass
class Running:
    url: str
    calls: list[ToolCall] = field(default_factory=list)
    full: bool = False
    app: Any = None

    def record(self, call: ToolCall) -> None:
        if self.full:
            raise CallsUnwritable("calls cannot be recorded: /secret/place is full")
        self.calls.append(call)


def reason(told: Any) -> dict[str, Any]:
    """Return what a refusal says, as the SDKs' clients read it."""
    body = told.json()
    assert (body["jsonrpc"], body["id"]) == ("2.0", None)
    return dict(body["error"]["data"])


def wait_until_started(server: HttpServer) -> None:
    while not server.started:
        pass


@contextmanager
def running(
    folder: Path,
    rooms_of: Callable[[ServerSetup], CallerContexts] = CallerContexts,
    protected: Protected | None = None,
    verifier: TokenVerifier | None = None,
    **limits: Any,
) -> Iterator[Running]:
    with Ledger.open(folder, clock=clock) as ledger, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        served = Running(f"http://127.0.0.1:{port}")
        with rooms_of(
            ServerSetup(
                lambda: (PANEL, "market"), ledger, SETTINGS, Budget(), SearchConstraints(), clock, served.record
            )
        ) as rooms:
            served.app = build_web_app(rooms, verifier or Known(), CallerLimits(**limits), protected)
            server = HttpServer(served.app, ServerTerms(1))
            free.listen()
            thread = threading.Thread(target=server.run, kwargs={"sockets": [free]})
            thread.start()
            try:
                wait_until_started(server)
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
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {who}"}, timeout=60) as http:
        transport = streamable_http_client(f"{served.url}/{server}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_callers_of_both_eras_see_their_own_days_at_the_same_time(served: Running, mode: str) -> None:
    found: dict[str, list[str]] = {}

    async def look(who: str) -> None:
        async with attached(served, who, "market", mode) as client:
            for _ in range(5):
                answer = await client.call_tool("describe_universe", {})
                found.setdefault(who, []).append(answer.structured_content["window"]["last"])

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
    with httpx2.Client(base_url=served.url, timeout=60) as http:
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
        *(("anonymous", "http", code) for code in ("http_421", "http_403")),
        *(("early", "http", code) for code in ("http_413", "http_400")),
    ]
    assert all(call.outcome is CallOutcome.REFUSED for call in served.calls[before:])
    assert [call.server for call in served.calls[before:]] == ["market", "market", "unknown", *["market"] * 4]


def test_host_and_origin_are_looked_at_first_whatever_is_asked(served: Running) -> None:
    with httpx2.Client(base_url=served.url, timeout=60) as http:
        for path in ("/health", "/market/mcp", "/nowhere"):
            assert http.get(path, headers={"Host": "evil.example"}).status_code == 421
            assert http.get(path, headers={"Origin": "https://evil.example"}).status_code == 403
    assert {call.who for call in served.calls[-6:]} == {"anonymous"}


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [("Host", "127.0.0.1:80.evil.example", 421), ("Host", "127.0.0.1:evil.example:80", 421),
     ("Host", "127.0.0.1:", 421), ("Host", "localhost:@evil.example", 421),
     ("Host", "localhost:9.evil.example:80", 421), ("Host", "localhost:123456", 421),
     ("Host", "LOCALHOST:9", 200), ("Host", "[::1]:9", 200),
     ("Origin", "http://localhost:9.evil.example", 403), ("Origin", "http://localhost:x@evil.example", 403),
     ("Origin", "http://127.0.0.1:80/path", 403), ("Origin", "null", 403), ("Origin", "http://localhost:9", 200)],
)  # fmt: skip  # a table
def test_host_and_origin_are_compared_as_a_whole(served: Running, header: str, value: str, status: int) -> None:
    assert httpx2.get(f"{served.url}/health", headers={header: value}).status_code == status


def test_a_second_origin_is_looked_at_too(served: Running) -> None:
    two = [("Origin", "http://localhost:9"), ("Origin", "https://evil.example")]
    assert httpx2.get(f"{served.url}/health", headers=two).status_code == 403


def test_a_websocket_is_closed(served: Running) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    anyio.run(served.app, {"type": "websocket", "path": "/market/mcp", "headers": []}, receive, send)
    assert [message["type"] for message in sent] == ["websocket.close"]
    assert served.calls[-1].code == "websocket"


ASKED = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
EARLY = {"Authorization": "Bearer early", "Accept": "application/json, text/event-stream"}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"arguments": {}}),
        ("tools/call", {"name": "describe_universe", "arguments": [1]}),
        ("resources/read", {}),
        ("trade/now", {}),
    ],
)
def test_what_the_protocol_refuses_with_200_is_on_record(served: Running, method: str, params: dict[str, Any]) -> None:
    before = len(served.calls)
    asked = {**ASKED, "method": method, "params": params}
    response = httpx2.post(
        f"{served.url}/market/mcp", json=asked, headers=EARLY | {"MCP-Protocol-Version": "2025-06-18"}, timeout=60
    )
    assert response.status_code == 200
    kept = [(call.who, call.tool, call.outcome, call.code) for call in served.calls[before:]]
    assert kept == [("early", "http", CallOutcome.REFUSED, f"rpc_{response.json()['error']['code']}")]


@pytest.mark.parametrize(
    "body", [b"[]", b"7", b"{}", json.dumps([ASKED, ASKED]).encode(), b'{"jsonrpc": "2.0", "method": 5}']
)
@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
def test_what_is_no_message_is_refused_in_plain_words(served: Running, body: bytes, version: str) -> None:
    own = EARLY | {"MCP-Protocol-Version": version, "Content-Type": "application/json"}
    before = len(served.calls)
    response = httpx2.post(f"{served.url}/market/mcp", content=body, headers=own)
    assert response.status_code == 400
    assert re.search(r"(?i)one json-rpc request|single json-rpc request", response.json()["error"]["message"])
    assert not re.search(r"pydantic|type=|input_value|JSONRPCR|\\n", response.text)
    assert [(call.tool, call.code) for call in served.calls[before:]] == [("http", "http_400")]


MANY = {
    "lists": b"[" + b",".join([b"[]"] * 300_000) + b"]",
    "members": b"{" + b",".join(b'"%06d":1' % number for number in range(80_000)) + b"}",
    "texts": b"[" + b",".join([b'"\\\\"'] * 150_000) + b"]",
    "wide": ('["\\"",' + ",".join(["[]"] * 150_000) + "]").encode("utf-16-le"),
}


@pytest.mark.parametrize("made", sorted(MANY))
@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
def test_a_message_of_very_many_parts_is_refused_before_it_is_parsed(served: Running, made: str, version: str) -> None:
    coding = "utf-16-le" if made == "wide" else "utf-8"
    head, tail = (json.dumps({**ASKED, "params": {"_meta": 0}}).partition("0}")[at].encode(coding) for at in (0, 2))
    own = EARLY | {"MCP-Protocol-Version": version, "Content-Type": "application/json"}
    before = len(served.calls)
    body = head + MANY[made] + "}".encode(coding) + tail
    response = httpx2.post(f"{served.url}/market/mcp", content=body, headers=own, timeout=60)
    assert (response.status_code, reason(response)["code"]) == (413, "too_many_parts")
    assert [(call.who, call.tool, call.code) for call in served.calls[before:]] == [("early", "http", "too_many_parts")]


def test_a_long_text_full_of_commas_and_quotes_is_no_message_of_many_parts(served: Running) -> None:
    text = 'max(close, "[{", ' * 40_000
    sent = {**ASKED, "params": {"_meta": {"said": text}}}
    assert httpx2.post(f"{served.url}/market/mcp", json=sent, headers=EARLY).status_code == 200


def test_nothing_is_told_that_cannot_be_recorded(served: Running) -> None:
    wrong = {**ASKED, "method": "trade/now"}
    with httpx2.Client(base_url=served.url, headers=EARLY, timeout=60) as http:
        assert http.post("/market/mcp", json=ASKED).status_code == 200
        served.full = True
        try:
            answers = [
                http.post("/market/mcp", json=ASKED, headers={"Authorization": "Bearer stranger"}),
                http.post("/nowhere", json=ASKED),
                http.post("/market/mcp", json=wrong),
                http.post("/market/mcp", content=b"x" * (2 << 20)),
            ]
        finally:
            served.full = False
    assert {(answer.status_code, reason(answer)["code"]) for answer in answers} == {(503, "calls_unwritable")}
    assert not any("secret" in answer.text for answer in answers)


class Broken(CallerContexts):
    """Rooms that cannot be opened."""

    def serve(self, caller: Caller) -> ServedCaller:
        if caller.id == "early":
            raise WorkspaceError("/secret/place is damaged", hint="Restore it.")
        raise ZeroDivisionError("/secret/place")


def test_why_a_server_cannot_be_opened_is_told_without_what_the_caller_need_not_know(tmp_path: Path) -> None:
    with running(tmp_path, Broken) as served:
        answers = [
            httpx2.post(
                f"{served.url}/market/mcp", json=ASKED, headers=EARLY | {"Authorization": f"Bearer {who}"}, timeout=60
            )
            for who in DAYS
        ]
        assert [(answer.status_code, reason(answer)["code"]) for answer in answers] == [
            (409, "workspace"),
            (500, "failed"),
        ]
        assert reason(answers[0])["message"] == WorkspaceError.placeless
        assert not any("secret" in answer.text for answer in answers)
        assert [(call.who, call.code) for call in served.calls] == [("early", "workspace"), ("late", "failed")]


def test_strangers_do_not_fill_the_record(tmp_path: Path) -> None:
    more = 60
    with running(tmp_path) as served, httpx2.Client(base_url=served.url, timeout=60) as http:
        began = time.monotonic()
        assert {http.post("/market/mcp").status_code for _ in range(STRANGERS_PER_MINUTE + more)} == {401}
        took = time.monotonic() - began
        kept = Counter(call.code for call in served.calls)
        assert STRANGERS_PER_MINUTE <= kept["unauthorized"] <= STRANGERS_PER_MINUTE * (1 + took / 60)
        assert kept["unauthorized_flood"] <= 1 + took
        assert kept["unauthorized"] < STRANGERS_PER_MINUTE + more


class Asking:
    """Knows nobody, and takes its time to say so."""

    waits = True

    def __init__(self) -> None:
        self.lock, self.now, self.most = threading.Lock(), 0, 0

    def verify(self, _bearer: str) -> Caller:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.3)
        with self.lock:
            self.now -= 1
        raise TokenRefused("not known")


def test_tokens_that_are_asked_about_leave_threads_for_what_else_is_done(tmp_path: Path) -> None:
    slow = Asking()
    with running(tmp_path, verifier=slow) as served, ThreadPoolExecutor(2 * TOKEN_CHECKS_AT_ONCE) as pool:
        asked = [
            pool.submit(httpx2.post, f"{served.url}/market/mcp", timeout=120) for _ in range(2 * TOKEN_CHECKS_AT_ONCE)
        ]
        assert {future.result().status_code for future in asked} == {401}
    assert 1 < slow.most <= TOKEN_CHECKS_AT_ONCE


class Sluggish(Asking):
    """Knows one caller, and takes its time with everybody else until it is let go on."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()

    def verify(self, bearer: str) -> Caller:
        if bearer == "early":
            return Known().verify(bearer)
        self.go_on.wait(120)
        raise TokenRefused("not known")


def test_a_caller_that_was_let_in_before_waits_for_no_strangers_token(tmp_path: Path) -> None:
    slow, many = Sluggish(), TOKEN_CHECKS_AT_ONCE + MAX_STRANGERS_WAITING
    with running(tmp_path, verifier=slow) as served, ThreadPoolExecutor(many + 1) as pool:
        assert httpx2.post(f"{served.url}/market/mcp", json=ASKED, headers=EARLY, timeout=60).status_code == 200
        try:
            strangers = [pool.submit(httpx2.post, f"{served.url}/market/mcp", timeout=150) for _ in range(many + 1)]
            first = next(as_completed(strangers)).result()
            assert (first.status_code, reason(first)["code"], first.headers["retry-after"]) == (503, "busy", "1")
            assert httpx2.post(f"{served.url}/market/mcp", json=ASKED, headers=EARLY, timeout=60).status_code == 200
        finally:
            slow.go_on.set()
        assert Counter(stranger.result().status_code for stranger in strangers) == {401: many, 503: 1}


class Renewed(Known):
    """Knows each caller by a newer token at every request."""

    ends = clock()

    def verify(self, bearer: str) -> Caller:
        self.ends += timedelta(minutes=1)
        return replace(super().verify(bearer), expires=self.ends)


def test_requests_of_one_caller_that_wait_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_module, "CALLS_AT_ONCE", 0)
    monkeypatch.setattr(web_module, "MAX_REQUESTS_WAITING", 3)
    with running(tmp_path, verifier=Renewed()) as served, ThreadPoolExecutor(4) as pool:
        waits = [
            pool.submit(httpx2.post, f"{served.url}/{server}/mcp", json=ASKED, headers=EARLY, timeout=5)
            for server in ("market", "market", "evaluation", "all")
        ]
        refused = next(as_completed(waits)).result()
        assert (refused.status_code, reason(refused)["code"]) == (429, "too_many")
        assert sum(isinstance(future.exception(), httpx2.ReadTimeout) for future in waits) == 3


def test_clients_are_told_where_tokens_come_from(tmp_path: Path) -> None:
    protected = Protected("https://tools.example/all/mcp", "https://issuer.example")
    with running(tmp_path, protected=protected) as served, httpx2.Client(base_url=served.url, timeout=60) as http:
        pages = [http.get(path).json() for path in (METADATA, f"{METADATA}/all/mcp")]
        challenge = http.post("/all/mcp").headers["www-authenticate"]
    assert pages[0] == pages[1]
    assert pages[0]["resource"] == protected.resource
    assert challenge == f'Bearer resource_metadata="https://tools.example{METADATA}/all/mcp"'


def test_no_stream_is_promised_and_none_is_held_open(served: Running) -> None:
    async def promised(server: str) -> tuple[Any, Any, Any]:
        async with attached(served, "early", server, "auto") as client:
            told = client.server_capabilities
            return told.tools.list_changed, told.resources.list_changed, told.resources.subscribe

    assert not any({*anyio.run(promised, "market"), *anyio.run(promised, "all")})
    with httpx2.Client(base_url=served.url, timeout=60) as http:
        own = {"Authorization": "Bearer early", "Accept": "text/event-stream"}
        asked = http.get("/market/mcp", headers=own)
        assert (asked.status_code, asked.headers["allow"]) == (405, "POST")
        assert http.get("/market/mcp").status_code == 401


def test_a_resource_that_is_not_there_is_refused_by_its_address(served: Running) -> None:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "alphaloom://panels"}}
    own = {"Authorization": "Bearer early", "Accept": "application/json, text/event-stream"}
    with httpx2.Client(base_url=served.url, headers=own, timeout=60) as http:
        told = http.post("/market/mcp", json=asked).json()["error"]["data"]
        assert (told["code"], told["uri"]) == ("unknown_resource", "alphaloom://panels")
        half = json.dumps(asked).replace("panels", r"\ud800")
        broken = http.post("/market/mcp", content=half, headers={"Content-Type": "application/json"})
        assert broken.json()["error"]["code"] < 0


def test_more_calls_than_allowed_wait_and_another_caller_does_not(tmp_path: Path) -> None:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    with running(tmp_path, calls_per_minute=3) as served, httpx2.Client(base_url=served.url, timeout=60) as http:
        answers = [
            http.post("/market/mcp", json=asked, headers={"Authorization": "Bearer early"}).status_code
            for _ in range(5)
        ]
        assert answers.count(429) == 2
        late = http.post("/market/mcp", json=asked, headers={"Authorization": "Bearer late"})
        assert late.status_code != 429
        assert [call.code for call in served.calls].count("too_many") == 2


OPENING, GO_ON = threading.Event(), threading.Event()


class Slow(CallerContexts):
    """Rooms of which one caller's take their time."""

    def serve(self, caller: Caller) -> ServedCaller:
        if caller.id == "late":
            OPENING.set()
            GO_ON.wait(30)
        return super().serve(caller)


def test_a_caller_with_a_server_does_not_wait_while_another_ones_is_opened(tmp_path: Path) -> None:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    with running(tmp_path, Slow) as served, httpx2.Client(base_url=served.url, timeout=120) as http:

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
