"""What a token of somebody else's OAuth server says, as a caller of ours."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from ..errors import TokenRefused
from .scopes import Caller, is_scope

FIELDS_CLAIM, AS_OF_CLAIM = "alphaloom_fields", "alphaloom_as_of"
"""The claims of our own: a list of fields, and the last day that may be known, YYYY-MM-DD."""
MAX_SUBJECT_CHARS = 150
REQUIRED_CLAIMS = frozenset({"aud", "exp"})


@dataclass(frozen=True)
class Trust:
    """Whose tokens are believed, and how far.

    Parameters
    ----------
    issuer : str
        The OAuth server: what `iss` must be, to the letter.
    audience : str
        This server: what `aud` must be or hold.
    leeway_seconds : float
        How far clocks may differ, in seconds.
    as_of : date or None
        The last day that any caller may know, whatever a token says; None for no limit of this kind.
    """

    issuer: str
    audience: str
    leeway_seconds: float = 30.0
    as_of: date | None = None


def build_caller(
    claims: Mapping[str, Any], trust: Trust, now: datetime, needed: frozenset[str] = REQUIRED_CLAIMS
) -> Caller:
    """Return who a token names; scopes that are not ours are left out.

    Raises
    ------
    TokenRefused
        If it is another's, for another server, not valid now, or says something of ours that cannot be read.
    """
    for name in sorted(needed):
        if name not in claims:
            raise TokenRefused(f"the claim {name} is missing")
    if "iss" in claims and claims["iss"] != trust.issuer:
        raise TokenRefused("it is of another issuer")
    if trust.audience not in _texts(claims, "aud"):
        raise TokenRefused("it is for another server")
    expires = _check_lifetime(claims, trust, now)
    return Caller(_subject(claims), _scopes(claims), _fields(claims), _as_of(claims, trust), expires)


def _check_lifetime(claims: Mapping[str, Any], trust: Trust, now: datetime) -> datetime:
    """Return when a token ends; refuse it before its time and after it."""
    at, ends = now.timestamp(), _moment(claims, "exp")
    if at >= ends + trust.leeway_seconds:
        raise TokenRefused("it has expired")
    for name in ("nbf", "iat"):
        if name in claims and at < _moment(claims, name) - trust.leeway_seconds:
            raise TokenRefused(f"it is not valid yet ({name})")
    return datetime.fromtimestamp(ends + trust.leeway_seconds, UTC)


def _moment(claims: Mapping[str, Any], name: str) -> float:
    value = claims[name]
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0 <= value < 2**37
        or not math.isfinite(value)
    ):
        raise TokenRefused(f"the claim {name} is no time")
    return float(value)


def _subject(claims: Mapping[str, Any]) -> str:
    """Return the caller's id; the prefix keeps persons, programs and our own tokens apart, whatever they are called."""
    kind, name = (
        ("sub", claims["sub"]) if claims.get("sub") else ("client", claims.get("client_id") or claims.get("azp"))
    )
    if not isinstance(name, str) or not name.isprintable() or len(name) > MAX_SUBJECT_CHARS:
        raise TokenRefused("it names nobody")
    return f"oauth:{kind}:{name}"


def _fields(claims: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the fields that it may read, None for all: a list that names none is no way to say all."""
    if FIELDS_CLAIM not in claims:
        return None
    fields = frozenset(_texts(claims, FIELDS_CLAIM))
    if not fields:
        raise TokenRefused(f"the claim {FIELDS_CLAIM} names no field")
    return fields


def _scopes(claims: Mapping[str, Any]) -> frozenset[str]:
    """Return the scopes of ours, from `scope` (RFC 8693) or `scp` as some servers write it."""
    name = "scope" if "scope" in claims else "scp"
    found = claims.get(name, [])
    texts = found.split() if isinstance(found, str) else _texts(claims, name) if found else []
    return frozenset(text for text in texts if is_scope(text))


def _texts(claims: Mapping[str, Any], name: str) -> list[str]:
    value = claims.get(name)
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
        raise TokenRefused(f"the claim {name} is no list of texts")
    return texts


def _as_of(claims: Mapping[str, Any], trust: Trust) -> date | None:
    """Return the earlier of what the token and this server allow."""
    if AS_OF_CLAIM not in claims:
        return trust.as_of
    try:
        told = date.fromisoformat(claims[AS_OF_CLAIM])
    except (TypeError, ValueError):
        raise TokenRefused(f"the claim {AS_OF_CLAIM} is no day") from None
    return min(told, trust.as_of) if trust.as_of else told
