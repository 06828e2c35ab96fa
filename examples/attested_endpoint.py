r"""A model's server that proves what it was launched with: the other end of `attestation` in a campaign file.

python examples/attested_endpoint.py --upstream http://127.0.0.1:8000 --model qwen \
    --flags "--dtype bfloat16" --image sha256:0a1b

It stands before a server that speaks the OpenAI protocol (vLLM or another), passes questions on to it, and answers
`/attestation?nonce=...` with a statement: the nonce, the sha256 of the launch, the sha256 of its TLS key, and until
when it stands, signed with Ed25519. The TLS key is made at the start and never leaves the process, so who asks under
that key asks this process. It prints one line of JSON: the address, and what a house writes under `attestation` to
trust this launch.

What it shows is the exchange. That the launch is what it says is the word of whoever holds the signing key: keep that
key where only the launcher reads it. On hardware that measures by itself, another `AttestationVerifier` reads its
quote instead.
"""

from __future__ import annotations

import argparse
import json
import os
import ssl
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpx2
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import NameOID
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from alphaloom.desk.cli.serve.listen import open_listener, quiet_signals
from alphaloom.desk.cli.serve.server import ServerTerms, serve_until_signal
from alphaloom.router.signed_statements import NO_CHANNEL, Envelope, Statement, hash_channel_key, hash_launch

PEM = serialization.Encoding.PEM
PKCS8, OPEN = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
MOST_BYTES = 32 << 20
PASSED_ON = ("Authorization", "Content-Type", "Accept")
GRACE_S = 2
"""Seconds that requests under way have at the end."""


@dataclass(frozen=True)
class Proof:
    """The parts of a statement, and the key that signs it."""

    key: Ed25519PrivateKey
    measurement: str
    channel: str
    seconds: int

    def answer(self, nonce: str) -> bytes:
        """Return a signed statement for a nonce."""
        now = int(time.time())
        statement = Statement(
            nonce=nonce, measurement=self.measurement, channel=self.channel, issued=now, expires=now + self.seconds
        )
        return Envelope.signed(statement, self.key).model_dump_json().encode()


@dataclass(frozen=True)
class Front:
    """Answer for its proof, and forward everything else to the server."""

    proof: Proof
    upstream: httpx2.AsyncClient

    async def attest(self, request: Request) -> Response:
        """Answer with a statement."""
        try:
            (nonce,) = request.query_params.getlist("nonce")
            return Response(self.proof.answer(nonce), media_type="application/json")
        except ValueError:  # pydantic's errors are ValueErrors
            return JSONResponse({"error": "one nonce of 16 to 128 characters is needed"}, 400)

    async def pass_on(self, request: Request) -> Response:
        """Forward a request."""
        request.scope.setdefault("state", {})["known"] = True  # so that its connection is not cut off meanwhile
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > MOST_BYTES:
                return JSONResponse({"error": "too long"}, 413, {"connection": "close"})
        headers = {name: value for name in PASSED_ON if (value := request.headers.get(name))}
        path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        try:
            answer = await self.upstream.request(request.method, path, headers=headers, content=bytes(body) or None)
        except httpx2.TransportError as error:
            message = f"the model's server: {type(error).__name__}"
            return JSONResponse({"error": {"message": message}}, 502)
        kind = answer.headers.get("Content-Type") or "application/json"
        return Response(answer.content, answer.status_code, {"content-type": kind})


def channel(host: str) -> tuple[str, ssl.SSLContext]:
    """Make a TLS key with a self-signed certificate; return the key's hash, and the server's context."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "alphaloom attested endpoint")])
    alternative = x509.IPAddress(ip_address(host)) if host[:1].isdigit() or ":" in host else x509.DNSName(host)
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, SHA256())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:  # ssl takes keys from files only
        place = Path(folder, "channel.pem")
        place.touch(mode=0o600)
        place.write_bytes(key.private_bytes(PEM, PKCS8, OPEN) + certificate.public_bytes(PEM))
        context.load_cert_chain(place)
    return hash_channel_key(certificate), context


def signing_key(path: Path) -> Ed25519PrivateKey:
    """Return the key that signs statements; created on the first start, readable by its owner only."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        body = Ed25519PrivateKey.generate().private_bytes(PEM, PKCS8, OPEN)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(body)
    key = serialization.load_pem_private_key(path.read_bytes(), None)
    if not isinstance(key, Ed25519PrivateKey):
        raise SystemExit(f"{path} holds no Ed25519 key")
    return key


def front(options: argparse.Namespace, port: int) -> tuple[Starlette, ssl.SSLContext | None, dict[str, Any]]:
    """Return the application, its TLS context, and its description of itself."""
    launch = {"model": options.model, "flags": options.flags.split(), "image": options.image}
    key, measurement = signing_key(options.key), hash_launch(launch)
    name, context = (NO_CHANNEL, None) if options.plain else channel(options.host)
    no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))  # else one caller's go with another's question
    upstream = httpx2.AsyncClient(base_url=options.upstream, timeout=600, trust_env=False, cookies=no_cookies)
    endpoint = Front(Proof(key, measurement, name, options.seconds), upstream)
    routes = [
        Route("/attestation", endpoint.attest, methods=["GET"]),
        Route("/{path:path}", endpoint.pass_on, methods=["GET", "POST"]),
    ]
    host = f"[{options.host}]" if ":" in options.host else options.host
    return (
        Starlette(routes=routes),
        context,
        {
            "api_base": f"{'http' if options.plain else 'https'}://{host}:{port}/v1",
            "attestation": {"signer": key.public_key().public_bytes_raw().hex(), "measurements": [measurement]},
            "launch": launch,
        },
    )


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
    options = parse.parse_args()
    with open_listener(options.host, options.port, "--port") as listener, quiet_signals() as signals:
        app, tls, description = front(options, listener.getsockname()[1])
        print(json.dumps(description), flush=True)
        serve_until_signal(app, listener, ServerTerms(GRACE_S, descriptors=2, tls=tls), lambda: bool(signals))


if __name__ == "__main__":
    main()
