"""Signed tokens (JWT) of an external OAuth server, checked here against its published keys.

The check uses PyJWT and cryptography, which the MCP library needs anyway. RS256 and ES256 only: `none` and secrets
shared with the issuer (HS256) are refused, and a key is used only for the algorithm of its own kind, whatever a token
says.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...ledger.files import read_given
from ..errors import TokenRefused
from .claims import REQUIRED_CLAIMS, Trust, build_caller
from .fetching import MAX_FETCH_BYTES, FetchFailed, check_url, fetch_body
from .scopes import Caller

if TYPE_CHECKING:
    from jwt import PyJWK

MAX_TOKEN_CHARS = 16_384

TOKEN_TYPES = {"jwt", "at+jwt", "application/at+jwt"}

KEY_KINDS = {"RS256": ("RSA", None), "ES256": ("EC", "P-256")}
"""The accepted algorithms, with the key type and curve of each; none with a secret shared with the issuer."""

Fetch = Callable[[], bytes]


class Jwts:
    """The verifier of signed tokens."""

    waits = True

    def __init__(self, trust: Trust, keys: KeySet, *, clock: Callable[[], datetime]) -> None:
        self._trust, self._keys, self._clock = trust, keys, clock

    def verify(self, bearer: str) -> Caller:
        """Return the caller of a signed token; raise `TokenRefused` if it is unsigned, untrusted or not valid now."""
        return build_caller(self._read_claims(bearer), self._trust, self._clock(), REQUIRED_CLAIMS | {"iss"})

    def _read_claims(self, bearer: str) -> dict[str, Any]:
        """Check the signature of a token, and return its claims."""
        from jwt import PyJWS
        from jwt.exceptions import PyJWTError

        if len(bearer) > MAX_TOKEN_CHARS or bearer.count(".") != 2 or not bearer.isascii():
            raise TokenRefused("it is no signed token")
        signer = PyJWS(algorithms=list(KEY_KINDS), options={"enforce_minimum_key_length": True})
        try:
            key, algorithm = self._find_key(signer.get_unverified_header(bearer))
            claims = json.loads(signer.decode(bearer, key, algorithms=[algorithm]), parse_constant=_refuse)
        except (PyJWTError, ValueError, TypeError, RecursionError) as error:
            raise TokenRefused(f"its signature cannot be checked: {type(error).__name__}") from None
        if not isinstance(claims, dict):
            raise TokenRefused("it says nothing")
        return claims

    def _find_key(self, header: dict[str, Any]) -> tuple[Any, str]:
        """Return the key that a token names, and the algorithm; addresses and keys inside the token are ignored."""
        algorithm, name = header.get("alg"), header.get("kid")
        if (
            algorithm not in KEY_KINDS
            or not isinstance(name, str)
            or str(header.get("typ", "jwt")).lower() not in TOKEN_TYPES
        ):
            raise TokenRefused("it is signed in a way that is not accepted")
        key = self._keys.key(name, algorithm)
        if key is None:
            raise TokenRefused("its key is not known")
        return key, algorithm


def _refuse(constant: str) -> None:
    raise ValueError(constant)


@dataclass(frozen=True)
class KeyLifetimes:
    """Lifetimes of keys, in seconds.

    Keys older than `fresh` are fetched again; if that fails, they are used until they are older than `keep`. An unknown
    key id also causes a fetch, but no attempt comes sooner than `pause` after the last one.
    """

    fresh: float = 300.0
    keep: float = 3_600.0
    pause: float = 60.0


class KeySet:
    """The keys that an OAuth server signs with, by their ids."""

    def __init__(
        self, fetch: Fetch, pace: KeyLifetimes | None = None, ticks: Callable[[], float] = time.monotonic
    ) -> None:
        self._fetch, self._pace, self._ticks = fetch, pace or KeyLifetimes(), ticks
        self._lock = threading.Lock()
        self._keys: dict[tuple[str, str], PyJWK] = {}
        self._fetched_at = self._tried_at = -float("inf")

    @classmethod
    def at(cls, place: str | Path, pace: KeyLifetimes | None = None) -> KeySet:
        """Return the keys of a JWKS file, or at an address (https)."""
        if isinstance(place, Path) or "://" not in place:
            return cls(lambda: read_given(Path(place), MAX_FETCH_BYTES), pace)
        url = check_url(place, "jwks")
        return cls(lambda: fetch_body(url), pace)

    def key(self, name: str, algorithm: str) -> PyJWK | None:
        """Return the key of an id for an algorithm; None if there is none, or the keys cannot be fetched."""
        now = self._ticks()
        if now - self._fetched_at > self._pace.fresh or (name, algorithm) not in self._keys:
            self._refresh(now, wait=(name, algorithm) not in self._keys or now - self._fetched_at > self._pace.keep)
        usable = now - self._fetched_at <= self._pace.keep
        return self._keys.get((name, algorithm)) if usable else None

    def _refresh(self, asked_at: float, *, wait: bool) -> None:
        """Fetch the keys in one thread, not too often; other threads wait only if the old keys do not suffice."""
        if not self._lock.acquire(blocking=wait):
            return
        try:
            if asked_at - self._tried_at >= self._pace.pause:
                self._tried_at = asked_at
                self._keys = read_keys(self._fetch())
                self._fetched_at = asked_at
        except (FetchFailed, OSError, ValueError):
            pass  # keep the old keys
        finally:
            self._lock.release()


def read_keys(body: bytes) -> dict[tuple[str, str], PyJWK]:
    """Return the usable keys of a JWKS, by id and algorithm; raise `ValueError` if it is no JWKS."""
    document = json.loads(body)
    keys = document.get("keys") if isinstance(document, dict) else None
    if type(keys) is not list:
        raise ValueError("this is no JWKS")
    parsed: dict[tuple[str, str], PyJWK] = {}
    for entry in keys:
        for algorithm in KEY_KINDS:
            key = _parse_key(entry, algorithm)
            if key is not None:
                parsed[str(entry["kid"]), algorithm] = key
    return parsed


def _parse_key(entry: Any, algorithm: str) -> PyJWK | None:
    """Return a key for signatures with an algorithm; None for any other entry."""
    from jwt import PyJWK
    from jwt.exceptions import PyJWTError

    kind, curve = KEY_KINDS[algorithm]
    if not isinstance(entry, dict) or not isinstance(entry.get("kid"), str) or entry.get("kty") != kind:
        return None
    fits = entry.get("crv") == curve and entry.get("use", "sig") == "sig" and entry.get("alg", algorithm) == algorithm
    if not fits or "verify" not in entry.get("key_ops", ["verify"]) or "d" in entry:
        return None
    try:
        return PyJWK(entry, algorithm)
    except (PyJWTError, ValueError, TypeError):
        return None
