"""Bearer tokens of our own: creation, revocation and verification.

A secret has 256 random bits, so its plain SHA-256 can be stored: it cannot be guessed. Salt or scrypt, which slow down
the guessing of passwords, would only make every call slower.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import secrets
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Annotated, Any, Protocol

import yaml
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from ...ledger import AlphaloomError, Mistake, SettingsError
from ...ledger.database import wait_for_lock
from ...ledger.files import QuotingDumper, mistakes_error, parse_settings, write_whole
from ..errors import McpServerError, TokenRefused
from .private_file import FileSignature, lock_path, read_guarded
from .scopes import Caller, parse_scope

TOKEN_PREFIX = "alt_"

MAX_OWN_TOKEN_CHARS = 4_096
"""Maximum characters of a bearer token that are read."""

SECRET_BYTES = 32

LOG = logging.getLogger(__name__)
TOKEN_FILE_HEADER = (
    "# Bearer tokens of the MCP servers and of the models' gate; written by `alphaloom token create` and `revoke`, "
    "which leave out other comments.\n"
    "# No secret is in here: sha256 is the digest of the whole token. A token is accepted to the end of its last day, "
    "UTC.\n"
)
TENANT_PATTERN = r"^([A-Za-z0-9][A-Za-z0-9._-]{0,63})?$"
"""Allowed names of tenants, which appear in metrics and in messages."""
_SECRET = re.compile(r"alt_[0-9A-Za-z]+_[\w-]{8,}")


def _check_note(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be one line of visible characters")
    if _SECRET.search(text):
        raise ValueError("must not hold a token")
    return text


def _check_not_empty(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names:
        raise ValueError("must name at least one")
    return names


Scopes = Annotated[tuple[Annotated[str, AfterValidator(parse_scope)], ...], AfterValidator(_check_not_empty)]
Fields = Annotated[tuple[Annotated[str, Field(min_length=1, max_length=100)], ...], AfterValidator(_check_not_empty)]


class TokenEntry(BaseModel):
    """One token."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[str, Field(pattern=r"^[0-9a-f]{8}$")]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    scopes: Scopes
    fields: Fields | None = None
    as_of: date | None = None
    created: AwareDatetime
    expires: Annotated[date, Field(lt=date(3000, 1, 1))]
    revoked: AwareDatetime | None = None
    note: Annotated[str, Field(max_length=200), AfterValidator(_check_note)] = ""
    tenant: Annotated[str, Field(pattern=TENANT_PATTERN)] = ""


