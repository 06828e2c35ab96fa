"""What a store promises, held to by the file and by Redis alike."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from hashlib import sha256

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from alphaloom.router import RouterError
from alphaloom.router.context.store import ByteStore, Size

from .conftest import Opener

KEYS = [f"{kind}:{sha256(bytes([number])).hexdigest()}" for number, kind in enumerate(["text", "index"] * 3)]
DEEDS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(KEYS), st.binary(max_size=40), st.booleans()),
        st.tuples(st.just("get"), st.sampled_from(KEYS)),
        st.tuples(st.just("drop"), st.sampled_from(KEYS)),
        st.tuples(st.just("trim"), st.integers(0, 120)),
    ),
    max_size=30,
)


class Model:
    """A store as one would describe it: what is there in the order of use, and what is pinned."""

    def __init__(self) -> None:
        self.items: dict[str, bytes] = {}
        self.pinned: dict[str, bytes] = {}

    def get(self, key: str) -> bytes | None:
        if key in self.items:
            self.items[key] = self.items.pop(key)
        return self.items.get(key, self.pinned.get(key))

    def put(self, key: str, body: bytes, pinned: bool) -> bool:
        new = key not in self.items and key not in self.pinned
        if new:
            (self.pinned if pinned else self.items)[key] = body
        return new

    def drop(self, key: str) -> None:
        self.items.pop(key, None)
        self.pinned.pop(key, None)

    def size(self) -> Size:
        return Size(len(self.items), sum(map(len, self.items.values())))

    def trim(self, most: int) -> int:
        before = len(self.items)
        while self.size().bytes > most:
            del self.items[next(iter(self.items))]
        return before - len(self.items)


@given(deeds=DEEDS)
@example(deeds=[("put", KEYS[0], b"", False), ("drop", KEYS[0])])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_a_store_does_what_its_model_does(fresh: Callable[[], Opener], deeds: list[tuple[object, ...]]) -> None:
    store, model = fresh()(), Model()
    for name, *values in deeds:
        told = {"pinned": values.pop()} if name == "put" else {}
        assert getattr(store, str(name))(*values, **told) == getattr(model, str(name))(*values, *told.values())
        assert store.size() == model.size()
    assert [store.get(key) for key in KEYS] == [model.get(key) for key in KEYS]
    store.close()


def test_what_one_handle_wrote_another_reads_and_cannot_change(fresh: Callable[[], Opener]) -> None:
    opener = fresh()
    one, other = opener(), opener()
    assert one.put(KEYS[0], b"first")
    assert not other.put(KEYS[0], b"second")
    assert other.get(KEYS[0]) == b"first"
    for each in (one, other, one):
        each.close()


def test_of_many_threads_one_writes(store: ByteStore) -> None:
    won: list[bytes] = []

    def write(body: bytes) -> None:
        if store.put(KEYS[0], body):
            won.append(body)

    threads = [threading.Thread(target=write, args=(bytes([number]) * 10_000,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [store.get(KEYS[0])] == won


def test_a_lease_has_one_owner_who_may_prolong_it_and_alone_gives_it_back(store: ByteStore) -> None:
    assert store.lease(KEYS[0], "a", 60)
    assert store.lease(KEYS[0], "a", 60)
    assert not store.lease(KEYS[0], "b", 60)
    assert store.lease(KEYS[1], "b", 60)
    store.release(KEYS[0], "b")
    assert not store.lease(KEYS[0], "b", 60)
    store.release(KEYS[0], "a")
    assert store.lease(KEYS[0], "b", 60)


def test_a_lease_that_nobody_prolongs_runs_out(store: ByteStore) -> None:
    assert store.lease(KEYS[0], "dead", 0.05)
    time.sleep(0.08)
    assert store.lease(KEYS[0], "next", 60)
    assert not store.lease(KEYS[0], "dead", 60)


@pytest.mark.parametrize("key", ["", "text", "text:short", "../x:" + "0" * 64, "text:" + "g" * 64])
def test_what_is_no_key_is_refused(store: ByteStore, key: str) -> None:
    with pytest.raises(RouterError, match="a kind, a colon and a SHA-256"):
        store.put(key, b"")
