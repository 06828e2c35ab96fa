"""The built-in verifier: an endpoint signs its launch, and the configuration pins the signers and the launches.

A statement is served at `/attestation?nonce=...` as `{"statement": text, "signature": hex, "signer": hex}`. The text is
JSON of the fields of `Statement`. The signature (Ed25519) covers `SIGNED_PREFIX` and the bytes of that text, so no
other spelling of the same JSON is accepted.

The signer is trusted to measure the launch correctly. A measurement by hardware (a quote of a trusted execution
environment) needs another `AttestationVerifier`, with the nonce and the channel's key in the quote's report data.
"""

from __future__ import annotations

import http.client
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..ledger import canonical_json, compute_digest
from .attestation import Attested, AttestedModel, NoProof
from .config import AttestationSettings

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.x509 import Certificate

SKEW_SECONDS = 60
"""Allowed difference between the clocks of two machines."""
MAX_STATEMENT_BYTES = 16_384
_KEPT_NONCES = 10_000
SIGNED_PREFIX = b"alphaloom attestation 1\n"
NO_CHANNEL = "0" * 64
"""The channel of an endpoint without TLS."""
_SHA256_HEX = r"^[0-9a-f]{64}$"


@dataclass(frozen=True)
class _ReceivedStatement:
    """The body that an endpoint sent, and the certificate of its connection."""

    body: bytes
    channel: str = NO_CHANNEL
    certificate: str = ""


class SignedStatements:
    """Checks statements that are signed with Ed25519 (`Envelope`).

    Parameters
    ----------
    clock : callable
        Returns the time, aware.
    timeout : float
        Seconds for one statement.
    """

    def __init__(self, clock: Callable[[], datetime], timeout: float = 5.0) -> None:
        self._clock, self._timeout = clock, timeout
        self._used: dict[str, None] = {}
        self._lock = threading.Lock()

    def verify(self, endpoint: AttestedModel, nonce: str) -> Attested | NoProof:
        """Fetch the endpoint's statement, and return its proof or the reason why it is refused."""
        if not self._is_first_use(nonce):
            return NoProof("this nonce was used before: what is sent for it may be an older statement")
        try:
            received = self._fetch_statement(endpoint, nonce)
        except OSError as error:
            return NoProof(
                f"it does not answer at {endpoint.trusted.path}: {error or type(error).__name__}", passing=True
            )
        except (Unproven, ValueError, http.client.HTTPException) as error:
            return NoProof(f"it gives no statement at {endpoint.trusted.path}: {error or type(error).__name__}")
        try:
            envelope = Envelope.read(received.body)
            statement = envelope.opened(endpoint.trusted.signer)
            self._check_statement(statement, endpoint.trusted, nonce, received.channel)
        except Unproven as error:
            return NoProof(str(error))
        issued, expires = (datetime.fromtimestamp(seconds, UTC) for seconds in (statement.issued, statement.expires))
        latest = self._clock() + timedelta(seconds=endpoint.trusted.most_seconds)
        return Attested(
            statement.measurement,
            envelope.signer,
            statement.channel,
            issued,
            min(expires, latest),
            received.certificate,
        )

    def _is_first_use(self, nonce: str) -> bool:
        with self._lock:
            if nonce in self._used:
                return False
            self._used[nonce] = None
            while len(self._used) > _KEPT_NONCES:
                del self._used[next(iter(self._used))]
            return True

    def _check_statement(self, statement: Statement, trusted: AttestationSettings, nonce: str, channel: str) -> None:
        """Raise `Unproven` unless a statement is current, for this nonce and channel, and names a trusted launch."""
        now = int(self._clock().timestamp())
        unnamed = f"it runs {statement.measurement[:12]}, which attestation.measurements does not name"
        reasons = (
            (statement.nonce != nonce, "it answers another question than ours: a statement that was played again"),
            (statement.measurement not in trusted.measurements, unnamed),
            (statement.channel != channel, "its channel has another key than the statement: something stands between"),
            (statement.issued > now + SKEW_SECONDS, "its statement is of the future"),
            (statement.issued < now - SKEW_SECONDS, "its statement was not made for this question: it is older"),
            (statement.expires <= now, "its statement has expired"),
            (not 0 < statement.expires - statement.issued < 10 * 366 * 86_400, "its statement has no sensible end"),
        )
        for holds, reason in reasons:
            if holds:
                raise Unproven(reason)

    def _fetch_statement(self, endpoint: AttestedModel, nonce: str) -> _ReceivedStatement:
        """Fetch a statement, without proxies and redirections.

        TLS checks no certificate here: the statement vouches for its key, or the connection is refused.
        """
        parts = urlsplit(endpoint.address)
        host = parts.hostname or ""
        if parts.scheme == "http":
            connection = http.client.HTTPConnection(host, parts.port, timeout=self._timeout)
        else:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            connection = http.client.HTTPSConnection(host, parts.port, timeout=self._timeout, context=context)
        try:
            connection.connect()
            certificate = (
                connection.sock.getpeercert(binary_form=True) if isinstance(connection.sock, ssl.SSLSocket) else None
            )
            connection.request("GET", f"{endpoint.trusted.path}?nonce={nonce}", headers={"Accept": "application/json"})
            answer = connection.getresponse()
            body = answer.read(MAX_STATEMENT_BYTES + 1)
            if answer.status != 200 or len(body) > MAX_STATEMENT_BYTES:
                raise Unproven(f"status {answer.status}, {len(body):,} bytes")
        finally:
            connection.close()
        return _ReceivedStatement(body) if certificate is None else _read_certificate(body, certificate)


