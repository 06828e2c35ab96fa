"""What looks like a key is refused in a document, and taken out of a log: by one list, so that neither knows less."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings, strategies as st

from alphaloom.router.keys import ADDRESS_WITH_PASSWORD, KEY_SHAPES, NAMED_KEY, holds_key
from alphaloom.router.redaction import KEY_MASK, Redactor

ASCII = st.characters(max_codepoint=126, min_codepoint=32)
SEEN = {
    "a private key": "-----BEGIN RSA PRIVATE KEY-----",
    "AWS": "AKIA" + "A1" * 8,
    "OpenAI, Anthropic and others": "sk-" + "a" * 18,
    "Groq, xAI, Perplexity, NVIDIA, Replicate, Fireworks": "gsk_" + "a1" * 26,
    "Google": "AIza" + "A" * 35,
    "Hugging Face": "hf_" + "a" * 34,
    "GitHub": "ghp_" + "a" * 36,
    "GitHub, fine-grained": "github_pat_" + "a" * 60,
    "Slack": "xoxb-1234567890-abc",
    "a signed token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc",
}
TOLD = ["api_key: 9f8e7d6c5b4a39281706", "Authorization: Bearer 9f8e7d6c5b4a39281706", "postgresql://u:pw@h"]
PROSE = [
    "Basic materials lead, basic industrials-2024 lag.",
    "A token: required.",
    "sk-learn fits it.",
    "see a://b.c/d@e",
]


def test_each_shape_has_an_example() -> None:
    assert SEEN.keys() == KEY_SHAPES.keys()
    assert all(re.fullmatch(KEY_SHAPES[name], key) for name, key in SEEN.items())


@pytest.mark.parametrize("key", [*SEEN.values(), *TOLD])
def test_what_a_log_may_not_say_no_document_may_hold(key: str) -> None:
    assert holds_key(f"We use {key} for it.")
    assert KEY_MASK in Redactor().without_keys(f"We use {key} for it.")


@pytest.mark.parametrize(
    "shape", [*KEY_SHAPES.values(), ADDRESS_WITH_PASSWORD.pattern], ids=[*KEY_SHAPES, "an address"]
)
@settings(max_examples=15)
@given(data=st.data())
def test_whatever_has_a_shape_is_both(shape: str, data: st.DataObject) -> None:
    key = data.draw(st.from_regex(re.compile(shape, re.ASCII), alphabet=ASCII))
    assert holds_key(key)
    assert KEY_MASK in Redactor().without_keys(key)


@given(st.text(ASCII, max_size=60) | st.from_regex(NAMED_KEY, alphabet=ASCII))
def test_what_is_refused_is_also_taken_out_of_logs(text: str) -> None:
    if holds_key(text):
        assert KEY_MASK in Redactor().without_keys(text)


@pytest.mark.parametrize("text", PROSE)
def test_prose_is_no_key(text: str) -> None:
    assert not holds_key(text)
