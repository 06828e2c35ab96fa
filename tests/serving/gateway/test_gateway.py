"""The gateway over real connections: bytes, tenants, places, ends."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from alphaloom.desk.cli.serve.server import HttpServer, ServerTerms
from alphaloom.serving.errors import GatewayError
from alphaloom.serving.gateway import Gateway, GatewayEndpoint, GatewaySettings, build_application
from alphaloom.serving.gateway.fair_scheduler import FairScheduler

from .modelled import METRICS, Endpoint as Modelled, modelled, whole

CHAT = "/v1/chat/completions"
TENANTS = {"key-a": "alice", "key-b": "bob"}


@pytest.fixture(autouse=True)
def no_network() -> None:
    """These tests connect to this machine."""


@pytest.fixture
def endpoint() -> Iterator[Modelled]:
    with modelled() as endpoint:
        yield endpoint


def who(bearer: str) -> str:
    if bearer == "key-mcp":
        raise GatewayError("this token does not allow asking models", code="forbidden", exit_code=1, status=403)
    if bearer not in TENANTS:
        raise GatewayError("this token is not accepted", code="invalid_api_key", exit_code=1, status=401)
    return TENANTS[bearer]


@dataclass
class Stage:
    """A gateway that listens, a client of it, and what ends it."""

    gateway: Gateway
    http: httpx2.AsyncClient
    end: Callable[[], None]

    async def ask(self, key: str = "key-a", path: str = CHAT, **told: Any) -> httpx2.Response:
        return await self.http.post(path, json=call(**told), headers={"authorization": f"Bearer {key}"})

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not true():
                await asyncio.sleep(0.005)

    @property
    def free(self) -> int:
        return self.gateway.gate.free


def call(**told: Any) -> dict[str, Any]:
    """Return a call; what the endpoint of these tests is to do goes with it as metadata."""
    own = {name: told.pop(name) for name in ("pause", "really", "fails", "breaks_after") if name in told}
    text = [{"role": "user", "content": "say something, please"}]
    return {"model": "tiny", "messages": text, "max_tokens": 3, **({"metadata": own} if own else {}), **told}


@asynccontextmanager
async def on_stage(address: str, patience: float = 60.0, key: str | None = None, **given: Any) -> AsyncIterator[Stage]:
    settings = GatewaySettings.model_validate({"places": 2} | given)
    fairness = settings.build_fairness()
    gate = FairScheduler(fairness, clock=time.monotonic)
    gateway = Gateway(GatewayEndpoint(address, key), gate, fairness, settings, who, "key-ops".__eq__, patience=patience)
    running = HttpServer(build_application(gateway), ServerTerms(5, settings.connections, ending=gateway.end))
    with socket.create_server(("127.0.0.1", 0)) as there:
        there.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 << 10)  # what the system holds is not ours to measure
        serving = asyncio.create_task(running.serve(sockets=[there]))
        base = f"http://127.0.0.1:{there.getsockname()[1]}"

        def end() -> None:
            running.should_exit = True

        async with httpx2.AsyncClient(base_url=base, trust_env=False, timeout=60) as http:
            yield Stage(gateway, http, end)
        end()
        await serving


def play(steps: Callable[[Stage], Coroutine[Any, Any, None]], address: str, **given: Any) -> None:
    async def all_of_it() -> None:
        async with on_stage(address, **given) as stage:
            await steps(stage)

    asyncio.run(all_of_it())


def test_bytes_pass_as_they_are(endpoint: Modelled) -> None:
    async def steps(stage: Stage) -> None:
        body = json.dumps(call(seed=4), indent=3).encode()
        headers = {"authorization": "Bearer key-a", "x-request-id": "mine", "cookie": "c=1"}
        for path in (CHAT, "/v1/completions"):
            answer = await stage.http.post(path, content=body, headers=headers)
            assert answer.content == whole(json.loads(body))
            assert answer.headers["content-type"] == "application/json"
        (streamed,) = [await stage.ask(stream=True)]
        async with httpx2.AsyncClient(trust_env=False, timeout=60) as straight:
            bare = await straight.post(endpoint.address + CHAT, json=call(stream=True))
        assert streamed.content == bare.content
        assert streamed.headers["x-request-id"] == "seven"

    play(steps, endpoint.address)
    salts = {body.pop("cache_salt") for body in endpoint.calls[:2]}
    assert len(salts) == 1
    assert endpoint.calls[0] == endpoint.calls[1] == call(seed=4)


def test_the_endpoint_sees_its_own_key_and_no_tenants_token(endpoint: Modelled) -> None:
    async def steps(stage: Stage) -> None:
        await stage.ask()

    play(steps, endpoint.address)
    play(steps, endpoint.address, key="the-servers-own")
    assert "authorization" not in endpoint.headers[0]
    assert endpoint.headers[1]["authorization"] == "Bearer the-servers-own"
    assert "key-a" not in str(endpoint.headers)


def test_nothing_of_a_clients_own_reaches_the_endpoint_but_what_a_call_needs(endpoint: Modelled) -> None:
    own = {"content-type": "application/json", "accept": "text/plain", "user-agent": "me"}
    strange = {
        "x-request-id": "another's",
        "api-key": "k",
        "x-forwarded-for": "::1",
        "connection": "x-own",
        "x-own": "1",
    }

    async def steps(stage: Stage) -> None:
        headers = {"authorization": "Bearer key-a", **own, **strange}
        assert (await stage.http.post(CHAT, json=call(), headers=headers)).status_code == 200

    play(steps, endpoint.address)
    (seen,) = endpoint.headers
    assert own.items() <= seen.items()
    assert set(seen) - set(own) <= {"host", "accept-encoding", "content-length", "connection"}
    assert seen.get("connection") != "x-own"


def test_each_tenant_has_a_salt_of_its_own(endpoint: Modelled) -> None:
    async def steps(stage: Stage) -> None:
        for key in ("key-a", "key-b", "key-a"):
            await stage.ask(key)

    play(steps, endpoint.address)
    first, other, again = (body["cache_salt"] for body in endpoint.calls)
    assert first == again != other
    assert min(len(first), len(other)) > 20, "nobody guesses it"
    play(steps, endpoint.address, cache_salt=False)
    assert "cache_salt" not in endpoint.calls[-1]


def test_the_query_of_a_clients_address_stays_here(endpoint: Modelled) -> None:
    async def steps(stage: Stage) -> None:
        assert (await stage.ask(path=f"{CHAT}?priority=1")).status_code == 200

    play(steps, endpoint.address)
    assert endpoint.asked == [CHAT]


def test_cookies_and_inner_headers_of_the_endpoint_reach_nobody(endpoint: Modelled) -> None:
    endpoint.says = {"Set-Cookie": "session=alices; Path=/", "X-Node": "gpu-7.internal", "Retry-After": "3"}

    async def steps(stage: Stage) -> None:
        own = {"authorization": "Bearer key-b"}
        answers = [await stage.ask("key-a"), await stage.ask("key-b"), await stage.ask("key-a", stream=True)]
        answers += [await stage.http.get(path, headers=own) for path in ("/v1/models", "/metrics")]
        answers += [await stage.http.get("/health")]
        for answer in answers:
            assert answer.status_code == 200
            assert answer.headers["retry-after"] == "3"
            assert "alices" not in str(answer.headers)
            assert "gpu-7" not in str(answer.headers)
            assert "Python" not in str(answer.headers), "the endpoint's own Server header"

    play(steps, endpoint.address)
    assert len(endpoint.headers) == 3
    assert all("cookie" not in headers for headers in endpoint.headers)


@pytest.mark.parametrize(
    ("call", "status", "code"),
    [
        (("POST", CHAT, "", b"{}"), 401, "invalid_api_key"),
        (("POST", CHAT, "key-c", b"{}"), 401, "invalid_api_key"),
        (("GET", "/v1/models", "key-c", b""), 401, "invalid_api_key"),
        (("POST", CHAT, "key-mcp", b"{}"), 403, "forbidden"),
        (("POST", CHAT, "key-a", b"["), 400, "bad_call"),
        (("POST", CHAT, "key-a", b"[" * 100_000), 400, "bad_call"),
        (("POST", CHAT, "key-a", b'{"max_tokens": "many"}'), 400, "bad_call"),
        (("POST", CHAT, "key-a", b'{"max_tokens": 1%s}' % (b"0" * 400)), 400, "bad_call"),
        (("POST", CHAT, "key-a", b'{"messages": %s}' % (b"[" * 500 + b"]" * 500)), 400, "bad_call"),
        (("POST", CHAT, "key-a", b'{"n": 2}'), 400, "bad_call"),
        (("POST", "/v1/completions", "key-a", b'{"prompt": ["a", "b"]}'), 400, "bad_call"),
        (("POST", CHAT, "key-a", b" " * ((32 << 20) + 1)), 413, "bad_call"),
        (("GET", CHAT, "key-a", b""), 405, "not_served"),
        (("POST", "/v1/embeddings", "key-a", b"{}"), 404, "not_served"),
        (("POST", "/metrics", "key-a", b"{}"), 405, "not_served"),
    ],
)
def test_what_is_no_call_is_refused_in_the_form_of_openai(
    endpoint: Modelled, call: tuple[str, str, str, bytes], status: int, code: str
) -> None:
    method, path, key, body = call

    async def steps(stage: Stage) -> None:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        answer = await stage.http.request(method, path, content=body, headers=headers)
        assert answer.status_code == status
        error = answer.json()["error"]
        assert (error["code"], set(error)) == (code, {"message", "type", "param", "code"})
        assert not key or key not in answer.text
        assert ("www-authenticate" in answer.headers) == (status == 401)
        assert stage.free == 2

    play(steps, endpoint.address)
    assert endpoint.calls == []


def test_no_more_calls_than_places_reach_the_endpoint(endpoint: Modelled) -> None:
    async def steps(stage: Stage) -> None:
        answers = await asyncio.gather(*(stage.ask(key, pause=0.03) for key in TENANTS for _ in range(6)))
        assert {answer.status_code for answer in answers} == {200}
        assert stage.free == 2

    play(steps, endpoint.address)
    assert endpoint.most == 2


def test_who_comes_second_need_not_wait_for_a_whole_queue(endpoint: Modelled) -> None:
    async def steps(stage: Stage) -> None:
        many = [asyncio.create_task(stage.ask("key-a", pause=0.02)) for _ in range(20)]
        await stage.until(lambda: stage.gateway.gate.count_waiting("alice") == 19)
        await stage.ask("key-b")
        assert sum(task.done() for task in many) < 4
        await asyncio.gather(*many)

    play(steps, endpoint.address, places=1)


def test_tokens_are_charged_as_the_endpoint_counts_them(endpoint: Modelled) -> None:
    async def steps(stage: Stage) -> None:
        gate = stage.gateway.gate
        await stage.ask("key-a", max_tokens=5, really=70)
        assert gate.served_tokens("alice") == 70 + 2 * 5
        await stage.ask("key-b", max_tokens=5, really=70, stream=True, stream_options={"include_usage": True})
        assert gate.served_tokens("bob") == 70 + 2 * 10

    play(steps, endpoint.address)


def test_a_stream_that_says_no_usage_is_charged_by_its_pieces(endpoint: Modelled) -> None:
    async def steps(stage: Stage) -> None:
        await stage.ask("key-a", max_tokens=40, stream=True)
        assert 2 * 40 <= stage.gateway.gate.served_tokens("alice") <= 2 * 65 + 30, (
            "the call itself has some thirty tokens"
        )

    play(steps, endpoint.address)


def test_a_stream_is_charged_while_it_is_under_way(endpoint: Modelled) -> None:
    async def steps(stage: Stage) -> None:
        task = asyncio.create_task(stage.ask("key-a", max_tokens=20, stream=True, pause=0.02))
        await stage.until(lambda: stage.gateway.gate.served_tokens("alice") > 2 * 5)
        assert not task.done()
        await task

    play(steps, endpoint.address)


@pytest.mark.parametrize("stream", [False, True])
def test_who_hangs_up_gives_the_place_back_and_the_endpoint_stops(endpoint: Modelled, stream: bool) -> None:
    async def steps(stage: Stage) -> None:
        task = asyncio.create_task(stage.ask(pause=3, stream=stream))
        await stage.until(lambda: endpoint.under_way == 1)
        task.cancel()
        await stage.until(lambda: endpoint.under_way == 0 and stage.free == 2)
        assert stage.gateway.gate.served_tokens("alice") > 0, "what was begun is charged"

    play(steps, endpoint.address)
    assert endpoint.left == 1


def test_who_hangs_up_in_the_queue_leaves_it(endpoint: Modelled) -> None:
    async def steps(stage: Stage) -> None:
        gate = stage.gateway.gate
        first = asyncio.create_task(stage.ask(pause=0.5))
        await stage.until(lambda: endpoint.under_way == 1)
        second = asyncio.create_task(stage.ask())
        await stage.until(lambda: gate.count_waiting("alice") == 1)
        second.cancel()
        await stage.until(lambda: gate.count_waiting("alice") == 0)
        assert not first.done()
        assert (await first).status_code == 200

    play(steps, endpoint.address, places=1)
    assert len(endpoint.calls) == 1


def test_a_client_that_takes_nothing_is_given_up(endpoint: Modelled) -> None:
    async def steps(stage: Stage) -> None:
        reader, writer = await asyncio.open_connection(stage.http.base_url.host, stage.http.base_url.port, limit=1)
        body = json.dumps(call(max_tokens=3_000_000)).encode()
        writer.write(
            b"POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer key-a\r\nContent-Length: %d\r\n\r\n%s"
            % (CHAT.encode(), len(body), body)
        )
        await stage.until(lambda: stage.free == 1)
        await stage.until(lambda: stage.free == 2)
        writer.close()
        assert reader

    play(steps, endpoint.address, patience=0.3)


def test_a_full_queue_and_a_quota_say_when_to_come_back(endpoint: Modelled) -> None:
    async def steps(stage: Stage) -> None:
        first = asyncio.create_task(stage.ask(pause=0.3))
        await stage.until(lambda: endpoint.under_way == 1)
        refused = await stage.ask()
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "queue_full")
        assert int(refused.headers["retry-after"]) >= 1
        await first
        await stage.ask("key-b", max_tokens=90)
        refused = await stage.ask("key-b", max_tokens=90)
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "quota_reached")
        assert 50 <= int(refused.headers["retry-after"]) <= 60
        large = await stage.ask("key-b", max_tokens=200)
        assert (large.status_code, large.json()["error"]["code"]) == (413, "call_too_large")
        assert "retry-after" not in large.headers

    bob = {"tokens_per_minute": 150, "over": "refuse"}
    play(steps, endpoint.address, places=1, tenants={"alice": {"queue": 0}, "bob": bob})


def test_an_endpoint_that_is_away_is_said_and_costs_nothing() -> None:
    async def steps(stage: Stage) -> None:
        answer = await stage.ask()
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "endpoint_away")
        assert (await stage.http.get("/health")).status_code == 503
        assert (stage.gateway.gate.served_tokens("alice"), stage.free) == (0.0, 2)

    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
    play(steps, nobody)


def test_an_endpoint_that_hangs_is_looked_at_for_a_while_only() -> None:
    async def steps(stage: Stage) -> None:
        stage.gateway.probe_timeout = 0.1
        assert (await stage.http.get("/health")).json()["error"]["code"] == "endpoint_away"

    with socket.create_server(("127.0.0.1", 0)) as silent:
        play(steps, f"http://127.0.0.1:{silent.getsockname()[1]}")


def test_an_endpoint_that_breaks_off_breaks_the_answer_off(endpoint: Modelled) -> None:
    async def steps(stage: Stage) -> None:
        with pytest.raises(httpx2.RemoteProtocolError):
            await stage.ask(stream=True, breaks_after=2)
        refused = await stage.ask(fails=404)
        assert (refused.status_code, refused.json()["error"]["message"]) == (404, "no such model")
        await stage.until(lambda: stage.free == 2)

    play(steps, endpoint.address)


def test_at_the_end_calls_under_way_are_finished_and_those_that_wait_are_told(endpoint: Modelled) -> None:
    async def steps(stage: Stage) -> None:
        first, second = asyncio.create_task(stage.ask(pause=0.5, stream=True, max_tokens=1)), None
        await stage.until(lambda: endpoint.under_way == 1)
        second = asyncio.create_task(stage.ask())
        await stage.until(lambda: stage.gateway.gate.count_waiting("alice") == 1)
        stage.end()
        told = await second
        assert (told.status_code, told.json()["error"]["code"]) == (503, "gateway_ends")
        assert not first.done()
        assert (await first).content.endswith(b"data: [DONE]\n\n")

    play(steps, endpoint.address, places=1)
    assert len(endpoint.calls) == 1


def test_what_spends_nothing_passes_and_a_tenant_is_told_of_itself_only(endpoint: Modelled) -> None:
    async def steps(stage: Stage) -> None:
        key = {"authorization": "Bearer key-b"}
        assert (await stage.http.get("/v1/models", headers=key)).json() == {"data": [{"id": "tiny"}]}
        assert (await stage.http.get("/health")).status_code == 200
        await stage.ask("key-a", max_tokens=5)
        await stage.ask("key-b")
        keys: list[dict[str, str]] = [{}, key, {"authorization": "Bearer key-ops"}]
        bare, told, operator = [(await stage.http.get("/metrics", headers=headers)).text for headers in keys]
        assert bare.startswith(METRICS.decode())
        assert "alphaloom_gateway_places 2\n" in bare
        assert "alphaloom_gateway_waiting 0\n" in bare
        assert "alice" not in bare
        assert "alice" not in told
        assert 'alphaloom_gateway_calls_total{tenant="bob",outcome="answered"} 1\n' in told
        assert 'alphaloom_gateway_tokens_out_total{tenant="alice"} 5\n' in operator
        assert 'alphaloom_gateway_calls_total{tenant="alice",outcome="answered"} 1\n' in operator
        assert 'tenant="bob"' in operator

    play(steps, endpoint.address)
