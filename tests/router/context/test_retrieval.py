"""Finding: the right passage first, within the limit, the same whatever the order of asking."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from alphaloom.router import RouterError
from alphaloom.router.context import ContextCache, Document
from alphaloom.router.context.store import SqliteStore

from .texts import filing


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ContextCache, list[Document]]]:
    store = SqliteStore(tmp_path_factory.mktemp("shelf") / "context.db")
    cache = ContextCache(store)
    yield cache, [cache.add(filing(seed), sensitivity="public") for seed in range(6)]
    store.close()


@given(seed=st.integers(0, 5), at=st.integers(0, 399))
def test_an_exact_sentence_finds_its_chunk_first(
    shelf: tuple[ContextCache, list[Document]], seed: int, at: int
) -> None:
    cache, documents = shelf
    said = [word + "." for part in filing(seed).split("\n") for word in part.split(". ") if word.strip("# ")]
    sentences = [text.strip() for text in said if not text.startswith("#")]
    sentence = sentences[at]
    first = cache.retrieve(sentence, documents, most_tokens=400)[0]
    assert first.document == documents[seed].id
    assert sentence.rstrip(".") in first.text


@given(query=st.text(max_size=60), most=st.integers(400, 3000))
def test_passages_fit_do_not_overlap_and_are_what_they_say(
    shelf: tuple[ContextCache, list[Document]], query: str, most: int
) -> None:
    cache, documents = shelf
    passages = cache.retrieve(f"{query} sales in Ohio", documents, most_tokens=most)
    assert 0 < sum(passage.tokens for passage in passages) <= most
    texts = {document.id: filing(seed) for seed, document in enumerate(documents)}
    assert all(passage.text == texts[passage.document][passage.first : passage.stop] for passage in passages)
    places = sorted((passage.document, passage.first, passage.stop) for passage in passages)
    assert all(a[0] != b[0] or a[2] < b[1] for a, b in pairwise(places))
    assert [passage.rank for passage in passages] == sorted({passage.rank for passage in passages})


def test_the_order_of_documents_changes_nothing(shelf: tuple[ContextCache, list[Document]]) -> None:
    cache, documents = shelf
    mixed = documents * 2
    random.Random(1).shuffle(mixed)
    question = "what did freight rates do across Asia"
    assert cache.retrieve(question, mixed, most_tokens=2000) == cache.retrieve(question, documents, most_tokens=2000)


def test_what_nothing_speaks_of_finds_nothing(shelf: tuple[ContextCache, list[Document]]) -> None:
    cache, documents = shelf
    assert cache.retrieve("", documents, most_tokens=2000) == []
    assert cache.retrieve("net sales", [], most_tokens=2000) == []


def test_a_limit_below_a_chunk_is_refused(shelf: tuple[ContextCache, list[Document]]) -> None:
    cache, documents = shelf
    with pytest.raises(RouterError, match="400 or more"):
        cache.retrieve("net sales", documents, most_tokens=399)
