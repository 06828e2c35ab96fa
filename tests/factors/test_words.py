"""Words by their stems, and what BM25 makes of them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from alphaloom.factors.describe.words import (
    BM25_B,
    BM25_K1,
    find_mention,
    find_stems,
    measure_stem_overlap,
    mentions,
    score_relevance,
)

SENTENCES = st.lists(st.sampled_from(["calm", "price", "prices", "the", "volume", "trend"]), max_size=8).map(" ".join)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("volatile", "volatility"),
        ("price", "prices"),
        ("month", "monthly"),
        ("trade", "trading"),
        ("stress", "stressed"),
        ("reversal", "reverse"),
    ],
)
def test_forms_of_a_word_meet(one: str, other: str) -> None:
    assert find_stems(one) == find_stems(other) != ()


def test_what_says_nothing_is_left_out() -> None:
    assert find_stems("The stocks that are the most CALM, after sector_stress!") == ("calm", "sector", "stress")


def test_a_phrase_is_mentioned_as_a_phrase() -> None:
    assert mentions("intermediate_momentum", "Momentum")
    assert mentions("a short-term reversal of prices", "short term reversals")
    assert not mentions("reversal in the short term", "short term reversal")
    assert not mentions("momentary pressure", "momentum")
    assert not mentions("anything", "of the")
    assert find_mention(("low_volatility", "calm names"), ("momentum", "calm")) == "calm"


@given(SENTENCES, SENTENCES)
def test_likeness_is_a_share_and_has_no_order(one: str, other: str) -> None:
    assert 0.0 <= measure_stem_overlap(one, other) == measure_stem_overlap(other, one) <= 1.0
    assert measure_stem_overlap(one, one) == 1.0


def obvious(query: str, texts: list[str]) -> list[float]:
    """BM25 as the formula stands in the source, word by word."""
    split = [list(find_stems(text)) for text in texts]
    mean = sum(map(len, split)) / len(split) if split else 0.0
    scores = []
    for words in split:
        score = 0.0
        for stem in sorted(set(find_stems(query))):
            held = sum(stem in word for word in split)
            often = words.count(stem)
            damp = often + BM25_K1 * (1 - BM25_B + BM25_B * (len(words) / mean if mean else 0.0))
            score += (
                math.log(1 + (len(split) - held + 0.5) / (held + 0.5)) * often * (BM25_K1 + 1) / damp if often else 0.0
            )
        scores.append(score)
    return scores


@given(SENTENCES, st.lists(SENTENCES, max_size=6))
def test_relevance_is_that_of_the_formula(query: str, texts: list[str]) -> None:
    assert score_relevance(query, texts) == pytest.approx(obvious(query, texts))


def test_rare_words_count_for_more() -> None:
    rare, common, other = score_relevance("calm price", ["calm trend", "price trend", "price volume"])
    assert rare > common == other > score_relevance("calm price", ["volume trend", "calm", "price"])[0] == 0.0
