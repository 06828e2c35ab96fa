"""Tokens of somebody else's OAuth server: signed ones, and those that it is asked about."""

from __future__ import annotations

import base64
import hmac
import json
import os
import re
import threading
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from alphaloom.ledger import AlphaloomError, SettingsError
from alphaloom.mcp_servers.access import (
    AnyOf,
    Grant,
    Introspection,
    Jwts,
    KeySet,
    Tokens,
    TokenVerifier,
    Trust,
    create_token,
)
from alphaloom.mcp_servers.access.fetching import MAX_FETCH_BYTES, FetchFailed, check_url, fetch_body
from alphaloom.mcp_servers.access.jwts import KeyLifetimes
from alphaloom.mcp_servers.access.oauth import IntrospectionEndpoint, Protected, read_oauth
from alphaloom.mcp_servers.errors import McpServerError, TokenRefused

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
TRUST = Trust("https://issuer.example", "https://tools.example/mcp", as_of=date(2020, 1, 1))
RSA_KEY, EC_KEY, OTHER = (
    rsa.generate_private_key(65537, 2048),
    ec.generate_private_key(ec.SECP256R1()),
    rsa.generate_private_key(65537, 2048),
)
CLAIMS: dict[str, Any] = {
    "iss": TRUST.issuer,
    "aud": [TRUST.audience, "other"],
    "sub": "team-x",
    "exp": int(NOW.timestamp()) + 600,
    "scope": "openid data:read data:jurisdiction:CH",
    "alphaloom_as_of": "2015-12-31",
    "alphaloom_fields": ["close"],
}


def public(key: Any, kid: str) -> dict[str, Any]:
    algorithm = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    return {**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid, "use": "sig"}


KEYS = [public(RSA_KEY, "r1"), public(EC_KEY, "e1")]


def signed(changes: dict[str, Any] | None = None, key: Any = RSA_KEY, algorithm: str = "RS256", kid: str = "r1") -> str:
    claims = {name: value for name, value in {**CLAIMS, **(changes or {})}.items() if value is not ...}
    return jwt.encode(claims, key, algorithm, headers={"kid": kid})


def verifier(keys: list[dict[str, Any]] | None = None) -> Jwts:
    body = json.dumps({"keys": KEYS if keys is None else keys}).encode()
    return Jwts(TRUST, KeySet(lambda: body), clock=lambda: NOW)


def told(folder: Path, text: str) -> tuple[TokenVerifier, Protected]:
    (folder / "oauth.yaml").write_text(text)
    return read_oauth(folder / "oauth.yaml", lambda: NOW)


def test_a_file_names_the_server_whose_tokens_are_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "keys.json").write_text(json.dumps({"keys": KEYS}))
    both = f"issuer: {TRUST.issuer}\naudience: {TRUST.audience}\n"
    by_keys, protected = told(tmp_path, f"{both}jwks: keys.json\nas_of: 2020-01-01\n")
    assert by_keys.verify(signed()) == verifier().verify(signed())
    assert (protected.resource, protected.issuer) == (TRUST.audience, TRUST.issuer)
    asked = f"{both}introspection: {{url: 'https://issuer.example/ask', client_id: me, client_secret_env: OUR_SECRET}}"
    with pytest.raises(McpServerError, match="export OUR_SECRET") as caught:
        told(tmp_path, asked)
    assert caught.value.code == "secret"
    monkeypatch.setenv("OUR_SECRET", "hush")
    assert isinstance(told(tmp_path, asked)[0], Introspection)
    for wrong, said in (
        (both, "name one of jwks and introspection"),
        (both.replace("https://issuer", "http://issuer") + "jwks: keys.json", "https://"),
        (both + "jwk: keys.json", "jwks"),
    ):
        with pytest.raises(SettingsError, match=said):
            told(tmp_path, wrong)


def reason(bearer: str, by: Any = None) -> str:
    with pytest.raises(TokenRefused) as caught:
        (by or verifier()).verify(bearer)
    assert str(caught.value) == str(TokenRefused())
    return caught.value.reason


