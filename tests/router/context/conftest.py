"""Stores of either kind; a Redis server on this machine is the only thing that is reached."""

import socket
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from alphaloom.router.context import ByteStore, ContextCache, index
from alphaloom.router.context.redis_store import RedisStore
from alphaloom.router.context.store import SqliteStore
from alphaloom.router.context.vectors import TextVectors, embed_texts

from . import redis_server
from .redis_server import RedisServer

KINDS = ["file"] if redis_server.lacking() else ["file", "redis"]
"""Every law of a store holds in both; `test_redis` says why there is no server where there is none."""
Opener = Callable[[], ByteStore]


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.socket.connect

    def near(link: socket.socket, address: Any) -> None:
        assert isinstance(address, str) or address[0] == "127.0.0.1", "a test reached for the network"
        real(link, address)

    monkeypatch.setattr(socket.socket, "connect", near)


@pytest.fixture(scope="session")
def redis() -> Iterator[RedisServer]:
    yield from redis_server.running()


NAMES = (f"lab{number}" for number in count())


@pytest.fixture(params=KINDS)
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Opener]:
    """Return a maker of new places, each of which can be opened again and again."""

    def make() -> Opener:
        name = next(NAMES)
        if request.param == "redis":
            address = request.getfixturevalue("redis").address
            return lambda: RedisStore(address, namespace=name, place="local")
        return lambda: SqliteStore(tmp_path / name / "context.db")

    return make


@pytest.fixture
def store(fresh: Callable[[], Opener]) -> Iterator[ByteStore]:
    store = fresh()()
    yield store
    store.close()


@pytest.fixture
def file(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "context.db")
    yield store
    store.close()


@pytest.fixture
def cache(file: SqliteStore) -> ContextCache:
    return ContextCache(file)


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of the texts that are embedded for indices from now on."""
    texts: list[str] = []

    def embed(batch: Sequence[str]) -> TextVectors:
        texts.extend(batch)
        return embed_texts(batch)

    monkeypatch.setattr(index, "embed_texts", embed)
    return texts
