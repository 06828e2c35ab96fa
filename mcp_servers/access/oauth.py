"""The file that says whose OAuth tokens are believed: by published keys, or by asking the server that gave them."""

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

MAX_ACCEPTED_CACHED, MAX_REFUSED_CACHED = 10_000, 1_000
"""Answers that are kept; a stranger, who can cause refusals only, displaces nobody's good one."""

AskServer = Callable[[str], bytes]


@dataclass(frozen=True)
class Protected:
    """What clients are told of who lets them in: the resource's own address, and its OAuth server (RFC 9728)."""

    resource: str
    issuer: str


def _url(text: str) -> str:
    try:
        return check_url(text, "url")
    except AlphaloomError as error:
        raise ValueError(f"must be {error.allowed}") from None


Url = Annotated[str, AfterValidator(_url)]


class IntrospectionSettings(BaseModel):
    """The endpoint that is asked about a token (RFC 7662), and as whom."""

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
                "The secret of the OAuth client is not set.", field="introspection.client_secret_env",
                got=self.client_secret_env, allowed="the name of an environment variable that holds it",
                hint=f"export {self.client_secret_env}=... before the servers start.", code="secret",
            )  # fmt: skip
        return IntrospectionEndpoint(self.url, self.client_id, secret)


class OAuth(BaseModel):
    """One OAuth server whose tokens are believed."""

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
    """Return what checks the tokens of the OAuth server that a file names, and what clients are told of it.

    Raises
    ------
    SettingsError
        Every mistake in the file at once.
    """
    told = read_settings(path, OAuth)
    trust = Trust(told.issuer, told.audience, told.leeway_seconds, told.as_of)
    protected = Protected(told.audience, told.issuer)
    if told.introspection is not None:
        return Introspection(trust, told.introspection.endpoint(), clock=clock), protected
    place = str(told.jwks)
    keys = KeySet.at(place if "://" in place else path.parent / place)
    return Jwts(trust, keys, clock=clock), protected


@dataclass(frozen=True)
class IntrospectionEndpoint:
    """Where to ask, and as whom; the secret is not shown."""

    url: str
    client_id: str
    client_secret: str = field(repr=False)

    def __call__(self, token: str) -> bytes:
        """Ask about a token."""
        form = {"token": token, "token_type_hint": "access_token"}
        return fetch_body(self.url, form, (self.client_id, self.client_secret))


class Introspection:
    """The verifier that asks. An answer holds for `seconds`, and so long may a token live on that was revoked there.

    While the other server fails (does not answer in time, or with 429 or 5xx) everybody is refused that it did not vouch
    for just now, and it is not asked again for `rest` seconds. Any other answer that does not vouch is about its token alone.
    """

    waits = True

    def __init__(
        self, trust: Trust, ask: AskServer, *, clock: Callable[[], datetime], seconds: float = 30.0, rest: float = 1.0
    ) -> None:
        if isinstance(ask, IntrospectionEndpoint):
            check_url(ask.url, "introspection")
        self._trust, self._ask, self._clock = trust, ask, clock
        self._keep, self._rest = timedelta(seconds=seconds), timedelta(seconds=rest)
        self._lock = threading.Lock()
        self._kept: OrderedDict[bytes, tuple[datetime, Caller]] = OrderedDict()
        self._refused: OrderedDict[bytes, datetime] = OrderedDict()
        self._rests_until: datetime | None = None

    def verify(self, bearer: str) -> Caller:
        """Return who a token names, by what its server says; tokens of our own are never sent there."""
        if len(bearer) > MAX_TOKEN_CHARS or bearer.startswith(TOKEN_PREFIX) or not bearer.isascii():
            raise TokenRefused("it is not of that server")
        now, name = self._clock(), hashlib.sha256(bearer.encode()).digest()
        known, caller = self._known(name, now)
        if not known:
            caller = self._asked(bearer, now)
            self._keep_answer(name, caller, now)
        if caller is None or (caller.expires is not None and now >= caller.expires):
            raise TokenRefused("its server does not vouch for it")
        return caller

    def _known(self, name: bytes, now: datetime) -> tuple[bool, Caller | None]:
        with self._lock:
            if (found := self._kept.get(name)) is not None and now < found[0]:
                return True, found[1]
            return now < self._refused.get(name, now), None

    def _keep_answer(self, name: bytes, caller: Caller | None, now: datetime) -> None:
        """Keep the newest answer; the oldest of its kind makes room."""
        until = now + self._keep
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

    def _asked(self, bearer: str, now: datetime) -> Caller | None:
        """Ask, and return who it is; None where the server says no or says it of somebody we do not trust."""
        if self._rests_until is not None and now < self._rests_until:
            raise TokenRefused("its server did not answer a moment ago")
        try:
            told: Any = json.loads(self._ask(bearer))
        except (ValueError, RecursionError):
            return None
        except (FetchFailed, OSError) as error:
            if isinstance(error, FetchFailed) and not error.failing:
                return None
            self._rests_until = now + self._rest
            raise TokenRefused(f"its server does not answer: {type(error).__name__}") from None
        if not isinstance(told, dict) or told.get("active") is not True:
            return None
        try:
            return build_caller(told, self._trust, now)
        except TokenRefused:
            return None
