"""The public keys of an OAuth server (a JWKS), from a file or an address, fetched again as they grow old."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...ledger.files import read_given
from .fetching import MAX_FETCH_BYTES, Unanswered, check_url, fetch_body

if TYPE_CHECKING:
    from jwt import PyJWK

KEY_KINDS = {"RS256": ("RSA", None), "ES256": ("EC", "P-256")}
"""The algorithms that are accepted, with the kind of key and curve of each. A secret shared with the issuer is none."""
Fetch = Callable[[], bytes]


@dataclass(frozen=True)
class KeyLifetimes:
    """How long keys are used, in seconds.

    After `fresh` they are fetched again; if that fails they are used until they are `keep` old. An unknown key id makes
    them be fetched too, but never sooner than `pause` after the last attempt, whatever was asked.
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
        """Return the key of an id for an algorithm; None if there is none, or none can be had."""
        now = self._ticks()
        if now - self._fetched_at > self._pace.fresh or (name, algorithm) not in self._keys:
            self._refresh(now, wait=(name, algorithm) not in self._keys or now - self._fetched_at > self._pace.keep)
        usable = now - self._fetched_at <= self._pace.keep
        return self._keys.get((name, algorithm)) if usable else None

    def _refresh(self, asked_at: float, *, wait: bool) -> None:
        """Fetch the keys in one thread, and not too often; the others wait only if the old keys do not do for them."""
        if not self._lock.acquire(blocking=wait):
            return
        try:
            if asked_at - self._tried_at >= self._pace.pause:
                self._tried_at = asked_at
                self._keys = read_keys(self._fetch())
                self._fetched_at = asked_at
        except (Unanswered, OSError, ValueError):
            pass  # the old ones stay
        finally:
            self._lock.release()


def read_keys(body: bytes) -> dict[tuple[str, str], PyJWK]:
    """Return the keys of a JWKS that may be used here, by id and algorithm; `ValueError` if it is no JWKS."""
    told = json.loads(body)
    keys = told.get("keys") if isinstance(told, dict) else None
    if type(keys) is not list:
        raise ValueError("this is no JWKS")
    found: dict[tuple[str, str], PyJWK] = {}
    for each in keys:
        for algorithm in KEY_KINDS:
            key = _parse_key(each, algorithm)
            if key is not None:
                found[str(each["kid"]), algorithm] = key
    return found


def _parse_key(told: Any, algorithm: str) -> PyJWK | None:
    """Return a key that signs with an algorithm; None for every other."""
    from jwt import PyJWK
    from jwt.exceptions import PyJWTError

    kind, curve = KEY_KINDS[algorithm]
    if not isinstance(told, dict) or not isinstance(told.get("kid"), str) or told.get("kty") != kind:
        return None
    fits = told.get("crv") == curve and told.get("use", "sig") == "sig" and told.get("alg", algorithm) == algorithm
    if not fits or "verify" not in told.get("key_ops", ["verify"]) or "d" in told:
        return None
    try:
        return PyJWK(told, algorithm)
    except (PyJWTError, ValueError, TypeError):
        return None
