"""Cutting: nothing is left out, nothing is too long, and it is cut where a reader would."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from alphaloom.router import RouterError
from alphaloom.router.context.chunks import count_tokens, split_chunks

PROSE = st.lists(
    st.sampled_from(["Net sales rose. ", "word ", "\n", "\n\n", "# Risk\n", "x" * 70, "e\u0301", "\u3002",
                     "\U0001f600", "ITEM 7. MD&A\n"])
).map("".join)  # fmt: skip  # a table
TEXTS = st.one_of(st.text(), PROSE)


@given(TEXTS, st.integers(1, 60), st.integers(0, 59))
def test_every_character_is_covered_and_no_chunk_is_too_long(text: str, most: int, overlap: int) -> None:
    chunks = split_chunks(text, most_tokens=most, overlap=min(overlap, most - 1))
    end = 0
    for chunk in chunks:
        assert 0 <= chunk.first <= end < chunk.stop
        assert count_tokens(text[chunk.first : chunk.stop]) == chunk.tokens <= most
        assert count_tokens(text[chunk.first : end]) <= overlap
        end = chunk.stop
    assert end == len(text)
    assert chunks == split_chunks(text, most_tokens=most, overlap=min(overlap, most - 1))


def test_a_text_is_cut_at_a_heading_before_a_paragraph_and_there_before_a_sentence() -> None:
    sentence = "Sales rose in the year. "
    text = sentence * 8 + "\n\n" + sentence * 3 + "\n# Risks\n" + sentence * 9 + "\n\n" + sentence * 20
    pieces = [text[chunk.first : chunk.stop] for chunk in split_chunks(text, most_tokens=90, overlap=0)]
    assert pieces[1].startswith("# Risks")
    assert pieces[1].endswith("\n\n")
    assert all(piece.endswith(". ") for piece in pieces[2:])


def test_what_is_repeated_are_whole_sentences() -> None:
    text = " ".join(f"Sentence number {number} ends here." for number in range(60))
    chunks = split_chunks(text, most_tokens=50, overlap=20)
    assert all(text[chunk.first :].startswith("Sentence number") for chunk in chunks)
    assert all(before.stop > after.first for before, after in pairwise(chunks))


@pytest.mark.parametrize(("most", "overlap"), [(0, 0), (10, 10), (10, -1)])
def test_limits_that_leave_nothing_are_refused(most: int, overlap: int) -> None:
    with pytest.raises(RouterError, match="allowed"):
        split_chunks("text", most_tokens=most, overlap=overlap)


def test_a_hostile_text_costs_no_more_than_a_plain_one() -> None:
    """A pattern that goes back over what it read would take minutes."""
    for mark in ("\n ", ".'", "1.", "A ", "#", " \n\r", "Item "):
        text = mark * 200_000
        assert split_chunks(text, overlap=10)[-1].stop == len(text)
