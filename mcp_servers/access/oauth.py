"""The file that says whose OAuth tokens are believed: by published keys, or by asking the server that gave them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from ...ledger import AlphaloomError, read_settings
from ..errors import SecretMissing
from .claims import Trust
from .fetching import check_url
from .introspection import Introspection, IntrospectionEndpoint
from .jwts import Jwts
from .keys import KeySet
from .verifier import TokenVerifier

__all__ = ["OAuth", "Protected", "read_oauth"]


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
            raise SecretMissing(
                "The secret of the OAuth client is not set.", field="introspection.client_secret_env",
                got=self.client_secret_env, allowed="the name of an environment variable that holds it",
                hint=f"export {self.client_secret_env}=... before the servers start.",
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
