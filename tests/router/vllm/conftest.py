"""One server for all tests that do not end it, and a maker of routers on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from alphaloom.ledger import Ledger
from alphaloom.router import Router, RouterConfig

from .served import Server, lacking


@pytest.fixture
def no_network() -> None:
    """Allow what the rest of the room forbids: these tests ask a server of their own, on this machine."""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if reason := lacking():
        pytest.skip(reason)
    server = Server(tmp_path_factory.mktemp("vllm"))
    try:
        yield server.start()
    finally:
        server.stop()


@pytest.fixture
def router(server: Server, ledger: Ledger) -> Callable[..., Router]:
    """Return a maker of routers that ask the server."""

    def make(**more: Any) -> Router:
        return Router(RouterConfig.model_validate(server.settings(**more)), ledger, environment={})

    return make
