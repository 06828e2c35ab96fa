"""One server of SmolLM2 for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .served import SmallServer, lacking


@pytest.fixture
def no_network() -> None:
    """Allow what the rest of the room forbids: these tests ask a server of their own, on this machine."""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallServer]:
    if reason := lacking():
        pytest.skip(reason)
    server = SmallServer(tmp_path_factory.mktemp("smollm"))
    try:
        server.start()
        yield server
    finally:
        server.stop()
