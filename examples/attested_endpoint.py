"""A model's server that proves what it was launched with: the other end of `attestation` in a campaign file.

python examples/attested_endpoint.py --upstream http://127.0.0.1:8000 --model qwen --flags "--dtype bfloat16" --image sha256:0a1b

It stands before a server that speaks the OpenAI protocol (vLLM or another), passes questions on to it, and answers
`/attestation?nonce=...` with a statement: the nonce, the sha256 of the launch, the sha256 of its TLS key, and until when it
stands, signed with Ed25519. The TLS key is made at the start and never leaves the process, so who asks under that key asks
this process. It prints one line of JSON: the address, and what a house writes under `attestation` to trust this launch.

What it shows is the exchange. That the launch is what it says is the word of whoever holds the signing key: keep that key
where only the launcher reads it. On hardware that measures by itself, another `Verifier` reads its quote instead.
"""

from __future__ import annotations

import argparse
import http.client
import http.server
import json
import os
import ssl
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import NameOID

from alphaloom.router.signed_statements import channel_of
from alphaloom.router.statement import NO_CHANNEL, Envelope, Statement, measurement_of

PEM = serialization.Encoding.PEM
PKCS8, OPEN = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
MOST_BYTES = 32 << 20
PASSED_ON = ("Authorization", "Content-Type", "Accept")


@dataclass(frozen=True)
class Proof:
    """What statements are made from."""

    key: Ed25519PrivateKey
    measurement: str
    channel: str
    seconds: int

    def answer(self, nonce: str) -> bytes:
        """Return a signed statement for a nonce."""
        now = int(time.time())
        said = Statement(
            nonce=nonce, measurement=self.measurement, channel=self.channel, issued=now, expires=now + self.seconds
        )
        return Envelope.signed(said, self.key).model_dump_json().encode()


class Front(http.server.BaseHTTPRequestHandler):
    """Answers for its proof itself, and passes everything else on."""

    protocol_version = "HTTP/1.1"
    proof: Proof
    upstream: tuple[str, int]

    def do_GET(self) -> None:
        """Give a statement, or pass the question on."""
        parts = urlsplit(self.path)
        if parts.path != "/attestation":
            self._pass_on(None)
            return
        try:
            (nonce,) = parse_qs(parts.query)["nonce"]
            self._send(200, self.proof.answer(nonce))
        except (KeyError, ValueError):  # pydantic's errors are ValueErrors
            self._send(400, b'{"error": "one nonce of 16 to 128 characters is needed"}')

    def do_POST(self) -> None:
        """Pass a question on."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MOST_BYTES:
            self.close_connection = True
            self._send(413, b'{"error": "too long"}')
            return
        self._pass_on(self.rfile.read(int(length)))

    def _pass_on(self, body: bytes | None) -> None:
        headers = {name: value for name in PASSED_ON if (value := self.headers.get(name))}
        link = http.client.HTTPConnection(*self.upstream, timeout=600)
        try:
            link.request(self.command, self.path, body, headers)
            answer = link.getresponse()
            self._send(answer.status, answer.read(), answer.getheader("Content-Type") or "application/json")
        except OSError as error:
            self._send(502, json.dumps({"error": {"message": f"the model's server: {error}"}}).encode())
        finally:
            link.close()

    def _send(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Write nothing down: questions are confidential."""


def channel(host: str) -> tuple[str, ssl.SSLContext]:
    """Make a TLS key and a certificate signed by itself; return what the key is known by, and the server's context."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "alphaloom attested endpoint")])
    alternative = x509.IPAddress(ip_address(host)) if host[:1].isdigit() or ":" in host else x509.DNSName(host)
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, SHA256())
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:  # ssl takes keys from files only
        place = Path(folder, "channel.pem")
        place.touch(mode=0o600)
        place.write_bytes(key.private_bytes(PEM, PKCS8, OPEN) + certificate.public_bytes(PEM))
        context.load_cert_chain(place)
    return channel_of(certificate), context


def signing_key(path: Path) -> Ed25519PrivateKey:
    """Return the key that signs statements; made on the first start, readable by its owner only."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        made = Ed25519PrivateKey.generate().private_bytes(PEM, PKCS8, OPEN)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(made)
    key = serialization.load_pem_private_key(path.read_bytes(), None)
    if not isinstance(key, Ed25519PrivateKey):
        raise SystemExit(f"{path} holds no Ed25519 key")
    return key


def server(options: argparse.Namespace) -> tuple[http.server.ThreadingHTTPServer, dict[str, Any]]:
    """Return the server, and what it tells of itself."""
    launch = {"model": options.model, "flags": options.flags.split(), "image": options.image}
    key, measurement = signing_key(options.key), measurement_of(launch)
    name, context = (NO_CHANNEL, None) if options.plain else channel(options.host)
    upstream = urlsplit(options.upstream)
    own = {
        "proof": Proof(key, measurement, name, options.seconds),
        "upstream": (upstream.hostname or "127.0.0.1", upstream.port or 80),
    }
    made = http.server.ThreadingHTTPServer((options.host, options.port), type("Own", (Front,), own))
    if context is not None:
        made.socket = context.wrap_socket(made.socket, server_side=True, do_handshake_on_connect=False)
    address = f"{'http' if options.plain else 'https'}://{options.host}:{made.server_port}/v1"
    signer = key.public_key().public_bytes_raw().hex()
    return made, {
        "api_base": address,
        "attestation": {"signer": signer, "measurements": [measurement]},
        "launch": launch,
    }


def main() -> None:
    """Serve until interrupted."""
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("--upstream", required=True, help="the model's server, on this machine")
    parse.add_argument("--model", required=True, help="what is served; a part of the launch that is measured")
    parse.add_argument("--flags", default="", help="with which flags")
    parse.add_argument("--image", default="", help="from which image, by its digest")
    parse.add_argument("--key", type=Path, default=Path(".alphaloom/attestation.pem"), help="of the signer")
    parse.add_argument("--host", default="127.0.0.1", help="the address that callers use: it is in the certificate")
    parse.add_argument("--port", type=int, default=8443)
    parse.add_argument("--seconds", type=int, default=600, help="for which a statement stands")
    parse.add_argument("--plain", action="store_true", help="without TLS: behind a tunnel that ends on this machine")
    made, told = server(parse.parse_args())
    print(json.dumps(told), flush=True)
    with made:
        try:
            made.serve_forever()
        except KeyboardInterrupt:
            sys.exit(0)


if __name__ == "__main__":
    main()
