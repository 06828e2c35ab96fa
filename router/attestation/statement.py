"""What an attested machine says of itself, in the one spelling that is signed.

Served at `/attestation?nonce=...` as `{"statement": text, "signature": hex, "signer": hex}`. The text is JSON of the fields
of `Statement`; what is signed (Ed25519) is `SIGNED_PREFIX` and that text, byte for byte, so that no second spelling passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...ledger import canonical_json, compute_digest

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SIGNED_PREFIX = b"alphaloom attestation 1\n"
NO_CHANNEL = "0" * 64
"""The channel of an endpoint that is reached without TLS."""
_SHA256_HEX = r"^[0-9a-f]{64}$"


class Unproven(Exception):
    """A statement proves nothing; the message says why."""


class Statement(BaseModel):
    """What a machine says of itself.

    Attributes
    ----------
    nonce : str
        What it was asked with, so that no older statement can be played again.
    measurement : str
        sha256 of the launch (`measurement_of`).
    channel : str
        sha256 of the public key (SubjectPublicKeyInfo, DER) of its TLS certificate; `NO_CHANNEL` without TLS.
    issued, expires : int
        Seconds since 1970, UTC.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    nonce: str = Field(min_length=16, max_length=128)
    measurement: str = Field(pattern=_SHA256_HEX)
    channel: str = Field(pattern=_SHA256_HEX)
    issued: int
    expires: int


class Envelope(BaseModel):
    """A statement as it is sent: its text, the signature over it, and the public key to check that with."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    statement: str = Field(max_length=4_096)
    signature: str = Field(pattern=r"^[0-9a-f]{128}$")
    signer: str = Field(pattern=_SHA256_HEX)

    @classmethod
    def signed(cls, statement: Statement, key: Ed25519PrivateKey) -> Self:
        """Sign a statement: what a machine does."""
        text = canonical_json(statement.model_dump())
        signer = key.public_key().public_bytes_raw().hex()
        return cls(statement=text, signature=key.sign(SIGNED_PREFIX + text.encode()).hex(), signer=signer)

    @classmethod
    def read(cls, body: bytes) -> Self:
        """Read what a machine sent; raise `Unproven` if it is none."""
        try:
            return cls.model_validate_json(body)
        except ValidationError as error:
            raise Unproven(f"what it sent is no signed statement: {_first_mistake(error)}") from None

    def opened(self, signers: tuple[str, ...]) -> Statement:
        """Return the statement if one of the signers signed it; raise `Unproven` otherwise."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        if self.signer not in signers:
            raise Unproven(f"it is signed by {self.signer[:12]}, which attestation.signer does not name")
        try:
            key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(self.signer))
            key.verify(bytes.fromhex(self.signature), SIGNED_PREFIX + self.statement.encode())
        except (InvalidSignature, ValueError):
            raise Unproven("its signature does not fit the statement") from None
        try:
            return Statement.model_validate_json(self.statement)
        except ValidationError as error:
            raise Unproven(f"what it signed is no statement: {_first_mistake(error)}") from None


def measurement_of(launch: Mapping[str, Any]) -> str:
    """Return what a launch is known by: the sha256 of its canonical JSON (model, flags, image)."""
    return compute_digest(canonical_json(dict(launch)))


def _first_mistake(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg']}"