def _read_certificate(body: bytes, certificate: bytes) -> _ReceivedStatement:
    from cryptography import x509

    parsed = x509.load_der_x509_certificate(certificate)
    if parsed.issuer != parsed.subject:
        raise Unproven("its certificate is not signed by itself, so connections cannot be held to its key alone")
    return _ReceivedStatement(body, hash_channel_key(parsed), ssl.DER_cert_to_PEM_cert(certificate))


def hash_channel_key(certificate: Certificate) -> str:
    """Return the sha256 (hex) of a TLS certificate's public key, as statements name it."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    key = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return sha256(key).hexdigest()


class Unproven(Exception):
    """A statement proves nothing; the message says why."""


class Statement(BaseModel):
    """A machine's statement about itself.

    Attributes
    ----------
    nonce : str
        The nonce of the request, so that an older statement cannot be replayed.
    measurement : str
        sha256 of the launch (`hash_launch`).
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
    """A statement as it is sent: its text, the signature over it, and the signer's public key."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    statement: str = Field(max_length=4_096)
    signature: str = Field(pattern=r"^[0-9a-f]{128}$")
    signer: str = Field(pattern=_SHA256_HEX)

    @classmethod
    def signed(cls, statement: Statement, key: Ed25519PrivateKey) -> Self:
        """Sign a statement, as a machine does."""
        text = canonical_json(statement.model_dump())
        signer = key.public_key().public_bytes_raw().hex()
        return cls(statement=text, signature=key.sign(SIGNED_PREFIX + text.encode()).hex(), signer=signer)

    @classmethod
    def read(cls, body: bytes) -> Self:
        """Parse the body that a machine sent; raise `Unproven` if it is no envelope."""
        try:
            return cls.model_validate_json(body)
        except ValidationError as error:
            raise Unproven(f"what it sent is no signed statement: {_describe_first_mistake(error)}") from None

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
            raise Unproven(f"what it signed is no statement: {_describe_first_mistake(error)}") from None


def hash_launch(launch: Mapping[str, Any]) -> str:
    """Return the sha256 (hex) of a launch's canonical JSON (model, flags, image)."""
    return compute_digest(canonical_json(dict(launch)))


def _describe_first_mistake(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg']}"
