"""The file of the trusted OAuth server: tokens are checked by its published keys, or by asking it (introspection)."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from ...ledger import AlphaloomError, read_settings
from ..errors import McpServerError, TokenRefused
from .claims import Trust, build_caller
from .fetching import FetchFailed, check_url, fetch_body
from .jwts import Jwts, KeySet
from .scopes import Caller
from .tokens import TOKEN_PREFIX, TokenVerifier

MAX_TOKEN_CHARS = 16_384
KEPT_FOR, REST = timedelta(seconds=30), timedelta(seconds=1)

MAX_ACCEPTED_CACHED, MAX_REFUSED_CACHED = 10_000, 1_000
"""Maximum cached answers; refusals have a limit of their own, so that strangers cannot displace accepted tokens."""

AskServer = Callable[[str], bytes]


@dataclass(frozen=True)
class Protected:
    """The metadata for clients (RFC 9728): the resource's own address, and its OAuth server."""

    resource: str
    issuer: str


def _require_url(text: str) -> str:
    try:
        return check_url(text, "url")
    except AlphaloomError as error:
        raise ValueError(f"must be {error.allowed}") from None


Url = Annotated[str, AfterValidator(_require_url)]


class IntrospectionSettings(BaseModel):
    """The introspection endpoint (RFC 7662), and the credentials for it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: Url
    client_id: str = Field(min_length=1)
    client_secret_env: str = Field(
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", description="NAME of the variable that holds it"
    )

    def endpoint(self) -> IntrospectionEndpoint:
        """Return the endpoint with its secret."""
        secret = os.environ.get(self.client_secret_env)
        if not secret:
            raise McpServerError(
                "The secret of the OAuth client is not set.",
                field="introspection.client_secret_env",
                got=self.client_secret_env,
                allowed="the name of an environment variable that holds it",
                hint=f"export {self.client_secret_env}=... before the servers start.",
                code="secret",
            )
        return IntrospectionEndpoint(self.url, self.client_id, secret)


class OAuth(BaseModel):
    """One trusted OAuth server."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    issuer: Url = Field(description="what iss must be, to the letter")
    audience: Url = Field(description="this server's address as clients know it: what aud must hold")
    jwks: str | None = Field(default=None, description="its published keys: an address, or a file")
    introspection: IntrospectionSettings | None = None
    leeway_seconds: float = Field(default=30.0, ge=0, le=300)
    as_of: date | None = Field(default=None, description="the last day that any of its callers may know")

    @model_validator(mode="after")
    def _check_one_method(self) -> OAuth:
        if (self.jwks is None) == (self.introspection is None):
            raise ValueError("name one of jwks and introspection")
        return self


def read_oauth(path: Path, clock: Callable[[], datetime]) -> tuple[TokenVerifier, Protected]:
    """Return the verifier for the OAuth server of a settings file, and its metadata for clients.

    Raises
    ------
    SettingsError
        With every mistake in the file.
    """
    settings = read_settings(path, OAuth)
    trust = Trust(settings.issuer, settings.audience, settings.leeway_seconds, settings.as_of)
    protected = Protected(settings.audience, settings.issuer)
    if settings.introspection is not None:
        return Introspection(trust, settings.introspection.endpoint(), clock=clock), protected
    place = str(settings.jwks)
    keys = KeySet.at(place if "://" in place else path.parent / place)
    return Jwts(trust, keys, clock=clock), protected


@dataclass(frozen=True)
class IntrospectionEndpoint:
    """The endpoint's address and our credentials; the secret is left out of the representation."""

    url: str
    client_id: str
    client_secret: str = field(repr=False)

    def __call__(self, token: str) -> bytes:
        """Ask about a token."""
        form = {"token": token, "token_type_hint": "access_token"}
        return fetch_body(self.url, form, (self.client_id, self.client_secret))


class Introspection:
    """Verifies tokens by introspection. An answer is cached for `KEPT_FOR`, so a revoked token stays valid that long.

    While the other server fails (no answer in time, 408, 429 or 5xx), tokens without a cached answer are refused, and
    it is not asked again for `REST`. Any other answer that does not confirm a token concerns that token only.
    """

    waits = True

    def __init__(self, trust: Trust, ask: AskServer, *, clock: Callable[[], datetime]) -> None:
        if isinstance(ask, IntrospectionEndpoint):
            check_url(ask.url, "introspection")
        self._trust, self._ask, self._clock = trust, ask, clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[bytes, tuple[datetime, Caller]] = OrderedDict()
        self._refused: OrderedDict[bytes, datetime] = OrderedDict()
        self._rests_until: datetime | None = None

    def verify(self, bearer: str) -> Caller:
        """Return the caller of a token as its server confirms it; our own tokens are never sent there."""
        if len(bearer) > MAX_TOKEN_CHARS or bearer.startswith(TOKEN_PREFIX) or not bearer.isascii():
            raise TokenRefused("it is not of that server")
        now, name = self._clock(), hashlib.sha256(bearer.encode()).digest()
        known, caller = self._recall(name, now)
        if not known:
            caller = self._ask_server(bearer, now)
            self._keep_answer(name, caller, now)
        if caller is None or (caller.expires is not None and now >= caller.expires):
            raise TokenRefused("its server does not vouch for it")
        return caller

    def _recall(self, name: bytes, now: datetime) -> tuple[bool, Caller | None]:
        with self._lock:
            if (answer := self._kept.get(name)) is not None and now < answer[0]:
                return True, answer[1]
            return now < self._refused.get(name, now), None

    def _keep_answer(self, name: bytes, caller: Caller | None, now: datetime) -> None:
        """Cache an answer; the oldest ones beyond the limit of their kind are dropped."""
        until = now + KEPT_FOR
        with self._lock:
            self._kept.pop(name, None)
            self._refused.pop(name, None)
            if caller is None:
                self._refused[name] = until
                while len(self._refused) > MAX_REFUSED_CACHED:
                    self._refused.popitem(last=False)
            else:
                self._kept[name] = (until, caller)
                while len(self._kept) > MAX_ACCEPTED_CACHED:
                    self._kept.popitem(last=False)

    def _ask_server(self, bearer: str, now: datetime) -> Caller | None:
        """Ask the server, and return the caller; None where it denies the token, or its claims are refused."""
        if self._rests_until is not None and now < self._rests_until:
            raise TokenRefused("its server did not answer a moment ago")
        try:
            answer: Any = json.loads(self._ask(bearer))
        except (ValueError, RecursionError):
            return None
        except (FetchFailed, OSError) as error:
            if isinstance(error, FetchFailed) and not error.failing:
                return None
            self._rests_until = now + REST
            raise TokenRefused(f"its server does not answer: {type(error).__name__}") from None
        if not isinstance(answer, dict) or answer.get("active") is not True:
            return None
        try:
            return build_caller(answer, self._trust, now)
        except TokenRefused:
            return None
