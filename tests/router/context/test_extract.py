"""A summary by rule: the text's own sentences, in their order, within its tokens."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hypothesis import given, strategies as st

from alphaloom.router.context import EXTRACT_SUMMARISER, ContextCache, extract_sentences
from alphaloom.router.context.chunks import count_tokens
from alphaloom.router.context.passages import Ranked, interleave_orders
from alphaloom.router.context.store import SqliteStore

from .texts import filing


@given(text=st.text(st.sampled_from("ab .\n\u00e9\u4e2d"), max_size=400), most=st.integers(1, 60))
def test_a_summary_is_the_texts_own_words_in_their_order_within_its_tokens(text: str, most: int) -> None:
    sentences = extract_sentences(text, most)
    assert count_tokens(sentences) <= most
    rest = iter("".join(text.split()))
    assert all(sign in rest for sign in "".join(sentences.split()))


def test_what_a_text_speaks_of_is_chosen_and_a_stray_sentence_is_not() -> None:
    about = [f"Inventory growth foretells weak returns of retailers in year {number}." for number in range(12)]
    sentences = extract_sentences(" ".join([*about[:6], "My cat sleeps on the warm radiator.", *about[6:]]), 60)
    assert "Inventory growth" in sentences
    assert "cat" not in sentences


def test_a_long_document_has_a_summary_too_and_it_is_made_once(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "context.db")
    first, second = (ContextCache(store, summariser=EXTRACT_SUMMARISER) for _ in range(2))
    document = first.add(filing(3, 1200), sensitivity="public")
    said = [asyncio.run(cache.summary(document)).text for cache in (first, second)]
    assert said[0] == said[1]
    assert 0 < count_tokens(said[0]) <= 120
    assert store.size().items == 3, "the text, its index and one summary"
    store.close()


ORDERS = st.lists(
    st.lists(st.builds(Ranked, st.just(0), st.integers(0, 9), st.just(9)), unique=True, max_size=6), max_size=4
)


@given(ORDERS)
def test_several_queries_have_their_turns(orders: list[list[Ranked]]) -> None:
    got = interleave_orders(orders)
    assert len(got) == len(set(got))
    assert set(got) == {place for order in orders for place in order}
    firsts = {order[0] for order in orders if order}
    assert set(got[: len(firsts)]) == firsts
    assert interleave_orders(orders[:1]) == (orders[0] if orders else [])
