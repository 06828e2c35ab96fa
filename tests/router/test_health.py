import asyncio
import http.server
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from alphaloom.router import NoModel
from alphaloom.router.config import ModelSettings
from alphaloom.router.endpoints.health import find_silent_models, probe_model, refuse_keyless

from .servers import Server as Chat

asked: list[tuple[str, str | None]] = []


class Server(http.server.BaseHTTPRequestHandler):
    """Answers /v1, refuses keys on /closed, fails on /broken, and sends /away elsewhere."""

    def do_GET(self) -> None:
        asked.append((self.path, self.headers.get("Authorization")))
        folder = self.path.split("/")[1]
        self.send_response({"v1": 200, "closed": 401, "broken": 500, "away": 302}.get(folder, 404))
        self.send_header("Location", "/v1/models")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def no_network() -> None:
    """Allow what the rest of the room forbids: these tests ask a server of their own."""


@pytest.fixture
def address() -> Iterator[str]:
    asked.clear()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def look(environment: dict[str, str] | None = None, **model: Any) -> tuple[bool | None, str]:
    settings = ModelSettings.model_validate({"model": "hosted_vllm/tiny"} | model)
    health = asyncio.run(probe_model("it", settings, ["double"], environment or {}))
    return health.answers, health.detail


def test_a_provider_of_this_process_answers() -> None:
    assert look(model="double/small") == (True, "runs in this process, without a network")


def test_a_server_is_asked_for_its_models_and_for_nothing_else(address: str) -> None:
    answers, detail = look({"K": "sk-1"}, api_base=f"{address}/v1/", api_key_env="K")
    assert answers is True
    assert "sk-1" not in detail
    assert asked == [("/v1/models", "Bearer sk-1")]


@pytest.mark.parametrize(("folder", "words"), [("closed", "refuses the key"), ("broken", "fails (500)")])
def test_a_server_that_refuses_does_not_answer(address: str, folder: str, words: str) -> None:
    answers, detail = look(api_base=f"{address}/{folder}")
    assert answers is False
    assert words in detail


def test_a_redirection_is_not_followed(address: str) -> None:
    assert look(api_base=f"{address}/away")[0] is False
    assert [path for path, _ in asked] == ["/away/models"]


def test_a_dead_address_is_said() -> None:
    answers, detail = look(api_base=f"http://127.0.0.1:{free_port()}/v1")
    assert answers is False
    assert "does not answer" in detail


def test_a_paid_model_is_not_asked() -> None:
    assert look({"K": "sk-1"}, model="openai/gpt", api_key_env="K") == (
        None,
        "not asked: that would be a paid call; K is set",
    )
    assert look(model="openai/gpt", api_key_env="K")[0] is False


def model(**given: Any) -> ModelSettings:
    return ModelSettings.model_validate({"model": "hosted_vllm/tiny", "place": "local"} | given)


def test_who_cannot_be_asked_is_named_before_anybody_is(address: str) -> None:
    models = {
        "there": model(api_base=f"{address}/v1"),
        "strange": model(api_base=f"{address}/nowhere/v1"),
        "gone": model(api_base=f"http://127.0.0.1:{free_port()}/v1"),
        "keyless": model(api_base=f"{address}/v1", api_key_env="KEY_A"),
        "paid": ModelSettings(model="anthropic/large"),
        "here": ModelSettings(model="double/small"),
    }
    gone, keyless = asyncio.run(find_silent_models(models, {"double"}, {}))
    assert gone.startswith("gone: http://127.0.0.1:")
    assert gone.endswith("; it is tried again")
    assert "does not answer" in gone
    assert keyless == "keyless: hosted_vllm/tiny needs a key, and the environment variable KEY_A is not set"
    assert {path for path, _ in asked} == {"/health", "/nowhere/health", "/v1/models", "/nowhere/v1/models"}


def test_without_the_key_of_any_model_nothing_is_begun() -> None:
    two = {name: model(api_key_env=name) for name in ("KEY_A", "KEY_B")}
    with pytest.raises(NoModel, match="KEY_A is not set"):
        refuse_keyless(two, {})
    refuse_keyless(two, {"KEY_B": "sk-1"})
    refuse_keyless(two | {"free": model()}, {})


def test_what_a_server_of_ones_own_spared_by_its_prefix_cache_is_told() -> None:
    told = 'vllm:prefix_cache_queries_total{engine="0"} 400.0\nvllm:prefix_cache_hits_total{engine="0"} 100.0\n'
    with Chat(metrics=told) as server:
        model = {"model": "hosted_vllm/tiny", "place": "local", "api_base": server.address}
        health = asyncio.run(probe_model("m", ModelSettings.model_validate(model), (), {}))
    assert health.answers
    assert health.detail.endswith("; 25% of its prompt tokens came from its prefix cache")


def test_a_provider_that_is_never_asked_is_said_before_a_run() -> None:
    answers, detail = look(model="cohere/command-r")
    assert answers is False
    assert "LiteLLM would connect to cohere by itself" in detail
    settings = {"it": ModelSettings(model="cohere/command-r")}
    assert asyncio.run(find_silent_models(settings, (), {})) == [f"it: {detail}"]
