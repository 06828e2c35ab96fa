"""Redis: what only a server has; a password is never shown, and a server that goes away is said."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from alphaloom.router.context import ContextCache
from alphaloom.router.context.redis_store import RedisStore, redact_address
from alphaloom.router.errors import Confidential, ContextError, StoreUnusable

from .redis_server import PASSWORD, QUOTED, RedisServer, free_port
from .texts import filing

KEY = "text:" + "0" * 64


def hidden(error: BaseException) -> bool:
    """Tell whether neither an error nor what it came from repeats a password."""
    chain = [error, error.__cause__, *([] if error.__suppress_context__ else [error.__context__])]
    return not any(word in f"{cause!r} {cause}" for cause in chain for word in ("hunter2", PASSWORD, QUOTED))


def test_a_wrong_password_is_said_and_not_shown(redis: RedisServer) -> None:
    with pytest.raises(StoreUnusable, match="refuses the user or the password") as caught:
        RedisStore(redis.by_tcp("hunter2"))
    assert hidden(caught.value)
    assert f"redis://127.0.0.1:{redis.port}/0" in str(caught.value)


def test_no_server_is_said_and_the_password_not_shown(redis: RedisServer) -> None:
    with pytest.raises(StoreUnusable, match="does not answer") as caught:
        RedisStore(f"redis://me:hunter2@127.0.0.1:{free_port()}/0")
    assert hidden(caught.value)
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    "address",
    ["http://me:hunter2@here/", "hunter2", "redis://me:hunter2/x@here:port/0", "redis://[hunter2", "redis://", ""],
)
def test_an_address_that_cannot_be_read_is_not_repeated(address: str) -> None:
    with pytest.raises(ContextError, match="cannot be read") as caught:
        redact_address(address)
    assert hidden(caught.value)


def test_an_address_is_shown_without_what_is_secret() -> None:
    assert (
        redact_address("rediss://me:hunter2@cache.example:6380/2?password=hunter2") == "rediss://cache.example:6380/2"
    )


def test_a_store_shows_no_password(redis: RedisServer) -> None:
    store = RedisStore(redis.by_tcp())
    assert repr(store) == f"RedisStore('redis://127.0.0.1:{redis.port}/0', namespace='alphaloom')"
    store.close()


def test_namespaces_do_not_meet(redis: RedisServer) -> None:
    one, other = (RedisStore(redis.address, namespace=name) for name in ("one", "other"))
    assert one.put(KEY, b"one")
    assert other.put(KEY, b"other")
    assert one.get(KEY) == b"one"
    assert other.trim(0) == 1
    assert one.get(KEY) == b"one"
    for each in (one, other):
        each.close()
    with pytest.raises(ContextError, match="namespace"):
        RedisStore(redis.address, namespace="a{b}")


def test_confidential_documents_go_to_a_server_of_ones_own_only(redis: RedisServer) -> None:
    store = RedisStore(redis.address, namespace="far")
    with pytest.raises(Confidential):
        ContextCache(store).add(filing(1), sensitivity="confidential")
    assert store.size().items == 0
    store.close()


def test_what_the_server_evicted_by_itself_is_taken_off_the_books(redis: RedisServer) -> None:
    store = RedisStore(redis.address, namespace="evicted")
    store.put(KEY, b"four")
    assert store._client.delete(f"{{evicted}}item:{KEY}") == 1
    assert store.get(KEY) is None
    assert store.size() == (0, 0)
    assert store.put(KEY, b"again")
    assert store.size() == (1, 5)
    store.close()


def test_more_than_a_hundred_items_are_trimmed(redis: RedisServer) -> None:
    store = RedisStore(redis.address, namespace="many")
    for number in range(250):
        store.put(f"text:{number:064x}", b"x" * 10)
    assert store.trim(100) == 240
    assert store.size() == (10, 100)
    assert store.get(f"text:{249:064x}") is not None
    store.close()


def test_a_server_that_comes_back_is_used_again(redis: RedisServer, tmp_path: Path) -> None:
    server = RedisServer(tmp_path, free_port())
    try:
        server.start()
        store = RedisStore(server.by_tcp())
        store.put(KEY, b"kept")
        server.stop()
        with pytest.raises(StoreUnusable, match="does not answer") as caught:
            store.get(KEY)
        assert hidden(caught.value)
        server.start()
        assert store.get(KEY) is None
        assert store.put(KEY, b"new")
        store.close()
    finally:
        server.stop()


def certificate(folder: Path) -> tuple[Path, Path]:
    """Return the files of a certificate for this machine, which vouches for itself, and of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(1), now + timedelta(1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "cert.pem", folder / "key.pem"
    paths[0].write_bytes(made.public_bytes(Encoding.PEM))
    paths[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return paths


def test_a_server_behind_tls_is_reached_if_its_certificate_holds(redis: RedisServer, tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    port = free_port()
    files = ["--tls-cert-file", str(cert), "--tls-key-file", str(key), "--tls-ca-cert-file", str(cert)]
    server = RedisServer(tmp_path, free_port(), ["--tls-port", str(port), *files, "--tls-auth-clients", "no"])
    try:
        server.start()
        address = f"rediss://:{QUOTED}@127.0.0.1:{port}/0"
        store = RedisStore(f"{address}?ssl_ca_certs={cert}")
        store.put(KEY, b"kept")
        assert store.get(KEY) == b"kept"
        assert str(cert) not in repr(store)
        store.close()
        with pytest.raises(StoreUnusable, match="does not answer") as caught:
            RedisStore(address)
        assert hidden(caught.value)
    finally:
        server.stop()


def test_without_the_library_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(
        StoreUnusable, match=r"pip install 'redis<9,>=6.4' \(in the checkout: pip install '.\[redis\]'\)"
    ):
        RedisStore("redis://127.0.0.1/0")