class _Tokens(BaseModel):
    """The whole file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tokens: tuple[TokenEntry, ...] = ()

    @model_validator(mode="after")
    def _check_apart(self) -> _Tokens:
        for name in ("id", "sha256"):
            values = [getattr(entry, name) for entry in self.tokens]
            if len(set(values)) < len(values):
                raise ValueError(f"two tokens have the same {name}")
        return self


def read_entries(path: Path) -> tuple[tuple[TokenEntry, ...], FileSignature]:
    """Read the file.

    Raises
    ------
    SettingsError
        With every mistake: access by other users, unknown keys, wrong values. A secret in a wrong place is not
        repeated.
    """
    missing = SettingsError(
        f"there is no file of tokens {path}", field=str(path), hint="alphaloom token create makes one."
    )
    file, signature = read_guarded(path, _Tokens, _redact_mistake, missing)
    return file.tokens, signature


def write_entries(path: Path, entries: Sequence[TokenEntry]) -> None:
    """Write the file, whole or not at all, readable by its owner only."""
    rows = [entry.model_dump(mode="json", exclude_none=True, exclude_defaults=True) for entry in entries]
    body = TOKEN_FILE_HEADER + str(
        yaml.dump({"tokens": rows}, Dumper=QuotingDumper, sort_keys=False, allow_unicode=True, width=1000)
    )
    write_whole(path, body.encode(), mode=0o600)


def check_entry(members: dict[str, Any]) -> TokenEntry:
    """Return a new entry; `SettingsError` with every mistake of it."""
    body = str(yaml.dump(members, Dumper=QuotingDumper, sort_keys=False, allow_unicode=True))
    try:
        return parse_settings(body, TokenEntry, "the new token")
    except SettingsError as error:
        raise mistakes_error(
            "the new token", [_redact_mistake(replace(mistake, line=None)) for mistake in error.mistakes]
        ) from None


def _redact_mistake(mistake: Mistake) -> Mistake:
    """Return a mistake without a possible secret in a wrong place."""
    if mistake.field.endswith("sha256"):
        return replace(mistake, message="must be a SHA-256 in hex, 64 digits from 0-9a-f", got=None)
    value = None if _SECRET.search(str(mistake.got)) else mistake.got
    return replace(mistake, message=_SECRET.sub("(a token)", mistake.message), got=value)


@dataclass(frozen=True)
class Grant:
    """The rights of a new token; `expires` is its last day, UTC."""

    scopes: tuple[str, ...]
    expires: date
    as_of: date | None = None
    fields: tuple[str, ...] | None = None
    note: str = ""
    tenant: str = ""


@dataclass(frozen=True)
class Issued:
    """A new token: its entry in the file, and the token itself, which is stored nowhere."""

    entry: TokenEntry
    token: str

    def __repr__(self) -> str:
        """Return the id without the token, since representations end up in logs."""
        return f"Issued({self.entry.id})"


def create_token(path: Path, grant: Grant, *, now: datetime) -> Issued:
    """Create a token, and write its entry into the file, which is created if missing.

    Raises
    ------
    SettingsError
        With every mistake in the grant, or in the file.
    """
    if grant.expires < now.astimezone(UTC).date():
        wrong = Mistake("expires", f"this day is over, got {grant.expires}", None, str(grant.expires), "today or later")
        raise mistakes_error("the new token", [wrong])
    with wait_for_lock(lock_path(path)):
        entries = read_entries(path)[0] if path.exists() else ()
        ids = {entry.id for entry in entries}
        name = next(name for name in iter(lambda: secrets.token_hex(4), "") if name not in ids)
        token = f"{TOKEN_PREFIX}{name}_{secrets.token_urlsafe(SECRET_BYTES)}"
        entry = check_entry(
            {
                "id": name,
                "sha256": _digest(token),
                "scopes": list(dict.fromkeys(grant.scopes)),
                "fields": list(dict.fromkeys(grant.fields)) if grant.fields is not None else None,
                "as_of": grant.as_of.isoformat() if grant.as_of else None,
                "created": _format_second(now),
                "expires": grant.expires.isoformat(),
                "note": grant.note,
                "tenant": grant.tenant,
            }
        )
        write_entries(path, [*entries, entry])
    return Issued(entry, token)


def revoke_token(path: Path, name: str, *, now: datetime) -> tuple[TokenEntry, bool]:
    """Revoke a token permanently; return its entry, and whether it was revoked just now.

    Raises
    ------
    McpServerError
        If the file has no token of this id.
    SettingsError
        If the file cannot be used.
    """
    read_entries(path)  # fails without a file, before a lock is created
    with wait_for_lock(lock_path(path)):
        entries = list(read_entries(path)[0])
        place = next((index for index, entry in enumerate(entries) if entry.id == name), None)
        if place is None:
            raise McpServerError(
                "No token has this id.",
                field="ID",
                got=name if len(name) <= 8 else None,
                allowed=[entry.id for entry in entries],
                hint="An id is the part of a token after alt_, never the token.",
                code="unknown_token",
            )
        if entries[place].revoked is not None:
            return entries[place], False
        entries[place] = TokenEntry.model_validate({**entries[place].model_dump(), "revoked": _format_second(now)})
        write_entries(path, entries)
    return entries[place], True


def list_tokens(path: Path) -> tuple[TokenEntry, ...]:
    """Return the tokens of a file, expired and revoked ones included."""
    return read_entries(path)[0]


def find_expiry(entry: TokenEntry) -> datetime:
    """Return the first moment at which a token is refused."""
    return datetime.combine(entry.expires, time(), UTC) + timedelta(days=1)


def describe_token_status(entry: TokenEntry, now: datetime) -> str:
    """Return "live", "expired" or "revoked"."""
    if entry.revoked is not None:
        return "revoked"
    return "live" if now < find_expiry(entry) else "expired"


@dataclass(frozen=True, slots=True)
class _KnownToken:
    """A token's digest and validity, and its caller."""

    sha256: str
    ends: datetime
    revoked: bool
    caller: Caller

    @classmethod
    def of(cls, entry: TokenEntry) -> _KnownToken:
        fields = frozenset(entry.fields) if entry.fields is not None else None
        caller = Caller(entry.id, frozenset(entry.scopes), fields, entry.as_of, find_expiry(entry), entry.tenant)
        return cls(entry.sha256, find_expiry(entry), entry.revoked is not None, caller)


