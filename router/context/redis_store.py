"""A store in a Redis server, for processes on several machines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from ...extras import install_hint
from ..errors import ContextError, StoreUnusable
from .store import Size, StorePlace, check_key

_NAMESPACE = re.compile(r"[A-Za-z0-9_.-]{1,64}")

# KEYS: the item, the order of use, the sizes, the counters. An item that the server itself evicted is removed from the
# last three when a read misses it. Redis runs scripts one at a time, so each is atomic.
_GONE = """
local function gone(key)
  local size = redis.call('HGET', KEYS[3], key)
  if size then redis.call('HDEL', KEYS[3], key); redis.call('HINCRBY', KEYS[4], 'bytes', 0 - size) end  -- minus 0 is -0
  redis.call('ZREM', KEYS[2], key)
end
"""
_GET = (
    _GONE
    + """
local body = redis.call('GET', KEYS[1])
if not body then gone(KEYS[1]); return false end
if redis.call('HEXISTS', KEYS[3], KEYS[1]) == 1 then
  redis.call('ZADD', KEYS[2], redis.call('HINCRBY', KEYS[4], 'use', 1), KEYS[1])
end
return body
"""
)
_PUT = (
    _GONE
    + """
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
gone(KEYS[1])
redis.call('SET', KEYS[1], ARGV[1])
if ARGV[2] == '0' then
  redis.call('HSET', KEYS[3], KEYS[1], #ARGV[1])
  redis.call('HINCRBY', KEYS[4], 'bytes', #ARGV[1])
  redis.call('ZADD', KEYS[2], redis.call('HINCRBY', KEYS[4], 'use', 1), KEYS[1])
end
return 1
"""
)
_DROP = _GONE + "gone(KEYS[1]); redis.call('DEL', KEYS[1])"
_TRIM = (
    _GONE
    + """
local count = 0
while count < 100 and tonumber(redis.call('HGET', KEYS[4], 'bytes') or '0') > tonumber(ARGV[1]) do
  local oldest = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
  if not oldest then break end
  gone(oldest); redis.call('DEL', oldest); count = count + 1
end
return count
"""
)
_LEASE = """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""
_RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end"
_SCRIPTS = {"get": _GET, "put": _PUT, "drop": _DROP, "trim": _TRIM, "lease": _LEASE, "release": _RELEASE}


class RedisStore:
    """A store in Redis or Valkey; leases run on the server's clock.

    Every key begins with `{namespace}`, so that all keys are in one slot of a cluster and apart from other users' keys.
    Every client that may write to the namespace is trusted with the cached values.

    Parameters
    ----------
    url : str
        redis://USER:PASSWORD@HOST:PORT/DATABASE; rediss:// for TLS, unix:// for a socket. The password is never shown.
    namespace : str
        Letters, digits, dots, dashes and underscores.
    place : "local" or "remote"
        "local" for a server on machines of your own, as with models; confidential documents are stored there only.
    timeout_s : float
        Timeout of a request, seconds.

    Raises
    ------
    StoreUnusable
        If redis-py is not installed, or no server answers.
    ContextError
        If the address or the namespace is invalid.
    """

    def __init__(
        self, url: str, *, namespace: str = "alphaloom", place: StorePlace = "remote", timeout_s: float = 10.0
    ) -> None:
        if not _NAMESPACE.fullmatch(namespace):
            raise ContextError(
                "a namespace is 1 to 64 plain signs", field="namespace", got=namespace, allowed="A-Z a-z 0-9 _ . -"
            )
        self.address, self.place = redact_address(url), place
        self._base = f"{{{namespace}}}"
        self._redis = driver()
        try:
            self._client = self._redis.Redis.from_url(url, socket_timeout=timeout_s, socket_connect_timeout=timeout_s)
            self._scripts = {name: self._client.register_script(text) for name, text in _SCRIPTS.items()}
        except (ValueError, TypeError):
            raise _build_address_error() from None
        self._client.connection_pool.connection_kwargs["decode_responses"] = False  # even if the address sets it
        try:
            with self._explain_errors():
                self._client.ping()
        except BaseException:
            self._client.close()
            raise

    def __repr__(self) -> str:
        """Return the address without a password."""
        return f"RedisStore({self.address!r}, namespace={self._base[1:-1]!r})"

    def get(self, key: str) -> bytes | None:
        """Return the bytes of a key, or None, and note the use."""
        body = self._run("get", key)
        return None if body is None else bytes(body)

    def put(self, key: str, body: bytes, *, pinned: bool = False) -> bool:
        """Store bytes under a key unless it has some; return whether they were stored."""
        return bool(self._run("put", key, body, int(pinned)))

    def drop(self, key: str) -> None:
        """Delete the bytes of a key."""
        self._run("drop", key)

    def size(self) -> Size:
        """Return the size without pinned items."""
        with self._explain_errors():
            books = self._client.pipeline().hlen(f"{self._base}sizes").hget(f"{self._base}books", "bytes").execute()
        return Size(int(books[0]), int(books[1] or 0))

    def trim(self, most_bytes: int) -> int:
        """Delete the least recently used items, a hundred per script, so that other clients are served in between."""
        total = 0
        while True:
            deleted = int(self._run("trim", None, most_bytes))
            total += deleted
            if deleted < 100:
                return total

    def lease(self, key: str, owner: str, seconds: float) -> bool:
        """Take or prolong a lease."""
        return bool(self._run("lease", key, owner, max(1, round(seconds * 1000)), kind="lease"))

    def release(self, key: str, owner: str) -> None:
        """Release a lease, if this owner has it."""
        self._run("release", key, owner, kind="lease")

    def close(self) -> None:
        """Close the connections; a second call does nothing."""
        self._client.close()

    def _run(self, script: str, key: str | None, *values: bytes | str | int, kind: str = "item") -> Any:
        """Run a script on one key and the three bookkeeping keys."""
        name = f"{self._base}{kind}:{check_key(key)}" if key is not None else f"{self._base}none"
        keys = [name, *(f"{self._base}{book}" for book in ("used", "sizes", "books"))]
        with self._explain_errors():
            return self._scripts[script](keys=keys, args=values)

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Translate the library's errors; their text is left out, since it may repeat the address or the user."""
        try:
            yield
        except self._redis.RedisError as error:
            kind, hint = _explain_error(type(error).__name__)
            raise StoreUnusable(f"the context cache at {self.address} {kind}", field="context", hint=hint) from None


def driver() -> Any:
    """Return the module redis.

    Raises
    ------
    StoreUnusable
        If it is not installed.
    """
    try:
        import redis
    except ImportError:
        raise StoreUnusable(
            "a context cache in Redis needs redis-py", field="context", hint=f"Install it: {install_hint('redis')}"
        ) from None
    return redis


def redact_address(url: str) -> str:
    """Return an address without user, password and options.

    Raises
    ------
    ContextError
        If it is invalid. The error does not repeat it, since it may contain a secret.
    """
    try:
        parts = urlsplit(url)
        where = f"{parts.hostname or ''}:{parts.port}" if parts.port else parts.hostname or ""
    except ValueError:
        raise _build_address_error() from None
    if parts.scheme not in ("redis", "rediss", "unix") or not (where or parts.path):
        raise _build_address_error()
    return f"{parts.scheme}://{where}{parts.path}"


def _build_address_error() -> ContextError:
    return ContextError(
        "the address of the context cache cannot be read",
        field="context",
        allowed="redis://HOST:PORT/DATABASE, rediss:// or unix://PATH; signs of a password percent-encoded",
    )


def _explain_error(name: str) -> tuple[str, str]:
    """Return the meaning of an error class, and the hint."""
    if "Auth" in name or name == "NoPermissionError":
        return "refuses the user or the password", "Mend the address, or the rights of its user."
    if name == "TimeoutError":
        return "does not answer in time", "See whether the server is up, or give it more time."
    if name in ("ConnectionError", "BusyLoadingError"):
        return "does not answer", "Start the server, or mend the address."
    if name == "OutOfMemoryError":
        return "has no memory left", "Give the server more, or trim the cache."
    return f"failed ({name})", "The server's log says more."
