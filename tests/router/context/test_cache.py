"""The cache: a document is worked out once, found again, labelled, and never kept where it must not be."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from alphaloom.router import Confidential, RouterError
from alphaloom.router.context import ByteStore, CacheLimits, ContextCache, Cutting, HashedEmbedder, SqliteStore
from alphaloom.router.context.vectors import TextVectors
from alphaloom.router.errors import ContextError, SecretFound, StoreUnusable

from .texts import filing


def is_unknown(said: str | None = None) -> pytest.RaisesExc[ContextError]:
    """Expect that a document is not known, and the words."""
    return pytest.raises(ContextError, match=said, check=lambda error: error.code == "unknown_document")


class Counting(HashedEmbedder):
    """The built-in embedder, which counts what it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.texts = 0

    def embed(self, texts: Sequence[str]) -> TextVectors:
        self.texts += len(texts)
        return super().embed(texts)


def test_a_document_is_worked_out_once_whoever_adds_it(store: ByteStore) -> None:
    embedder = Counting()
    document = ContextCache(store, embedder).add(filing(1), sensitivity="public")
    assert document.id == sha256(filing(1).encode()).hexdigest()
    assert embedder.texts == document.chunks > 5
    other = ContextCache(store, embedder)
    assert other.add(filing(1), sensitivity="public") == other.document(document.id) == document
    assert embedder.texts == document.chunks
    assert other.statistics.hits == 2
    assert other.statistics.misses == 0
    assert other.statistics.seconds_saved > 0


def test_another_way_to_cut_or_embed_is_another_index(cache: ContextCache, tmp_path: Path) -> None:
    first = cache.add(filing(1), sensitivity="public")
    store = SqliteStore(tmp_path / "context.db")
    finer = ContextCache(store, cutting=Cutting(100, 10)).add(filing(1), sensitivity="public")
    longer = Counting()
    longer.name = "another"
    assert ContextCache(store, longer).document(first.id) == first
    assert longer.texts == first.chunks < finer.chunks
    assert store.size().items == 4
    store.close()


def test_a_label_only_rises_and_travels_with_every_passage(store: ByteStore) -> None:
    cache = ContextCache(store)
    public = cache.add(filing(1), sensitivity="public")
    assert cache.add(filing(1), sensitivity="confidential").sensitivity == "confidential"
    assert cache.add(filing(1), sensitivity="internal").sensitivity == "confidential"
    passages = cache.retrieve("net sales rose", [public], most_tokens=800)
    assert {passage.sensitivity for passage in passages} == {"confidential"}
    cache.trim(0)
    assert cache.add(filing(1), sensitivity="public").sensitivity == "confidential"


def test_a_lost_label_counts_as_the_strictest(store: ByteStore) -> None:
    document = ContextCache(store).add(filing(1), sensitivity="public")
    store.drop(f"public:{document.id}")
    assert ContextCache(store).document(document.id).sensitivity == "confidential"


class Elsewhere(SqliteStore):
    """A store that is not on machines of one's own."""

    place = "remote"


def test_a_confidential_document_stays_here(tmp_path: Path) -> None:
    store = Elsewhere(tmp_path / "context.db")
    with pytest.raises(Confidential, match="machines of yours"):
        ContextCache(store).add(filing(1), sensitivity="confidential")
    assert store.size().items == 0
    store.close()


def test_a_document_that_becomes_confidential_leaves_a_store_elsewhere(tmp_path: Path) -> None:
    store = Elsewhere(tmp_path / "context.db")
    cache = ContextCache(store)
    cache.add(filing(1), sensitivity="public")
    for label in ("confidential", "public"):
        with pytest.raises(Confidential):
            cache.add(filing(1), sensitivity=label)
        assert store.size().items == 0
    store.close()


def test_a_lease_from_a_time_to_come_counts_for_nothing(tmp_path: Path) -> None:
    """A clock that was set back an hour would else hold everybody up for an hour."""
    times = iter([3600.0, 3600.0, 5.0])
    store = SqliteStore(tmp_path / "context.db", clock=lambda: next(times))
    assert store.lease("index:" + "0" * 64, "dead", 20)
    assert not store.lease("index:" + "0" * 64, "next", 20)
    assert store.lease("index:" + "0" * 64, "next", 20)
    store.close()