class Tokens:
    """The tokens of a file, which is read again when it changes, so that a revoked token is refused with the next call.

    While the file is invalid, every token is refused; `problem` has the reason, which is logged once.
    """

    waits = False

    def __init__(self, path: Path, clock: Callable[[], datetime]) -> None:
        self._path, self._clock = path, clock
        self._lock = threading.Lock()
        self._read: tuple[FileSignature | None, tuple[_KnownToken, ...]] = (None, ())
        self.problem: AlphaloomError | None = None

    @classmethod
    def open(cls, path: Path, *, clock: Callable[[], datetime]) -> Tokens:
        """Read a file of tokens; raise `SettingsError` with every mistake in it."""
        tokens = cls(path, clock)
        tokens._read_current()
        if tokens.problem is not None:
            raise tokens.problem
        return tokens

    def verify(self, bearer: str) -> Caller:
        """Return the caller of a token.

        The token is compared with all tokens of the file, in constant time, and all checks are made for each. So an
        unknown, malformed, expired or revoked token takes the same work and gets the same refusal.
        """
        digest, now = _digest(bearer[:MAX_OWN_TOKEN_CHARS]), self._clock()
        caller: Caller | None = None
        for known in self._read_current():
            same = hmac.compare_digest(digest, known.sha256)
            live = (now < known.ends) & (not known.revoked)
            caller = (caller, known.caller)[same & live]
        if caller is None:
            raise TokenRefused(str(self.problem) if self.problem else "unknown, expired or revoked")
        return caller

    def _read_current(self) -> tuple[_KnownToken, ...]:
        """Return the file's current tokens."""
        signature, entries = self._read
        if signature is not None and signature == self._read_signature():
            return entries
        with self._lock:
            signature, entries = self._read
            if signature is None or signature != self._read_signature():
                self._read = self._read_again()
            return self._read[1]

    def _read_signature(self) -> FileSignature | None:
        try:
            return FileSignature.of(self._path.stat())
        except OSError:
            return None

    def _read_again(self) -> tuple[FileSignature | None, tuple[_KnownToken, ...]]:
        try:
            entries, signature = read_entries(self._path)
        except SettingsError as error:
            if str(error) != str(self.problem):
                LOG.warning("no token of this file is accepted any more: %s", error)
            self.problem = error
            return None, ()
        self.problem = None
        return signature, tuple(_KnownToken.of(entry) for entry in entries)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _format_second(now: datetime) -> str:
    return now.astimezone(UTC).isoformat(timespec="seconds")


class TokenVerifier(Protocol):
    """Returns the caller of a bearer token. It may be used from several threads."""

    @property
    def waits(self) -> bool:
        """Whether it may wait for the network, so that an event loop must call it in a thread."""

    def verify(self, bearer: str) -> Caller:
        """Return the caller of a token; raise `TokenRefused`, always with the same message, if it is not accepted."""


class AnyOf:
    """Several verifiers in turn: the first that accepts a token names the caller."""

    def __init__(self, verifiers: Sequence[TokenVerifier]) -> None:
        self._verifiers = tuple(verifiers)

    @property
    def waits(self) -> bool:
        """Whether one of them may wait for the network."""
        return any(verifier.waits for verifier in self._verifiers)

    def verify(self, bearer: str) -> Caller:
        """Return the caller of a token; raise `TokenRefused` if no verifier accepts it."""
        for verifier in self._verifiers:
            with suppress(TokenRefused):
                return verifier.verify(bearer)
        raise TokenRefused("no verifier accepts it")
