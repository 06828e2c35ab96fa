"""The file of bearer tokens: the rights of each, and its digest. It contains no secret.

A secret has 256 random bits, so its plain SHA-256 can be stored: it cannot be guessed. Salt or scrypt, which slow down
the guessing of passwords, would only make every call slower.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import yaml
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from ...ledger import Mistake, SettingsError
from ...ledger.files import QuotingDumper, mistakes_error, open_given, parse_settings, write_whole
from .scopes import parse_scope

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


class FileSignature(NamedTuple):
    """Metadata that differs after a file was changed or replaced."""

    modified: int
    changed: int
    size: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileSignature:
        """Return the signature of a file's status."""
        return cls(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def read_entries(path: Path) -> tuple[tuple[TokenEntry, ...], FileSignature]:
    """Read the file.

    Raises
    ------
    SettingsError
        With every mistake: access by other users, unknown keys, wrong values. A secret in a wrong place is not
        repeated.
    """
    try:
        with open_given(path) as file:
            status = os.fstat(file.fileno())
            body = file.read().decode()
    except FileNotFoundError:
        raise SettingsError(
            f"there is no file of tokens {path}", field=str(path), hint="alphaloom token create makes one."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read {path}: {error}", field=str(path)) from None
    mistakes = _find_exposure(status)
    try:
        entries = parse_settings(body, _Tokens, str(path)).tokens
    except SettingsError as error:
        mistakes += error.mistakes or (Mistake("", error.message),)
    if mistakes:
        raise mistakes_error(str(path), [_redact_mistake(mistake) for mistake in mistakes])
    return entries, FileSignature.of(status)


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


def _find_exposure(status: os.stat_result) -> tuple[Mistake, ...]:
    """Return the mistakes in the file's owner and mode; none on Windows, which has no such mode."""
    if sys.platform == "win32":
        return ()
    mistakes = []
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o077:
        mistakes.append(
            Mistake("", f"others may use this file (mode {mode:04o}): chmod 600", None, f"{mode:04o}", "0600")
        )
    if status.st_uid not in (0, os.geteuid()):
        mistakes.append(Mistake("", "this file belongs to another user", None, status.st_uid, os.geteuid()))
    return tuple(mistakes)


def _redact_mistake(mistake: Mistake) -> Mistake:
    """Return a mistake without a possible secret in a wrong place."""
    if mistake.field.endswith("sha256"):
        return replace(mistake, message="must be a SHA-256 in hex, 64 digits from 0-9a-f", got=None)
    value = None if _SECRET.search(str(mistake.got)) else mistake.got
    return replace(mistake, message=_SECRET.sub("(a token)", mistake.message), got=value)
