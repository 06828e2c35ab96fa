"""The verifier that ships: an endpoint signs what it was launched with, and the house pins who may sign and what.

It trusts the signer to measure the launch truly. Hardware that does so (a quote of a trusted execution environment) is
another `AttestationVerifier`: the nonce and the channel's key then go into the quote's report data.
"""

from __future__ import annotations

import http.client
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ..config import AttestationSettings
from .attestation import Attested, AttestedModel, NoProof
from .statement import NO_CHANNEL, Envelope, Statement, Unproven

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

SKEW_SECONDS = 60
"""By which the clocks of two machines may differ."""
MAX_STATEMENT_BYTES = 16_384
_KEPT_NONCES = 10_000


@dataclass(frozen=True)
class _ReceivedStatement:
    """What an endpoint sent, and the certificate that its connection showed."""

    body: bytes
    channel: str = NO_CHANNEL
    certificate: str = ""


class SignedStatements:
    """Checks statements that are signed with Ed25519 (`statement.py` has their form).

    Parameters
    ----------
    clock : callable
        The time, aware.
    timeout : float
        Seconds for one statement.
    """

    def __init__(self, clock: Callable[[], datetime], timeout: float = 5.0) -> None:
        self._clock, self._timeout = clock, timeout
        self._used: dict[str, None] = {}
        self._lock = threading.Lock()

    def verify(self, endpoint: AttestedModel, nonce: str) -> Attested | NoProof:
        """Ask the endpoint, and return its proof or why it is not believed."""
        if not self._is_first_use(nonce):
            return NoProof("this nonce was used before: what is sent for it may be an older statement")
        try:
            heard = self._heard(endpoint, nonce)
        except OSError as error:
            return NoProof(
                f"it does not answer at {endpoint.trusted.path}: {error or type(error).__name__}", passing=True
            )
        except (Unproven, ValueError, http.client.HTTPException) as error:
            return NoProof(f"it gives no statement at {endpoint.trusted.path}: {error or type(error).__name__}")
        try:
            envelope = Envelope.read(heard.body)
            statement = envelope.opened(endpoint.trusted.signer)
            self._check_statement(statement, endpoint.trusted, nonce, heard.channel)
        except Unproven as error:
            return NoProof(str(error))
        issued, expires = (datetime.fromtimestamp(each, UTC) for each in (statement.issued, statement.expires))
        latest = self._clock() + timedelta(seconds=endpoint.trusted.most_seconds)
        return Attested(
            statement.measurement, envelope.signer, statement.channel, issued, min(expires, latest), heard.certificate
        )

    def _is_first_use(self, nonce: str) -> bool:
        with self._lock:
            if nonce in self._used:
                return False
            self._used[nonce] = None
            while len(self._used) > _KEPT_NONCES:
                del self._used[next(iter(self._used))]
            return True

    def _check_statement(self, said: Statement, trusted: AttestationSettings, nonce: str, channel: str) -> None:
        """Raise `Unproven` unless a statement of a trusted signer says, now and of this channel, what is trusted."""
        now = int(self._clock().timestamp())
        reasons = (
            (said.nonce != nonce, "it answers another question than ours: a statement that was played again"),
            (said.measurement not in trusted.measurements, f"it runs {said.measurement[:12]}, which attestation.measurements does not name"),
            (said.channel != channel, "its channel has another key than the statement: something stands between"),
            (said.issued > now + SKEW_SECONDS, "its statement is of the future"),
            (said.issued < now - SKEW_SECONDS, "its statement was not made for this question: it is older"),
            (said.expires <= now, "its statement has expired"),
            (not 0 < said.expires - said.issued < 10 * 366 * 86_400, "its statement has no sensible end"),
        )  # fmt: skip
        for holds, reason in reasons:
            if holds:
                raise Unproven(reason)

    def _heard(self, endpoint: AttestedModel, nonce: str) -> _ReceivedStatement:
        """Ask for a statement: directly, without a redirection, and of the certificate believe only what is stated."""
        parts = urlsplit(endpoint.address)
        host = parts.hostname or ""
        if parts.scheme == "http":
            link = http.client.HTTPConnection(host, parts.port, timeout=self._timeout)
        else:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = (
                False,
                ssl.CERT_NONE,
            )  # the statement vouches for it, or nothing
            link = http.client.HTTPSConnection(host, parts.port, timeout=self._timeout, context=context)
        try:
            link.connect()
            shown = link.sock.getpeercert(binary_form=True) if isinstance(link.sock, ssl.SSLSocket) else None
            link.request("GET", f"{endpoint.trusted.path}?nonce={nonce}", headers={"Accept": "application/json"})
            answer = link.getresponse()
            body = answer.read(MAX_STATEMENT_BYTES + 1)
            if answer.status != 200 or len(body) > MAX_STATEMENT_BYTES:
                raise Unproven(f"status {answer.status}, {len(body):,} bytes")
        finally:
            link.close()
        return _ReceivedStatement(body) if shown is None else _read_certificate(body, shown)


def _read_certificate(body: bytes, certificate: bytes) -> _ReceivedStatement:
    from cryptography import x509

    read = x509.load_der_x509_certificate(certificate)
    if read.issuer != read.subject:
        raise Unproven("its certificate is not signed by itself, so connections cannot be held to its key alone")
    return _ReceivedStatement(body, channel_of(read), ssl.DER_cert_to_PEM_cert(certificate))


def channel_of(certificate: Certificate) -> str:
    """Return what a TLS certificate's key is known by in a statement."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    key = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return sha256(key).hexdigest()