def test_a_signed_token_names_a_caller() -> None:
    for bearer in (signed(), signed(key=EC_KEY, algorithm="ES256", kid="e1")):
        caller = verifier().verify(bearer)
        assert caller.id == "oauth:sub:team-x"
        assert caller.scopes == {"data:read", "data:jurisdiction:CH"}
        assert (caller.fields, caller.as_of) == (frozenset({"close"}), date(2015, 12, 31))
        assert caller.expires == datetime.fromtimestamp(CLAIMS["exp"] + 30, UTC)


def test_the_servers_own_day_holds_where_a_token_says_a_later_one_or_none() -> None:
    for told in ("2024-01-01", ...):
        assert verifier().verify(signed({"alphaloom_as_of": told})).as_of == date(2020, 1, 1)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"iss": "https://other.example"}, "another issuer"),
        ({"iss": ...}, "iss is missing"),
        ({"aud": "https://other.example"}, "another server"),
        ({"aud": ...}, "aud is missing"),
        ({"exp": ...}, "exp is missing"),
        ({"exp": int(NOW.timestamp()) - 31}, "expired"),
        ({"exp": True}, "cannot be checked|no time"),
        ({"nbf": int(NOW.timestamp()) + 31}, "not valid yet"),
        ({"iat": int(NOW.timestamp()) + 31}, "not valid yet"),
        ({"sub": ...}, "nobody"),
        ({"sub": "two\nlines"}, "nobody"),
        ({"alphaloom_as_of": "soon"}, "no day"),
        ({"alphaloom_as_of": 2015}, "no day"),
        ({"alphaloom_fields": {"close": 1}}, "no list of texts"),
        ({"alphaloom_fields": []}, "names no field"),
    ],
)
def test_a_claim_that_is_wrong_refuses(changes: dict[str, Any], why: str) -> None:
    assert re.search(why, reason(signed(changes)))


def test_a_person_and_a_program_of_one_name_are_two_callers() -> None:
    person, program = ({"sub": "x", "client_id": "y"}, {"sub": ..., "client_id": "x"})
    assert [verifier().verify(signed(claims)).id for claims in (person, program)] == ["oauth:sub:x", "oauth:client:x"]


def test_clocks_may_differ_by_the_leeway() -> None:
    at = int(NOW.timestamp())
    verifier().verify(signed({"exp": at - 29, "nbf": at + 29, "iat": at + 29}))


def with_secret(secret: bytes, body: str) -> str:
    """Return a token that takes the public key for a secret that both sides share."""
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"r1"}').decode().rstrip("=")
    mac = hmac.digest(secret, f"{head}.{body}".encode(), "sha256")
    return f"{head}.{body}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"


def test_what_is_not_signed_by_a_key_of_the_issuer_is_refused() -> None:
    none = jwt.encode(CLAIMS, None, "none", headers={"kid": "r1"})  # type: ignore[arg-type]
    head, body, tail = signed().split(".")
    shared = with_secret(RSA_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), body)
    changed = ".".join([head, body[:-4] + ("AAAA" if body[-4:] != "AAAA" else "BBBB"), tail])
    inside = jwt.encode(CLAIMS, OTHER, "RS256", headers={"kid": "r9", "jwk": public(OTHER, "r9"), "jku": "https://x"})
    bad = [none, shared, changed, inside, signed(key=OTHER), signed(kid="e1"), signed(kid="r9"), f"{head}.{body}.",
           "a.b.c", "alt_00000000_x", "", "." * 20_000, "ü.ü.ü", signed(algorithm="PS256"),
           signed(algorithm="RS512")]  # fmt: skip  # a table
    assert all(reason(token) for token in bad)


@pytest.mark.filterwarnings("ignore::jwt.warnings.InsecureKeyLengthWarning")  # of the one who signs
def test_keys_that_are_not_meant_for_it_are_not_used() -> None:
    for change in ({"use": "enc"}, {"alg": "RS512"}, {"key_ops": ["encrypt"]}, {"kty": "oct", "k": "AAAA"}):
        assert reason(signed(), verifier([{**KEYS[0], **change}])) == "its key is not known"
    weak = rsa.generate_private_key(65537, 1024)
    assert reason(signed(key=weak, kid="w"), verifier([public(weak, "w")]))


