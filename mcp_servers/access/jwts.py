"""Signed tokens (JWT) of somebody else's OAuth server, checked here against its published keys.

PyJWT and cryptography do it, which the MCP library brings anyway. RS256 and ES256 only: `none` and secrets shared with
the issuer (HS256) are refused, and a key is used for the algorithm of its own kind only, whatever a token says.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

from ..errors import TokenRefused
from .caller import Caller
from .claims import REQUIRED_CLAIMS, Trust, caller_of
from .keys import KEY_KINDS, KeySet

MAX_TOKEN_CHARS = 16_384
TOKEN_TYPES = {"jwt", "at+jwt", "application/at+jwt"}


class Jwts:
    """The verifier of signed tokens."""

    waits = True

    def __init__(self, trust: Trust, keys: KeySet, *, clock: Callable[[], datetime]) -> None:
        self._trust, self._keys, self._clock = trust, keys, clock

    def verify(self, bearer: str) -> Caller:
        """Return who a signed token names; `TokenRefused` if it is not signed, not ours to believe, or not valid now."""
        return caller_of(self._claims(bearer), self._trust, self._clock(), REQUIRED_CLAIMS | {"iss"})

    def _claims(self, bearer: str) -> dict[str, Any]:
        """Return what a token says, after its signature was found good."""
        from jwt import PyJWS
        from jwt.exceptions import PyJWTError

        if len(bearer) > MAX_TOKEN_CHARS or bearer.count(".") != 2 or not bearer.isascii():
            raise TokenRefused("it is no signed token")
        signer = PyJWS(algorithms=list(KEY_KINDS), options={"enforce_minimum_key_length": True})
        try:
            key, algorithm = self._key(signer.get_unverified_header(bearer))
            claims = json.loads(signer.decode(bearer, key, algorithms=[algorithm]), parse_constant=_refuse)
        except (PyJWTError, ValueError, TypeError, RecursionError) as error:
            raise TokenRefused(f"its signature cannot be checked: {type(error).__name__}") from None
        if not isinstance(claims, dict):
            raise TokenRefused("it says nothing")
        return claims

    def _key(self, header: dict[str, Any]) -> tuple[Any, str]:
        """Return the key that a token names, and the algorithm; addresses and keys in the token itself are not used."""
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
