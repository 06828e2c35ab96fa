"""The claims of an external OAuth server's token, as a caller."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from ..errors import TokenRefused
from .scopes import Caller, is_scope

FIELDS_CLAIM, AS_OF_CLAIM = "alphaloom_fields", "alphaloom_as_of"
"""Our own claims: a list of fields, and the last day that the caller may know, YYYY-MM-DD."""
MAX_SUBJECT_CHARS = 150
REQUIRED_CLAIMS = frozenset({"aud", "exp"})


@dataclass(frozen=True)
class Trust:
    """The trusted issuer, and the limits on its tokens.

    Parameters
    ----------
    issuer : str
        The OAuth server: the exact value of `iss`.
    audience : str
        This server: the value of `aud`, or one of its values.
    leeway_seconds : float
        Allowed difference between clocks, seconds.
    as_of : date or None
        The last day that any caller may know, whatever its token allows; None for no such limit.
    """

    issuer: str
    audience: str
    leeway_seconds: float = 30.0
    as_of: date | None = None


def build_caller(
    claims: Mapping[str, Any], trust: Trust, now: datetime, needed: frozenset[str] = REQUIRED_CLAIMS
) -> Caller:
    """Return the caller that a token names; unknown scopes are ignored.

    Raises
    ------
    TokenRefused
        If it is from another issuer, for another server, not valid now, or has an invalid claim.
    """
    for name in sorted(needed):
        if name not in claims:
            raise TokenRefused(f"the claim {name} is missing")
    if "iss" in claims and claims["iss"] != trust.issuer:
        raise TokenRefused("it is of another issuer")
    if trust.audience not in _read_texts(claims, "aud"):
        raise TokenRefused("it is for another server")
    expires = _check_lifetime(claims, trust, now)
    return Caller(
        _read_subject(claims), _read_scopes(claims), _read_fields(claims), _read_as_of(claims, trust), expires
    )


def _check_lifetime(claims: Mapping[str, Any], trust: Trust, now: datetime) -> datetime:
    """Return the end of a token, leeway included; refuse a token that has expired or is not valid yet."""
    at, ends = now.timestamp(), _read_moment(claims, "exp")
    if at >= ends + trust.leeway_seconds:
        raise TokenRefused("it has expired")
    for name in ("nbf", "iat"):
        if name in claims and at < _read_moment(claims, name) - trust.leeway_seconds:
            raise TokenRefused(f"it is not valid yet ({name})")
    return datetime.fromtimestamp(ends + trust.leeway_seconds, UTC)


def _read_moment(claims: Mapping[str, Any], name: str) -> float:
    value = claims[name]
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0 <= value < 2**37
        or not math.isfinite(value)
    ):
        raise TokenRefused(f"the claim {name} is no time")
    return float(value)


def _read_subject(claims: Mapping[str, Any]) -> str:
    """Return the caller's id; its prefix separates persons, programs and our own tokens with equal names."""
    kind, name = (
        ("sub", claims["sub"]) if claims.get("sub") else ("client", claims.get("client_id") or claims.get("azp"))
    )
    if not isinstance(name, str) or not name.isprintable() or len(name) > MAX_SUBJECT_CHARS:
        raise TokenRefused("it names nobody")
    return f"oauth:{kind}:{name}"


def _read_fields(claims: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the fields that the caller may read, None for all; an empty list is refused."""
    if FIELDS_CLAIM not in claims:
        return None
    fields = frozenset(_read_texts(claims, FIELDS_CLAIM))
    if not fields:
        raise TokenRefused(f"the claim {FIELDS_CLAIM} names no field")
    return fields


def _read_scopes(claims: Mapping[str, Any]) -> frozenset[str]:
    """Return the known scopes in `scope` (RFC 8693), or in `scp`, which some servers use."""
    name = "scope" if "scope" in claims else "scp"
    value = claims.get(name, [])
    texts = value.split() if isinstance(value, str) else _read_texts(claims, name) if value else []
    return frozenset(text for text in texts if is_scope(text))


def _read_texts(claims: Mapping[str, Any], name: str) -> list[str]:
    value = claims.get(name)
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise TokenRefused(f"the claim {name} is no list of texts")
    return texts


def _read_as_of(claims: Mapping[str, Any], trust: Trust) -> date | None:
    """Return the earlier last day of the token's and this server's."""
    if AS_OF_CLAIM not in claims:
        return trust.as_of
    try:
        day = date.fromisoformat(claims[AS_OF_CLAIM])
    except (TypeError, ValueError):
        raise TokenRefused(f"the claim {AS_OF_CLAIM} is no day") from None
    return min(day, trust.as_of) if trust.as_of else day
