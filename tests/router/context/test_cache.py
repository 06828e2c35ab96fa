"""The cache: a document is worked out once, found again, labelled, and never kept where it must not be."""

from __future__ import annotations

import stat
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from alphaloom.router import Confidential, RouterError
from alphaloom.router.context import ByteStore, ContextCache, Document, Passage
from alphaloom.router.context.index import find_index_key
from alphaloom.router.context.store import SqliteStore
from alphaloom.router.context.vectors import VECTOR_LENGTH, VECTORS_NAME, embed_texts
from alphaloom.router.errors import ContextError, SecretFound, StoreUnusable

from .texts import filing


def is_unknown(said: str | None = None) -> pytest.RaisesExc[ContextError]:
    """Expect that a document is not known, and the words."""
    return pytest.raises(ContextError, match=said, check=lambda error: error.code == "unknown_document")


def find(cache: ContextCache, document: Document) -> list[Passage]:
    return cache.retrieve("net sales", [document], most_tokens=800)


def test_a_document_is_worked_out_once_whoever_adds_it(store: ByteStore, embedded: list[str]) -> None:
    document = ContextCache(store).add(filing(1), sensitivity="public")
    assert document.id == sha256(filing(1).encode()).hexdigest()
    chunks = len(embedded)
    assert chunks > 5
    other = ContextCache(store)
    assert other.add(filing(1), sensitivity="public") == document
    assert find(other, document)
    assert len(embedded) == chunks


def test_an_index_of_an_earlier_version_is_found_under_its_key() -> None:
    assert find_index_key("0" * 64)[:22] == "index:39235d278e23e409"


def test_a_label_only_rises_and_travels_with_every_passage(store: ByteStore) -> None:
    cache = ContextCache(store)
    public = cache.add(filing(1), sensitivity="public")
    assert cache.add(filing(1), sensitivity="confidential").sensitivity == "confidential"
    assert cache.add(filing(1), sensitivity="internal").sensitivity == "confidential"
    passages = cache.retrieve("net sales rose", [public], most_tokens=800)
    assert {passage.sensitivity for passage in passages} == {"confidential"}
    store.trim(0)
    assert cache.add(filing(1), sensitivity="public").sensitivity == "confidential"


def test_a_lost_label_counts_as_the_strictest(store: ByteStore) -> None:
    document = ContextCache(store).add(filing(1), sensitivity="public")
    store.drop(f"public:{document.id}")
    assert {passage.sensitivity for passage in find(ContextCache(store), document)} == {"confidential"}


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
def test_a_text_with_a_secret_is_not_kept(cache: ContextCache, file: SqliteStore, secret: str) -> None:
    with pytest.raises(SecretFound, match="not kept") as caught:
        cache.add(f"notes: {secret} and more", sensitivity="internal")
    assert secret not in str(caught.value)
    assert file.size().items == 0


@pytest.mark.parametrize(("text", "said"), [(" \n", "nothing to read"), ("a\ud800", "not Unicode")])
def test_what_cannot_be_read_is_refused(cache: ContextCache, text: str, said: str) -> None:
    with pytest.raises(RouterError, match=said):
        cache.add(text, sensitivity="public")


def test_what_was_dropped_is_said_and_an_index_alone_is_made_again(cache: ContextCache, file: SqliteStore) -> None:
    document = cache.add(filing(1), sensitivity="public")
    before = find(cache, document)
    file.drop(find_index_key(document.id))
    assert find(cache, document) == before
    file.trim(0)
    with is_unknown("Add it again"):
        find(cache, document)


def test_a_damaged_value_is_made_again(store: ByteStore, embedded: list[str]) -> None:
    document = ContextCache(store).add(filing(1), sensitivity="public")
    before = find(ContextCache(store), document)
    key, chunks = find_index_key(document.id), len(embedded)
    body = bytearray(store.get(key) or b"")
    body[len(body) // 2] ^= 1
    store.drop(key)
    store.put(key, bytes(body))
    assert find(ContextCache(store), document) == before
    assert len(embedded) == 2 * chunks


def test_the_oldest_documents_make_room(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "context.db")
    one = ContextCache(store)
    first = one.add(filing(1), sensitivity="public")
    room = int(store.size().bytes * 2.5)
    cache = ContextCache(store, most_bytes=room)
    second = cache.add(filing(2), sensitivity="public")
    assert find(cache, first)
    cache.add(filing(3), sensitivity="public")
    assert store.size().bytes <= room
    assert find(cache, first)
    with is_unknown():
        find(cache, second)
    store.close()


def test_only_its_owner_reads_the_file(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "c.db").close()
    assert stat.S_IMODE((tmp_path / "c.db").stat().st_mode) == 0o600


def test_a_file_that_is_no_cache_is_said(tmp_path: Path) -> None:
    (tmp_path / "c.db").write_bytes(b"something else entirely" * 500)
    with pytest.raises(StoreUnusable, match="Delete the file"):
        SqliteStore(tmp_path / "c.db")


def test_vectors_are_of_length_one_and_hang_on_nothing_else() -> None:
    texts = ["Net sales rose.", "", "Dividends were paid in March 2024.", "\U0001f600 \u03b1\u03b2"]
    vectors = embed_texts(texts)
    assert vectors.dtype == np.float32
    assert vectors.shape == (4, VECTOR_LENGTH)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 0, 1, 1], abs=1e-6)
    assert (embed_texts(texts[2:]) == vectors[2:]).all()
    near, far = embed_texts(["The dividend was paid", "Rockets and submarines"]) @ vectors[2]
    assert near > far + 0.2
    assert embed_texts([]).shape == (0, VECTOR_LENGTH)


def test_vectors_stay_as_they_are_under_their_name() -> None:
    """Whoever changes a vector must change the name, or caches would mix two kinds."""
    assert VECTORS_NAME == "alphaloom-hashed-1/512"
    vector = embed_texts(["Free cash flow was $1,204.5 million, 12 % above the year before."])[0]
    assert sha256(np.round(vector * 1e4).astype("<i4").tobytes()).hexdigest()[:16] == "5835c343522701b5"
