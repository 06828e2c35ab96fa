"""Prompts as numbers: the same for the same request, however it is spaced, cased or framed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from alphaloom.router.classifier.features import (
    FEATURE_BUCKETS,
    build_features,
    hash_buckets,
    normalise_prompt,
    strip_frames,
)

EQUAL = np.ones(FEATURE_BUCKETS, dtype=np.float32)


@given(st.text(max_size=5_000))
def test_any_text_has_features_of_a_bounded_length(text: str) -> None:
    features = build_features(text, EQUAL)
    assert np.square(features.weights).sum() <= 2.0 + 1e-4
    assert set(features.rows) == set(hash_buckets(text))
    assert ((features.rows >= 0) & (features.rows < FEATURE_BUCKETS)).all()


def test_case_spacing_and_numbers_are_left_out_of_account() -> None:
    one, other = build_features("Rank of 20-day  returns\n", EQUAL), build_features("rank of 35-DAY returns", EQUAL)
    assert np.array_equal(one.rows, other.rows)
    assert np.array_equal(one.weights, other.weights)


def test_the_end_of_a_long_text_is_read() -> None:
    page = "the committee met and talked at length. " * 2_000
    assert not np.array_equal(hash_buckets(f"{page} Condense it."), hash_buckets(f"{page} Which ticker is it?"))


@pytest.mark.parametrize(
    "framed",
    [
        "Hi team, why does carry crash together?",
        "why does carry crash together? Thanks!",
        "### Task\nwhy does carry crash together?\n### Answer",
        "User: why does carry crash together?\nAssistant:",
        "<task>why does carry crash together?</task>",
        "You are a helpful assistant of a desk.\n\nwhy does carry crash together?",
    ],
)
def test_what_stands_round_a_request_is_left_out(framed: str) -> None:
    assert normalise_prompt(framed).rstrip("?") == "why does carry crash together"


@pytest.mark.parametrize("text", ["Thanks!", "hi", "", "Hello there,", "</task>"])
def test_what_is_nothing_but_a_frame_is_read_as_it_is(text: str) -> None:
    assert strip_frames(text) == text


@given(st.text(max_size=300))
def test_nothing_is_added_and_little_text_is_never_lost(text: str) -> None:
    inner = strip_frames(text)
    assert inner in text
    assert not text.strip() or inner.strip()