def test_a_new_key_is_fetched_but_not_as_often_as_somebody_asks() -> None:
    fetched_at: list[float] = []
    clock, held = [0.0], [KEYS[:1]]

    def fetch() -> bytes:
        fetched_at.append(clock[0])
        return json.dumps({"keys": held[0]}).encode()

    keys = KeySet(fetch, KeyLifetimes(fresh=300, keep=3600, pause=60), ticks=lambda: clock[0])
    assert keys.key("r1", "RS256")
    for _ in range(100):
        assert keys.key("e1", "ES256") is None
    assert fetched_at == [0.0]
    clock[0], held[0] = 61.0, KEYS
    assert keys.key("e1", "ES256")
    assert fetched_at == [0.0, 61.0]


def test_old_keys_serve_for_a_while_when_none_can_be_fetched() -> None:
    clock, answers = [0.0], [json.dumps({"keys": KEYS}).encode()]

    def fetch() -> bytes:
        if not answers:
            raise FetchFailed("gone")
        return answers.pop()

    keys = KeySet(fetch, KeyLifetimes(fresh=300, keep=3600, pause=60), ticks=lambda: clock[0])
    for clock[0], there in ((0.0, True), (1_000.0, True), (3_600.0, True), (3_601.0, False)):
        assert (keys.key("r1", "RS256") is not None) == there


def test_keys_may_lie_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text(json.dumps({"keys": KEYS}))
    assert Jwts(TRUST, KeySet.at(tmp_path / "keys.json"), clock=lambda: NOW).verify(signed()).id == "oauth:sub:team-x"
    assert KeySet.at(tmp_path / "none.json").key("r1", "RS256") is None


def test_keys_in_a_pipe_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "keys.json")
    found: list[object] = []
    keys = KeySet.at(tmp_path / "keys.json")
    reader = threading.Thread(target=lambda: found.append(keys.key("r1", "RS256")), daemon=True)
    reader.start()
    reader.join(60)
    assert found == [None]


Ask = Callable[[str], bytes]


def asking(ask: Ask, at: list[datetime] | None = None) -> Introspection:
    return Introspection(TRUST, ask, clock=lambda: (at or [NOW])[0])


def test_an_active_token_names_a_caller_and_is_asked_about_once_in_a_while() -> None:
    asked: list[str] = []
    at = [NOW]

    def ask(token: str) -> bytes:
        asked.append(token)
        return json.dumps({**CLAIMS, "active": token == "good"}).encode()

    by = asking(ask, at)
    for _ in range(3):
        assert by.verify("good").scopes == {"data:read", "data:jurisdiction:CH"}
        assert reason("bad", by)
    assert asked == ["good", "bad"]
    at[0] = NOW + timedelta(seconds=30)
    by.verify("good")
    assert asked == ["good", "bad", "good"]


def test_a_token_is_not_kept_beyond_its_end() -> None:
    at = [NOW]
    ends = int(NOW.timestamp()) + 5 - 30
    by = asking(lambda _: json.dumps({**CLAIMS, "active": True, "exp": ends}).encode(), at)
    by.verify("good")
    at[0] = NOW + timedelta(seconds=5)
    assert reason("good", by)


@pytest.mark.parametrize(
    "answer",
    [b"no json", b"[]", b"{}", b'{"active": "true"}', b'{"active": 1}', b'{"active": true}',
     json.dumps({**CLAIMS, "active": True, "iss": "https://other.example"}).encode(),
     json.dumps({**CLAIMS, "active": True, "aud": None}).encode()],
)  # fmt: skip  # a table
def test_an_answer_that_does_not_vouch_refuses(answer: bytes) -> None:
    assert reason("good", asking(lambda _: answer))


