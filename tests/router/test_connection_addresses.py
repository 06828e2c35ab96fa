"""Where a text goes: to the address that the configuration names, whatever proxies and servers say."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from alphaloom.router import AccessRefused, Router, RouterConfig, Task

from .servers import Server

Build = Callable[..., Router]
Make = Callable[..., Task]


@pytest.fixture
def no_network() -> None:
    """Allow what the rest of the room forbids: these tests ask servers of their own."""


@pytest.fixture
def own() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def other() -> Iterator[Server]:
    with Server() as server:
        yield server


def here(server: Server, provider: str, **more: Any) -> dict[str, Any]:
    model = {"model": f"{provider}/tiny", "place": "local", "api_base": server.address}
    return {"models": {"m": model | more}, "retries": 0, "health": {"patience_seconds": 0}}


async def asked(router: Router, task: Task) -> Any:
    try:
        return await router.ask(task)
    finally:
        await router.close()


@pytest.mark.parametrize("provider", ["hosted_vllm", "openai"])
def test_no_proxy_of_the_environment_sees_what_is_asked_of_a_server_of_ones_own(
    build: Build, task: Make, own: Server, other: Server, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, other.address.removesuffix("/v1"))
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    reply = asyncio.run(asked(build(**here(own, provider)), task(sensitivity="confidential")))
    assert reply.model == "m"
    assert (own.posts, other.posts) == (1, 0)


@pytest.mark.parametrize("provider", ["hosted_vllm", "openai"])
def test_a_server_that_points_elsewhere_is_not_followed(
    build: Build, task: Make, own: Server, other: Server, provider: str
) -> None:
    own.location = f"{other.address}/chat/completions"
    with pytest.raises(AccessRefused, match=r"points to another address \(status 307\)"):
        asyncio.run(asked(build(**here(own, provider)), task("a plan", sensitivity="confidential")))
    assert (own.posts, other.posts) == (1, 0)


def test_what_a_server_says_of_a_confidential_text_is_not_repeated(build: Build, task: Make, own: Server) -> None:
    own.changes, own.statuses = "you said: the plan", [400]
    with pytest.raises(Exception, match="status 400") as caught:
        asyncio.run(asked(build(**here(own, "hosted_vllm")), task("the plan", sensitivity="confidential")))
    assert "the plan" not in str(caught.value)


def test_closing_one_router_leaves_the_others_their_connections(build: Build, task: Make, own: Server) -> None:
    async def course() -> list[str]:
        one, two = (build(**here(own, "openai")) for _ in range(2))
        await one.ask(task("a"))
        await two.ask(task("b"))
        await one.close()
        try:
            return [(await two.ask(task("c"))).model]
        finally:
            await two.close()

    assert asyncio.run(course()) == ["m"]


def test_a_server_of_ones_own_is_asked_in_a_protocol_whose_connection_is_ours() -> None:
    model = {"model": "ollama/small", "place": "local", "api_base": "http://127.0.0.1:11434"}
    with pytest.raises(ValidationError, match="openai/NAME or hosted_vllm/NAME"):
        RouterConfig.model_validate({"models": {"m": model}})
