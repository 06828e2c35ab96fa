"""Commercial providers through LiteLLM: over connections of ours, and nothing of LiteLLM is changed for others."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from alphaloom.router import ModelSettings, NoModel, Router, Task
from alphaloom.router.calls import providers
from alphaloom.router.calls.completions import REFUSED, Completion, Unreadable
from alphaloom.router.calls.prices import Charges, read_usage
from alphaloom.router.calls.providers import ProviderClients, fit_parameters, mark_stable_prefix, require_connection
from alphaloom.router.calls.replies import HedgedAttempt, ModelAnswer
from alphaloom.router.endpoints.failures import NotSent, ServerRefused

ROOT = Path(__file__).resolve().parents[2] / ".root"
CLAUDE, GPT = "anthropic/claude-sonnet-4-5", "openai/gpt-4o"
IDEA = '{"text": "drift", "direction": 1}'
CHAT = {
    "id": "x",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": IDEA}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 110, "completion_tokens": 70, "total_tokens": 180},
}
SPEECH = {
    "id": "x",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": IDEA}],
    "stop_reason": "end_turn",
    "usage": {
        "input_tokens": 100,
        "cache_creation_input_tokens": 50,
        "cache_read_input_tokens": 200,
        "output_tokens": 70,
    },
}


class Wire:
    """What goes out, in place of the network: every request, answered with one body."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, body: Any, status: int = 200, **headers: str) -> None:
        self.seen: list[httpx.Request] = []
        stream = json.dumps(body).encode()
        self.answer: Callable[[], httpx.Response] = lambda: httpx.Response(
            status, headers=headers, stream=httpx.ByteStream(stream)
        )
        monkeypatch.setattr(providers, "_make_plain_client", self._make)

    def _make(self, seconds: float) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.MockTransport(self._hear), timeout=seconds)

    def _hear(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(request)
        return self.answer()

    def body(self) -> dict[str, Any]:
        """Return the only request's body."""
        (request,) = self.seen
        return dict(json.loads(request.content))


def ask(model: str, **settings: Any) -> Completion:
    """Ask a model once."""

    async def asked() -> Completion:
        clients = ProviderClients(5.0)
        messages = [{"role": "system", "content": "You are."}, {"role": "user", "content": "propose"}]
        request = {"messages": messages, "max_tokens": 90, "seed": 3, "temperature": 0.5}
        try:
            return await clients.ask("m", ModelSettings(model=model, **settings), "key", request)
        finally:
            await clients.close()

    return asyncio.run(asked())


SNAPSHOT = """
import asyncio, os, sys
from types import ModuleType
import litellm

def picture():
    found = {}
    for owner in (litellm, litellm.utils, litellm.main, sys.modules["litellm.llms.custom_httpx.http_handler"]):
        members = vars(owner).items()
        found |= {(owner.__name__, name): each for name, each in members if not isinstance(each, ModuleType)}
    found |= {("class", each.__name__, name): made for each in (owner.AsyncHTTPHandler, owner.HTTPHandler)
              for name, made in vars(each).items()}
    plain = (list, dict, set, tuple, str, int, float, bool, type(None))
    return {name: (id(each), repr(each) if isinstance(each, plain) else "") for name, each in found.items()
            if not name[-1].startswith("_")}

litellm.provider_list  # these load when they are first named
before, environment = picture(), dict(os.environ)
"""
USE = """
import json, httpx, tempfile, logging
from datetime import UTC, datetime
from pathlib import Path
from alphaloom.ledger import Ledger, Run
from alphaloom.router import Message, Router, RouterConfig, Task
from alphaloom.router.calls.providers import load_litellm
from alphaloom.router.calls import providers
from pydantic import BaseModel

class Idea(BaseModel):
    text: str
    direction: int

levels = {name: logging.getLogger(name).level for name in ("LiteLLM", "LiteLLM Router", "httpx")}
answers = json.loads(sys.argv[1])
def answer(request):
    body = json.dumps(answers["anthropic" in str(request.url)]).encode()
    return httpx.Response(200, stream=httpx.ByteStream(body))
transport = httpx.MockTransport(answer)
providers._make_plain_client = lambda seconds: httpx.AsyncClient(transport=transport)

async def use(model):
    with tempfile.TemporaryDirectory() as folder, Ledger.open(Path(folder), clock=lambda: datetime.now(UTC)) as ledger:
        ledger.runs.start(Run("one", {}, 1, "data", "2026-01-02"))
        config = RouterConfig.model_validate({"models": {"m": {"model": model, "api_key_env": "K"}}})
        router = Router(config, ledger, environment={"K": "key"})
        says = (Message("system", "You are."), Message("user", "propose"))
        task = Task(role="factor", intent="new", messages=says, schema=Idea, prompt="p", run="one", seed=1)
        reply = await router.ask(task)
        assert reply.value.text == "drift", reply
        await router.close()

for model in sys.argv[2:]:
    asyncio.run(use(model))
after = picture()
assert not {name: (each, after.get(name)) for name, each in before.items() if after.get(name) != each}
own = {"TIKTOKEN_CACHE_DIR"}  # LiteLLM sets it by itself at its first call
assert not {name for name, _ in os.environ.items() ^ environment.items()} - own
assert levels == (now := {name: logging.getLogger(name).level for name in levels}), now
litellm.drop_params = True
assert picture() != after, "the comparison sees a changed setting"
"""


@pytest.mark.integration
def test_a_router_and_its_calls_leave_litellm_as_it_was() -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{SNAPSHOT}{USE}"
    command = [sys.executable, "-c", code, json.dumps([CHAT, SPEECH]), GPT, CLAUDE]
    environment = os.environ | providers.LOAD_SETTINGS  # whoever loads it first; no test has a network
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("provider", sorted(providers.SDK_PROVIDERS | providers.HTTP_PROVIDERS - {"vertex_ai"}))
def test_each_provider_is_asked_over_a_connection_of_ours_and_once(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of vertex_ai the client is the same as of gemini, but its token needs a package that is not installed."""
    wire = Wire(monkeypatch, {"error": {"message": "not here"}}, 307, location="https://elsewhere.example/v1")
    name = {"bedrock": "anthropic.claude-haiku-4-5-20251001-v1:0", "azure_ai": "mistral-large"}.get(provider, "some")
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION_NAME"):
        monkeypatch.setenv(variable, "us-east-1")
    based = {"api_base": "https://here.example/v1"} if provider in ("azure_ai", "databricks", "litellm_proxy") else {}
    with pytest.raises(ServerRefused, match="not here"):
        ask(f"{provider}/{name}", **based)
    assert len(wire.seen) == 1


def test_text_and_key_go_where_the_configuration_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable of another program names no address, and its headers are for OpenAI alone."""
    for variable in ("OPENAI_BASE_URL", "OPENAI_API_BASE", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"):
        monkeypatch.setenv(variable, "https://elsewhere.example/v1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "x-secret: told")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    wire = Wire(monkeypatch, CHAT)
    for model in (GPT, "perplexity/sonar"):
        ask(model)
    wire.answer = lambda: httpx.Response(200, stream=httpx.ByteStream(json.dumps(SPEECH).encode()))
    ask(CLAUDE)
    assert [request.url.host for request in wire.seen] == ["api.openai.com", "api.perplexity.ai", "api.anthropic.com"]
    assert ["x-secret" in request.headers for request in wire.seen] == [True, False, False]
    assert ["openai-organization" in request.headers for request in wire.seen] == [True, False, False]


def test_a_proxy_without_an_address_is_not_asked() -> None:
    with pytest.raises(NoModel, match="has no address"):
        require_connection(ModelSettings(model="litellm_proxy/some"))


@pytest.mark.parametrize("body", [{"candidates": "x"}, [], {"error": {"code": 400, "message": "no"}}])
@pytest.mark.parametrize("model", ["gemini/gemini-2.5-flash", GPT])
def test_an_answer_with_success_that_cannot_be_read_is_charged(
    model: str, body: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    Wire(monkeypatch, body)
    with pytest.raises(Unreadable):
        ask(model)


def test_azure_is_asked_over_a_connection_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    wire = Wire(monkeypatch, CHAT)
    assert ask("azure/gpt-4o", api_base="https://here.example").content == IDEA
    assert wire.seen[0].url.host == "here.example"


@pytest.mark.parametrize("broken", [httpx.ReadError("gone"), httpx.ConnectError("gone"), httpx.ReadTimeout("late")])
@pytest.mark.parametrize("model", [GPT, CLAUDE])
def test_a_request_whose_connection_breaks_is_not_sent_again(
    model: str, broken: Exception, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    wire = Wire(monkeypatch, CHAT)

    def fail() -> httpx.Response:
        raise broken

    wire.answer = fail
    with pytest.raises(type(broken)):
        ask(model)
    assert len(wire.seen) == 1
    assert capfd.readouterr().out == "", "LiteLLM would print where to get help"


def test_an_answer_without_an_end_is_not_read_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    wire = Wire(monkeypatch, CHAT)
    wire.answer = lambda: httpx.Response(200, stream=httpx.ByteStream(b" " * (5 << 20)))
    with pytest.raises(Unreadable, match="larger than 4 MiB"):
        ask(CLAUDE)


def test_what_litellm_itself_refuses_was_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    wire = Wire(monkeypatch, CHAT)
    monkeypatch.setattr(providers, "HTTP_PROVIDERS", providers.HTTP_PROVIDERS | {"fal_ai"})
    with pytest.raises(NotSent, match="fal_ai"):
        ask("fal_ai/some")
    assert wire.seen == []


@pytest.mark.parametrize("model", ["replicate/meta/llama", "cohere/command-r", "acme/gpt-4o", "hosted_vllm/tiny"])
def test_a_provider_to_which_litellm_connects_by_itself_is_not_asked(
    build: Callable[..., Router], task: Callable[..., Task], model: str
) -> None:
    priced = {"model": model, "input_cost_per_mtok": 1, "output_cost_per_mtok": 1}
    with pytest.raises(NoModel, match="cannot be asked") as told:
        asyncio.run(build(models={"m": priced}).ask(task()))
    assert "openai/NAME" in str(told.value.record())
    require_connection(ModelSettings(model="openai/x", api_base="https://here.example/v1"))


def test_the_stable_system_message_is_marked_for_anthropics_cache_and_for_nobody_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wire = Wire(monkeypatch, SPEECH)
    ask(CLAUDE)
    marked = {"type": "text", "text": "You are.", "cache_control": {"type": "ephemeral"}}
    assert wire.body()["system"] == [marked]
    plain = [{"role": "system", "content": "You are."}]
    for model in ("bedrock/anthropic.claude-haiku-4-5-20251001-v1:0", "vertex_ai/claude-sonnet-4-5"):
        assert mark_stable_prefix(model, plain)[0]["content"] == [marked]
    for model in (GPT, "gemini/gemini-2.5-pro", "anthropic/claude-unlisted", "acme/claude-sonnet-4-5"):
        assert mark_stable_prefix(model, plain) == plain


def test_what_is_read_from_the_cache_and_written_into_it_is_charged_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    Wire(monkeypatch, SPEECH)
    completion = ask(CLAUDE)
    usage = read_usage(completion.usage, "x", IDEA, HedgedAttempt("m", "", 10_000, 90, 1.0))
    assert (usage.tokens_in, usage.cached, usage.written, usage.tokens_out) == (350, 200, 50, 70)
    charges = Charges({"m": ModelSettings(model=CLAUDE)})
    answer = ModelAnswer("", "stop", usage.tokens_in, usage.tokens_out, "m", usage.cached, usage.written)
    price = 100 * 3e-6 + 200 * 3e-7 + 50 * 3.75e-6 + 70 * 15e-6
    assert charges.charge(answer).cost_usd == pytest.approx(price)


def test_a_model_of_openai_at_another_address_gets_the_parameters_that_it_takes() -> None:
    parameters = {"max_tokens": 9, "seed": 3, "temperature": 0.5}
    assert fit_parameters("tiny", parameters) == parameters
    assert fit_parameters("gpt-5", parameters) == {"max_completion_tokens": 9, "seed": 3}


def test_a_refusal_is_known_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {
        "index": 0,
        "message": {"role": "assistant", "content": None, "refusal": "I won't."},
        "finish_reason": "stop",
    }
    Wire(monkeypatch, CHAT | {"choices": [said]})
    assert (ask(GPT).content, ask(GPT).finish) == ("I won't.", REFUSED)
    Wire(monkeypatch, SPEECH | {"stop_reason": "refusal", "content": []})
    assert ask(CLAUDE).finish == REFUSED