@pytest.mark.parametrize("status", [200, 400, 401])
def test_a_no_about_one_token_is_about_that_token_alone(status: int) -> None:
    asked: list[str] = []

    def ask(token: str) -> bytes:
        asked.append(token)
        if token != "good":
            raise FetchFailed("no", status)
        return json.dumps({**CLAIMS, "active": True}).encode()

    by = asking(ask)
    assert reason("bad", by)
    assert by.verify("good")
    assert reason("bad", by)
    assert asked == ["bad", "good"]


def test_strangers_displace_nobodys_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("alphaloom.mcp_servers.access.oauth.MAX_ACCEPTED_CACHED", 2)
    monkeypatch.setattr("alphaloom.mcp_servers.access.oauth.MAX_REFUSED_CACHED", 2)
    asked: list[str] = []

    def ask(token: str) -> bytes:
        asked.append(token)
        return json.dumps({**CLAIMS, "active": token == "good"}).encode()

    by = asking(ask)
    by.verify("good")
    for number in range(4):
        assert reason(f"bad{number}", by)
    by.verify("good")
    assert reason("bad3", by)
    assert reason("bad0", by)
    assert asked == ["good", "bad0", "bad1", "bad2", "bad3", "bad0"]


@pytest.mark.parametrize("status", [None, 429, 503])
def test_a_server_that_fails_refuses_everybody_and_rests(status: int | None) -> None:
    asked: list[str] = []
    at = [NOW]

    def ask(token: str) -> bytes:
        asked.append(token)
        raise FetchFailed("slow", status)

    by = asking(ask, at)
    for _ in range(5):
        assert reason("good", by)
    assert len(asked) == 1
    at[0] = NOW + timedelta(seconds=1)
    assert reason("good", by)
    assert len(asked) == 2


def test_our_own_tokens_are_never_sent_away(tmp_path: Path) -> None:
    asked: list[str] = []
    issued = create_token(tmp_path / "tokens.yaml", Grant(("data:read",), date(2027, 1, 1)), now=NOW)
    own = Tokens.open(tmp_path / "tokens.yaml", clock=lambda: NOW)
    both = AnyOf([asking(lambda token: asked.append(token) or b"{}"), own])  # type: ignore[func-returns-value]
    assert both.verify(issued.token).id == issued.entry.id
    assert reason(issued.token[:-1], both)
    assert asked == []
    assert reason("somebody's", both)
    assert asked == ["somebody's"]


class Issuer(BaseHTTPRequestHandler):
    """An OAuth server on this machine."""

    def do_GET(self) -> None:
        body = {"/keys": json.dumps({"keys": KEYS}).encode(), "/large": b" " * (MAX_FETCH_BYTES + 1)}.get(self.path)
        self.send_response(200 if body else 302)
        self.send_header("location", "/keys")
        self.send_header("content-length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["content-length"])).decode()
        text = json.dumps(
            {**CLAIMS, "active": "token=good" in asked and self.headers["authorization"] == "Basic bWU6c2VjcmV0"}
        )
        self.send_response(200)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def issuer(monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    server = HTTPServer(("127.0.0.1", 0), Issuer)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_keys_and_answers_are_fetched_over_http(issuer: str) -> None:
    assert Jwts(TRUST, KeySet.at(f"{issuer}/keys"), clock=lambda: NOW).verify(signed()).id == "oauth:sub:team-x"
    endpoint = IntrospectionEndpoint(f"{issuer}/introspect", "me", "secret")
    assert "secret" not in repr(endpoint)
    assert asking(endpoint).verify("good").id == "oauth:sub:team-x"
    assert reason("bad", asking(endpoint))
    for path in ("/elsewhere", "/large"):
        with pytest.raises(FetchFailed):
            fetch_body(issuer + path)


@pytest.mark.parametrize(
    "url", ["http://issuer.example/keys", "https://me:secret@issuer.example", "file:///etc/passwd", "https:"]
)
def test_an_address_that_is_not_safe_to_ask_is_refused(url: str) -> None:
    with pytest.raises(AlphaloomError, match="cannot be asked") as caught:
        check_url(url, "jwks")
    assert "secret" not in str(caught.value.record())
