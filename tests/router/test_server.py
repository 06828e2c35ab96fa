"""The way to a real server: an OpenAI-compatible one over HTTP, here a small one of our own."""

import asyncio
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from alphaloom.ledger import Ledger
from alphaloom.router import ModelFailed, ModelSettings, Router, Task

asked: list[tuple[str, str | None, dict[str, Any]]] = []
statuses: list[int] = []


class Server(http.server.BaseHTTPRequestHandler):
    """Answers every chat with one idea, unless a status is waiting to be said."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked.append((self.path, self.headers.get("Authorization"), body))
        status = statuses.pop(0) if statuses else 200
        message = {"role": "assistant", "content": '{"text": "drift", "direction": 1}'}
        reply = {
            "id": "x",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
        }
        sent = json.dumps(reply if status == 200 else {"error": {"message": "not now", "code": status}}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def no_network() -> None:
    """Allow what the rest of the room forbids: these tests ask a server of their own."""


@pytest.fixture
def address() -> Iterator[str]:
    asked.clear()
    statuses.clear()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


def ask(build: Callable[..., Router], task: Task, **model: Any) -> Any:
    async def once() -> Any:
        router = build({"K": "sk-0123456789"}, models={"it": {"place": "local"} | model})
        try:
            return await router.ask(task)
        finally:
            await router.close()

    return asyncio.run(once())


def test_a_server_is_asked_with_schema_seed_and_key(
    build: Callable[..., Router], task: Callable[..., Task], address: str
) -> None:
    reply = ask(build, task(), model="openai/tiny", api_base=address, api_key_env="K")
    assert (reply.value.text, reply.tokens_in, reply.tokens_out) == ("drift", 11, 7)
    ((path, authorization, body),) = asked
    assert (path, authorization) == ("/v1/chat/completions", "Bearer sk-0123456789")
    assert (body["model"], body["seed"]) == ("tiny", 7)
    assert body["response_format"]["type"] == "json_schema"
    assert body["response_format"]["json_schema"]["schema"]["required"] == ["text", "direction"]


def test_the_record_of_a_call_says_who_made_and_served_the_model(
    build: Callable[..., Router], task: Callable[..., Task], address: str, ledger: Ledger
) -> None:
    ask(build, task(), model="openai/tiny", api_base=address, vendor="Example Labs")
    ask(build, task("again"), model="openai/other", api_base=address)
    first, second = sorted(ledger.calls.of(task().run), key=lambda call: call.vendor, reverse=True)
    assert (first.vendor, first.provider, second.vendor) == ("Example Labs", "openai", "")  # any server, not OpenAI's
    assert first.served.startswith("tiny")
    assert ModelSettings.model_validate({"model": "openai/large", "cutoff": "2024-06-30"}).maker == "OpenAI"
    with pytest.raises(ValueError, match="a day such as 2024-06-30"):
        ModelSettings.model_validate({"model": "openai/large", "cutoff": "June 2024"})


def test_vllm_is_asked_with_a_grammar(build: Callable[..., Router], task: Callable[..., Task], address: str) -> None:
    ask(build, task(), model="hosted_vllm/tiny", api_base=address)
    ask(build, task("again", grammar=lambda: "root ::= digit"), model="hosted_vllm/tiny", api_base=address)
    held = [body["structured_outputs"]["grammar"] for _, _, body in asked]
    assert held[0].startswith(r'root ::= "{" "\"text\": "')
    assert held[1] == "root ::= digit"
    assert not any("response_format" in body for _, _, body in asked)


def test_a_server_is_asked_in_its_own_way_after_another_failed(
    build: Callable[..., Router], task: Callable[..., Task], address: str
) -> None:
    statuses.extend([400])
    here = {"place": "local", "tier": "local", "api_base": address}
    models = {"first": {"model": "hosted_vllm/a", **here}, "then": {"model": "openai/b", **here}}

    async def once() -> Any:
        router = build({}, models=models, retries=0)
        try:
            return await router.ask(task())
        finally:
            await router.close()

    assert asyncio.run(once()).model == "then"
    (_, _, first), (_, _, then) = asked
    assert ("structured_outputs" in first, "response_format" in first) == (True, False)
    assert ("structured_outputs" in then, "response_format" in then) == (False, True)


def test_a_busy_server_is_asked_again(build: Callable[..., Router], task: Callable[..., Task], address: str) -> None:
    statuses.extend([503])
    assert ask(build, task(), model="hosted_vllm/tiny", api_base=address).value.text == "drift"
    assert len(asked) == 2
    assert asked[0][1] in (None, "Bearer none")


def test_a_server_that_stays_away_is_said(
    build: Callable[..., Router], task: Callable[..., Task], address: str
) -> None:
    statuses.extend([400] * 9)
    with pytest.raises(ModelFailed, match=r"no reply from it: .*not now"):
        ask(build, task(), model="hosted_vllm/tiny", api_base=address)
