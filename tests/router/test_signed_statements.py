"""A machine elsewhere is believed for signed statements on this question, launch and channel, for a while."""

from __future__ import annotations

import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, strategies as st
from pydantic import ValidationError

from alphaloom.router import ModelSettings
from alphaloom.router.attestation import Attested, AttestedModel, NoProof
from alphaloom.router.config import AttestationSettings
from alphaloom.router.signed_statements import (
    NO_CHANNEL,
    Envelope,
    SignedStatements,
    Statement,
    Unproven,
    hash_launch,
)

from .served import answering

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
SECONDS = int(NOW.timestamp())
KEY, OTHER_KEY = Ed25519PrivateKey.from_private_bytes(b"k" * 32), Ed25519PrivateKey.from_private_bytes(b"o" * 32)
LAUNCH = {"model": "qwen", "flags": ["--dtype", "bfloat16"], "image": "sha256:0a"}
MEASURED = hash_launch(LAUNCH)
NONCE, OTHER = "n" * 32, "p" * 32
TRUSTED = AttestationSettings.model_validate(
    {"signer": KEY.public_key().public_bytes_raw().hex(), "measurements": MEASURED}
)


@pytest.fixture(autouse=True)
def no_network() -> None:
    """Allow what the rest of the room forbids: these tests ask a server of their own."""


def stated(nonce: str, key: Ed25519PrivateKey = KEY, **changes: Any) -> bytes:
    fields = {
        "nonce": nonce,
        "measurement": MEASURED,
        "channel": NO_CHANNEL,
        "issued": SECONDS,
        "expires": SECONDS + 600,
    }
    return Envelope.signed(Statement.model_validate(fields | changes), key).model_dump_json().encode()


def verified(answer: Callable[[str], bytes], status: int = 200, **trusted: Any) -> Attested | NoProof:
    with answering(answer, status) as address:
        endpoint = AttestedModel("it", address, TRUSTED.model_copy(update=trusted))
        return SignedStatements(lambda: NOW, 2.0).verify(endpoint, NONCE)


def test_a_true_statement_is_believed_until_it_ends_and_no_longer_than_the_house_allows() -> None:
    assert verified(stated) == Attested(MEASURED, TRUSTED.signer[0], NO_CHANNEL, NOW, NOW + timedelta(seconds=600), "")
    short = verified(stated, most_seconds=60)
    assert isinstance(short, Attested)
    assert short.expires == NOW + timedelta(seconds=60)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda _: stated(OTHER), "played again"),
        (lambda nonce: stated(nonce, OTHER_KEY), "attestation.signer does not name"),
        (lambda nonce: stated(nonce, measurement=hash_launch({**LAUNCH, "flags": []})), "attestation.measurements"),
        (lambda nonce: stated(nonce, channel="1" * 64), "another key than the statement"),
        (lambda nonce: stated(nonce, issued=SECONDS - 3600), "older"),
        (lambda nonce: stated(nonce, issued=SECONDS + 3600, expires=SECONDS + 7200), "of the future"),
        (lambda nonce: stated(nonce, expires=SECONDS), "expired"),
        (lambda nonce: stated(nonce, expires=SECONDS + 10**15), "no sensible end"),
        (lambda nonce: stated(nonce).replace(b"600", b"601"), "no signed statement|does not fit"),
        (lambda nonce: stated(nonce).replace(str(SECONDS + 600).encode(), str(SECONDS + 900).encode()), "does not fit"),
        (lambda _: b"{}", "no signed statement"),
        (lambda _: b"\xff not JSON", "no signed statement"),
        (lambda _: b"x" * 100_000, "gives no statement"),
    ],
)
def test_what_proves_nothing_is_refused(answer: Callable[[str], bytes], reason: str) -> None:
    import re

    found = verified(answer)
    assert isinstance(found, NoProof)
    assert re.search(reason, found.reason), found.reason
    assert not found.passing


def test_an_answer_that_is_none_is_refused_and_silence_is_passing() -> None:
    refused = verified(stated, status=404)
    assert isinstance(refused, NoProof)
    assert ("status 404" in refused.reason, refused.passing) == (True, False)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    silent = SignedStatements(lambda: NOW, 0.3).verify(
        AttestedModel("it", f"http://127.0.0.1:{port}/v1", TRUSTED), NONCE
    )
    assert isinstance(silent, NoProof)
    assert ("does not answer" in silent.reason, silent.passing) == (True, True)


def test_a_nonce_is_used_once() -> None:
    with answering(stated) as address:
        verifier, endpoint = SignedStatements(lambda: NOW), AttestedModel("it", address, TRUSTED)
        assert isinstance(verifier.verify(endpoint, NONCE), Attested)
        assert isinstance(verifier.verify(endpoint, NONCE), NoProof)
        assert isinstance(verifier.verify(endpoint, OTHER), Attested)


@given(at=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_no_flipped_bit_of_a_statement_passes(at: int, bit: int) -> None:
    sent = bytearray(stated(NONCE))
    sent[at % len(sent)] ^= 1 << bit
    try:
        said = Envelope.read(bytes(sent)).opened(TRUSTED.signer)
    except Unproven:
        return
    assert said == Envelope.read(stated(NONCE)).opened(TRUSTED.signer), "white space and the like only"


@given(
    st.dictionaries(st.text(max_size=5), st.text(max_size=5)), st.dictionaries(st.text(max_size=5), st.text(max_size=5))
)
def test_launches_that_differ_are_measured_differently(one: dict[str, str], other: dict[str, str]) -> None:
    assert (hash_launch(one) == hash_launch(other)) == (one == other)


GOOD = {"signer": "a" * 64, "measurements": ["b" * 64]}


@pytest.mark.parametrize(
    "wrong",
    [
        {"place": "remote"},
        {"api_base": None},
        {"api_base": "http://10.0.0.7:8000/v1"},
        {"model": "openai/qwen"},
        {"attestation": {**GOOD, "signer": "a"}},
        {"attestation": {**GOOD, "signer": []}},
        {"attestation": {**GOOD, "measurements": []}},
        {"attestation": {**GOOD, "path": "attestation"}},
    ],
)
def test_an_attestation_that_could_prove_nothing_is_refused_with_the_settings(wrong: dict[str, Any]) -> None:
    fields = {"model": "hosted_vllm/qwen", "place": "attested", "api_base": "https://far:8443/v1", "attestation": GOOD}
    assert ModelSettings.model_validate(fields).attestation
    with pytest.raises(ValidationError):
        ModelSettings.model_validate(fields | wrong)
