"""Summaries: asked for once, in parts where a text is long, labelled, and kept whole or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from alphaloom.router.calls.task import Sensitivity
from alphaloom.router.context import ByteStore, ContextCache, Summariser
from alphaloom.router.context.store import SqliteStore
from alphaloom.router.errors import ContextError, ModelFailed, SecretFound, SummaryRefused

from .texts import filing


class Scribe:
    """A model that says the first words of what it reads; one call of it may fail."""

    def __init__(self, fails_at: int = 0, says: str | None = None) -> None:
        self.fails_at, self.says = fails_at, says
        self.read: list[tuple[str, Sensitivity]] = []

    async def __call__(self, text: str, sensitivity: Sensitivity) -> str:
        self.read.append((text, sensitivity))
        number = len(self.read)
        await asyncio.sleep(0)
        if number == self.fails_at:
            raise ModelFailed("the model is away")
        return " ".join(text.split()[:12]) if self.says is None else self.says


def cached(store: ByteStore, scribe: Scribe, **changes: int | str) -> ContextCache:
    fields = {"prompt": "p" * 64, "model": "double"} | changes
    return ContextCache(store, Summariser(scribe, **fields))  # type: ignore[arg-type]


def test_a_model_is_asked_once_for_each_document_prompt_and_model(store: ByteStore) -> None:
    scribe = Scribe()
    cache = cached(store, scribe)
    document = cache.add("Net sales rose.", sensitivity="internal")
    summary = asyncio.run(cache.summary(document))
    assert (summary.text, summary.sensitivity) == ("Net sales rose.", "internal")
    assert asyncio.run(cached(store, scribe).summary(document)) == summary
    assert scribe.read == [("Net sales rose.", "internal")]
    asyncio.run(cached(store, scribe, prompt="q" * 64).summary(document))
    asyncio.run(cached(store, scribe, model="other").summary(document))
    assert len(scribe.read) == 3


def test_who_asks_at_once_waits_for_the_one_answer(store: ByteStore) -> None:
    scribe = Scribe()
    cache = cached(store, scribe)
    document = cache.add("Net sales rose.", sensitivity="public")

    async def all_at_once() -> None:
        await asyncio.gather(*(cache.summary(document) for _ in range(5)))

    asyncio.run(all_at_once())
    assert len(scribe.read) == 1


def test_a_long_document_is_read_in_parts_that_fit_and_wholly(store: ByteStore) -> None:
    scribe = Scribe()
    cache = cached(store, scribe, window_tokens=500)
    document = cache.add(filing(1), sensitivity="public")
    asyncio.run(cache.summary(document))
    *parts, last = [text for text, _ in scribe.read]
    assert "".join(parts) == filing(1)
    assert all(len(part) <= 2000 for part in parts)
    assert last.count("\n\n") == len(parts) - 1


def test_a_label_that_rose_reaches_the_model(store: ByteStore) -> None:
    scribe = Scribe()
    cache = cached(store, scribe)
    public = cache.add("Net sales rose.", sensitivity="public")
    cache.add("Net sales rose.", sensitivity="confidential")
    assert asyncio.run(cache.summary(public)).sensitivity == "confidential"
    assert scribe.read == [("Net sales rose.", "confidential")]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: Scribe(fails_at=3), ModelFailed),
        (lambda: Scribe(says="  "), SummaryRefused),
        (lambda: Scribe(says="word " * 450), SummaryRefused),
        (lambda: Scribe(says="sk-" + "a1" * 16), SecretFound),
    ],
)
def test_a_failure_leaves_nothing_and_the_next_try_is_free(
    store: ByteStore, make: Callable[[], Scribe], error: type[Exception]
) -> None:
    cache = cached(store, make(), window_tokens=500)
    document = cache.add(filing(1), sensitivity="public")
    before = store.size()
    with pytest.raises(error):
        asyncio.run(cache.summary(document))
    assert store.size() == before
    good = Scribe()
    assert asyncio.run(cached(store, good, window_tokens=500).summary(document)).text
    assert good.read


def test_after_a_failure_nothing_more_is_asked(cache: ContextCache, tmp_path_factory: pytest.TempPathFactory) -> None:
    store = SqliteStore(tmp_path_factory.mktemp("s") / "context.db")
    scribe = Scribe(fails_at=1)
    failing = cached(store, scribe, window_tokens=200, at_once=2)
    document = failing.add(filing(1), sensitivity="public")
    with pytest.raises(ModelFailed):
        asyncio.run(failing.summary(document))
    assert len(scribe.read) == 2
    with pytest.raises(ContextError, match="nobody who summarises"):
        asyncio.run(cache.summary(document))
    store.close()