@pytest.mark.parametrize(
    "secret",
    ["-----BEGIN RSA PRIVATE KEY-----", "AKIA" + "Q7" * 8, "sk-" + "a1" * 16, "redis://me:hunter2@10.0.0.1/0"],
)
def test_a_text_with_a_secret_is_not_kept(cache: ContextCache, secret: str) -> None:
    with pytest.raises(SecretFound, match="not kept") as caught:
        cache.add(f"notes: {secret} and more", sensitivity="internal")
    assert secret not in str(caught.value)
    assert cache.size().items == 0


@pytest.mark.parametrize(("text", "said"), [(" \n", "nothing to read"), ("a\ud800", "not Unicode")])
def test_what_cannot_be_read_is_refused(cache: ContextCache, text: str, said: str) -> None:
    with pytest.raises(RouterError, match=said):
        cache.add(text, sensitivity="public")


def test_what_was_dropped_is_said_and_an_index_alone_is_made_again(cache: ContextCache) -> None:
    document = cache.add(filing(1), sensitivity="public")
    before = cache.retrieve("net sales", [document], most_tokens=800)
    cache._shelf.store.drop(Cutting().key(document.id, HashedEmbedder()))
    assert cache.retrieve("net sales", [document], most_tokens=800) == before
    cache.forget(document)
    assert cache.size().items == 0
    with is_unknown("Add it again"):
        cache.document(document.id)


def test_a_damaged_value_is_made_again(store: ByteStore) -> None:
    document = ContextCache(store).add(filing(1), sensitivity="public")
    key = Cutting().key(document.id, HashedEmbedder())
    body = bytearray(store.get(key) or b"")
    body[len(body) // 2] ^= 1
    store.drop(key)
    store.put(key, bytes(body))
    cache = ContextCache(store)
    assert cache.document(document.id) == document
    assert cache.statistics.damaged == 1


def test_the_oldest_documents_make_room(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "context.db")
    one = ContextCache(store)
    first = one.add(filing(1), sensitivity="public")
    room = int(store.size().bytes * 2.5)
    cache = ContextCache(store, limits=replace(CacheLimits(), most_bytes=room))
    cache.add(filing(2), sensitivity="public")
    cache.document(first.id)
    cache.add(filing(3), sensitivity="public")
    assert store.size().bytes <= room
    assert cache.document(first.id) == first
    with is_unknown():
        cache.document(sha256(filing(2).encode()).hexdigest())
    store.close()


def test_only_its_owner_reads_the_file(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "c.db").close()
    assert stat.S_IMODE((tmp_path / "c.db").stat().st_mode) == 0o600


def test_a_file_that_is_no_cache_is_said(tmp_path: Path) -> None:
    (tmp_path / "c.db").write_bytes(b"something else entirely" * 500)
    with pytest.raises(StoreUnusable, match="Delete the file"):
        SqliteStore(tmp_path / "c.db")


def test_vectors_are_of_length_one_and_hang_on_nothing_else() -> None:
    embedder = HashedEmbedder()
    texts = ["Net sales rose.", "", "Dividends were paid in March 2024.", "\U0001f600 \u03b1\u03b2"]
    vectors = embedder.embed(texts)
    assert vectors.dtype == np.float32
    assert vectors.shape == (4, embedder.dimension)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 0, 1, 1], abs=1e-6)
    assert (embedder.embed(texts[2:]) == vectors[2:]).all()
    near, far = embedder.embed(["The dividend was paid", "Rockets and submarines"]) @ vectors[2]
    assert near > far + 0.2
    assert embedder.embed([]).shape == (0, embedder.dimension)


def test_vectors_stay_as_they_are_under_their_name() -> None:
    """Whoever changes a vector must change the name, or caches would mix two kinds."""
    embedder = HashedEmbedder()
    assert embedder.name == "alphaloom-hashed-1/512"
    vector = embedder.embed(["Free cash flow was $1,204.5 million, 12 % above the year before."])[0]
    assert sha256(np.round(vector * 1e4).astype("<i4").tobytes()).hexdigest()[:16] == "5835c343522701b5"
