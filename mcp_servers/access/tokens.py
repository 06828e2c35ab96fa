"""Bearer tokens of our own: made, revoked and recognised."""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Protocol

from ...ledger import AlphaloomError, Mistake, SettingsError
from ...ledger.database import wait_for_lock
from ...ledger.files import mistakes_error
from ..errors import McpServerError, TokenRefused
from .scopes import Caller
from .token_file import FileSignature, TokenEntry, check_entry, read_entries, write_entries

TOKEN_PREFIX = "alt_"

MAX_OWN_TOKEN_CHARS = 4_096
"""Characters of a bearer token that are looked at."""

SECRET_BYTES = 32

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Grant:
    """What a new token shall allow; `expires` is its last day, UTC."""

    scopes: tuple[str, ...]
    expires: date
    as_of: date | None = None
    fields: tuple[str, ...] | None = None
    note: str = ""
    tenant: str = ""


@dataclass(frozen=True)
class Issued:
    """A new token: what the file says of it, and the token itself, which can be had only here."""

    entry: TokenEntry
    token: str

    def __repr__(self) -> str:
        """Return it without the token, since what is shown ends in logs."""
        return f"Issued({self.entry.id})"


def create_token(path: Path, grant: Grant, *, now: datetime) -> Issued:
    """Make a token and write what it may do into the file, which is made if it is not there.

    Raises
    ------
    SettingsError
        With every mistake of the grant, or of the file.
    """
    if grant.expires < now.astimezone(UTC).date():
        wrong = Mistake("expires", f"this day is over, got {grant.expires}", None, str(grant.expires), "today or later")
        raise mistakes_error("the new token", [wrong])
    with wait_for_lock(_lock_path(path)):
        entries = read_entries(path)[0] if path.exists() else ()
        taken = {entry.id for entry in entries}
        name = next(name for name in iter(lambda: secrets.token_hex(4), "") if name not in taken)
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
    """Revoke a token for good, and return it with whether it was not revoked before.

    Raises
    ------
    McpServerError
        If the file has no token of this id.
    SettingsError
        If the file cannot be used.
    """
    read_entries(path)  # where there is no file, no lock is left behind
    with wait_for_lock(_lock_path(path)):
        entries = list(read_entries(path)[0])
        place = next((index for index, entry in enumerate(entries) if entry.id == name), None)
        if place is None:
            raise McpServerError(
                "No token has this id.", field="ID", got=name if len(name) <= 8 else None,
                allowed=[entry.id for entry in entries], hint="An id is the part of a token after alt_, never the token.", code="unknown_token",
            )  # fmt: skip
        if entries[place].revoked is not None:
            return entries[place], False
        entries[place] = TokenEntry.model_validate({**entries[place].model_dump(), "revoked": _format_second(now)})
        write_entries(path, entries)
    return entries[place], True


def list_tokens(path: Path) -> tuple[TokenEntry, ...]:
    """Return the tokens of a file, also those that are not accepted any more."""
    return read_entries(path)[0]


def find_expiry(entry: TokenEntry) -> datetime:
    """Return the first moment at which a token is not accepted any more."""
    return datetime.combine(entry.expires, time(), UTC) + timedelta(days=1)


def describe_token_status(entry: TokenEntry, now: datetime) -> str:
    """Return "live", "expired" or "revoked"."""
    if entry.revoked is not None:
        return "revoked"
    return "live" if now < find_expiry(entry) else "expired"


@dataclass(frozen=True, slots=True)
class _KnownToken:
    """What a token is compared with, and who shows it."""

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
    """The tokens of a file, read again whenever it changes, so that what is revoked is refused with the next call.

    A file that cannot be used any more refuses everybody; `problem` says why, and so does the log, once.
    """

    waits = False

    def __init__(self, path: Path, clock: Callable[[], datetime]) -> None:
        self._path, self._clock = path, clock
        self._lock = threading.Lock()
        self._read: tuple[FileSignature | None, tuple[_KnownToken, ...]] = (None, ())
        self.problem: AlphaloomError | None = None

    @classmethod
    def open(cls, path: Path, *, clock: Callable[[], datetime]) -> Tokens:
        """Read a file of tokens; `SettingsError` with every mistake of it."""
        tokens = cls(path, clock)
        tokens._current()
        if tokens.problem is not None:
            raise tokens.problem
        return tokens

    def verify(self, bearer: str) -> Caller:
        """Return who shows a token.

        Every token is compared with all that the file has, in constant time, and everything is asked of each of them:
        one that is unknown, malformed, expired or revoked takes the same work and is refused in the same words.
        """
        shown, now = _digest(bearer[:MAX_OWN_TOKEN_CHARS]), self._clock()
        found: Caller | None = None
        for known in self._current():
            same = hmac.compare_digest(shown, known.sha256)
            live = (now < known.ends) & (not known.revoked)
            found = (found, known.caller)[same & live]
        if found is None:
            raise TokenRefused(str(self.problem) if self.problem else "unknown, expired or revoked")
        return found

    def _current(self) -> tuple[_KnownToken, ...]:
        """Return the tokens as the file has them now."""
        signature, entries = self._read
        if signature is not None and signature == self._signature():
            return entries
        with self._lock:
            signature, entries = self._read
            if signature is None or signature != self._signature():
                self._read = self._again()
            return self._read[1]

    def _signature(self) -> FileSignature | None:
        try:
            return FileSignature.of(self._path.stat())
        except OSError:
            return None

    def _again(self) -> tuple[FileSignature | None, tuple[_KnownToken, ...]]:
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


def _lock_path(path: Path) -> Path:
    """Return the lock beside the file; the file itself is exchanged whenever it is written."""
    return path.with_name(f"{path.name}.lock")


class TokenVerifier(Protocol):
    """Says who shows a bearer token. It may be used from several threads."""

    @property
    def waits(self) -> bool:
        """Whether it may wait for the network, so that an event loop must ask it in a thread."""

    def verify(self, bearer: str) -> Caller:
        """Return who shows this token; `TokenRefused`, always in the same words, if it is not accepted."""


class AnyOf:
    """Several verifiers, asked in turn: the first that accepts a token says who it is."""

    def __init__(self, verifiers: Sequence[TokenVerifier]) -> None:
        self._verifiers = tuple(verifiers)

    @property
    def waits(self) -> bool:
        """Whether one of them may wait for the network."""
        return any(each.waits for each in self._verifiers)

    def verify(self, bearer: str) -> Caller:
        """Return who shows this token; `TokenRefused` if none accepts it."""
        for each in self._verifiers:
            with suppress(TokenRefused):
                return each.verify(bearer)
        raise TokenRefused("no verifier accepts it")
