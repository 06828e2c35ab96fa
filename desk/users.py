"""The users of a workspace: who may sign, with which password, and for what.

A workspace without users belongs to one person on their own machine, who is not asked for a password. The file is that
person's, as the tokens' is: whoever may write it decides who signs.

Passwords are hashed with scrypt of the standard library. argon2 resists graphics cards a little better, but is one
dependency more; scrypt is memory-hard too, and both hold only as long as the passwords are not guessable.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import threading
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from ..ledger import Mistake, SettingsError, read_json, write_json
from ..ledger.database import wait_for_lock
from ..ledger.files import QuotingDumper, make_folder, mistakes_error, parse_settings, write_whole
from ..mcp_servers.access import FileSignature, lock_path, read_guarded
from .errors import DeskError

USERS_PLACE = "desk/users.yaml"
USERS_HEADER = (
    "# Who may sign in this workspace; written by `alphaloom desk user`, which leaves out other comments.\n"
    "# A password is kept as scrypt$LOG2_N$R$P$SALT$HASH.\n"
)
SCRYPT_LOG_N, SCRYPT_R, SCRYPT_P = 15, 8, 3
"""Cost of a hash: 32 MiB of memory and 3 passes, 0.2 to 0.7 s (OWASP's second choice of equal strength)."""
SALT_BYTES, PASSWORD_HASH_BYTES = 16, 32
NOBODY = f"scrypt${SCRYPT_LOG_N}${SCRYPT_R}${SCRYPT_P}${'0' * 2 * SALT_BYTES}${'0' * 2 * PASSWORD_HASH_BYTES}"
"""A hash that no password is known to have, for names that nobody has."""
MIN_PASSWORD_CHARS, MAX_PASSWORD_CHARS = 12, 1_000
USER_NAME_CHARS = 100
GIVEN_NAMES_PLACE, GIVEN_NAME_CHARS = "desk/names.json", 60


class PersonScope(StrEnum):
    """A right of a person. No token of the MCP servers can have one."""

    REVIEW_DECIDE = "review:decide"
    RISK_APPROVE = "risk:approve"
    RUN_CONTROL = "run:control"
    SEAL_OPEN = "seal:open"
    LIBRARY_WRITE = "library:write"
    TEXT_RELEASE = "text:release"
    SUPERVISE = "supervise"


PERSON_SCOPES = tuple(scope.value for scope in PersonScope)


@dataclass(frozen=True)
class Signer:
    """A person who is known, and what they may do.

    `account` is that of this machine where it signs and a name may be given for it; empty elsewhere.
    """

    name: str
    scopes: frozenset[str]
    account: str = ""

    def may(self, scope: str) -> bool:
        """Return whether the person has a scope."""
        return str(scope) in self.scopes

    def check(self, scope: str) -> None:
        """Refuse a person who lacks a scope."""
        if not self.may(scope):
            raise DeskError(
                f"{self.name} lacks the scope {scope}.",
                field="scope",
                got=sorted(self.scopes),
                allowed=str(scope),
                hint="Whoever keeps this workspace gives it: alphaloom desk user scopes NAME --scopes SCOPE,...",
                code="scope_missing",
                exit_code=1,
            )


def _check_scope(text: str) -> str:
    if text not in PERSON_SCOPES:
        raise ValueError(f"there is no scope of this name; allowed: {', '.join(PERSON_SCOPES)}")
    return text


def _check_name(name: str) -> str:
    if not name.isprintable() or name != " ".join(name.split()):
        raise ValueError("must be one line of visible characters, with single spaces inside")
    return name


class User(BaseModel):
    """One user; `password` is a hash."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(min_length=1, max_length=USER_NAME_CHARS), AfterValidator(_check_name)]
    scopes: tuple[Annotated[str, AfterValidator(_check_scope)], ...]
    password: Annotated[str, Field(pattern=r"^scrypt\$1[0-9]\$[0-9]{1,2}\$[0-9]{1,2}\$[0-9a-f]{32}\$[0-9a-f]{64}$")]
    created: AwareDatetime

    def as_signer(self) -> Signer:
        """Return the person with their scopes."""
        return Signer(self.name, frozenset(self.scopes))

    @property
    def mark(self) -> str:
        """Return what a session keeps of the password's hash: with a new password all sessions end."""
        return hashlib.sha256(f"{self.name}\0{self.password}".encode()).hexdigest()


class _UserFile(BaseModel):
    """The whole file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    users: tuple[User, ...] = ()

    @model_validator(mode="after")
    def _check_apart(self) -> _UserFile:
        names = [user.name.casefold() for user in self.users]
        if len(set(names)) < len(names):
            raise ValueError("two users have the same name")
        return self


class Users:
    """The users of a workspace. A file that cannot be read, or that others may read, admits nobody."""

    def __init__(self, workspace: Path) -> None:
        self._file = workspace / USERS_PLACE

    def all(self) -> tuple[User, ...]:
        """Return the users; empty where the workspace has none.

        Raises
        ------
        SettingsError
            With every mistake of the file.
        """
        try:
            status = self._file.stat()
        except OSError as error:
            if not os.path.lexists(self._file) and isinstance(error, FileNotFoundError | NotADirectoryError):
                return ()
            # A link to nothing, or a folder that cannot be searched, is no workspace without users.
            raise SettingsError(f"cannot read {self._file}: {error}", field=str(self._file)) from None
        return _read_users(self._file, FileSignature.of(status))

    def find(self, name: str) -> User | None:
        """Return the user of a name."""
        return next((user for user in self.all() if user.name == name), None)

    def admit(self, name: str, password: str) -> User | None:
        """Return the user whose password this is; an unknown name takes as long as a wrong password."""
        user = self.find(name)
        right = check_password(password, user.password if user else NOBODY)
        return user if right else None

    def add(self, name: str, scopes: Sequence[str], password: str, now: datetime) -> User:
        """Add a user."""
        _refuse_weak(password)
        members = {"name": name, "scopes": list(dict.fromkeys(scopes)), "password": hash_password(password)}
        members["created"] = now.astimezone(UTC).isoformat(timespec="seconds")

        def change(users: tuple[User, ...]) -> Sequence[dict[str, Any]]:
            if any(user.name.casefold() == name.casefold() for user in users):
                hint = "alphaloom desk user password NAME sets a new password."
                raise DeskError("There is a user of this name.", field="NAME", got=name, hint=hint, code="user")
            return [*map(_dump_user, users), members]

        return next(user for user in self._change(change) if user.name == name)

    def change(self, name: str, members: dict[str, Any]) -> User:
        """Change the scopes or the password (in clear) of a user."""
        if "password" in members:
            _refuse_weak(members["password"])
            members = {**members, "password": hash_password(members["password"])}

        def change(users: tuple[User, ...]) -> Sequence[dict[str, Any]]:
            _require_user(users, name)
            return [{**_dump_user(user), **(members if user.name == name else {})} for user in users]

        return next(user for user in self._change(change) if user.name == name)

    def remove(self, name: str) -> tuple[User, ...]:
        """Remove a user, and return those who are left."""

        def change(users: tuple[User, ...]) -> Sequence[dict[str, Any]]:
            _require_user(users, name)
            return [_dump_user(user) for user in users if user.name != name]

        return self._change(change)

    def _change(self, change: Callable[[tuple[User, ...]], Sequence[dict[str, Any]]]) -> tuple[User, ...]:
        """Write the file anew, whole or not at all, and only if it can be read again."""
        make_folder(self._file.parent)
        with wait_for_lock(lock_path(self._file)):
            rows = change(self.all())
            users = _parse_users(rows)
            body = yaml.dump(
                {"users": list(rows)}, Dumper=QuotingDumper, sort_keys=False, allow_unicode=True, width=1000
            )
            write_whole(self._file, (USERS_HEADER + str(body)).encode(), mode=0o600)
        return users


class GivenNames:
    """The names that people gave where a workspace has no users, by the account of the machine that they sign from.

    Whoever works under an account like "root" gives a name once. Everything that they sign then bears both.
    """

    def __init__(self, workspace: Path) -> None:
        self._file = workspace / GIVEN_NAMES_PLACE

    def sign(self, signer: str) -> str:
        """Return the name with its account, of an account or of the name itself; another signer stays as it is."""
        for account, name in self._read().items():
            if signer.casefold() in (account.casefold(), name.casefold()):
                return f"{name} (account {account})"
        return signer

    def give(self, account: str, name: str) -> None:
        """Keep the name for an account, in place of an earlier one.

        Raises
        ------
        DeskError
            The name is empty, too long, or not one line of letters without brackets.
        """
        name = " ".join(name.split())
        if not 0 < len(name) <= GIVEN_NAME_CHARS or not name.isprintable() or set(name) & set("()[]"):
            allowed = f"one line of 1 to {GIVEN_NAME_CHARS} characters without brackets"
            raise DeskError(
                "This is no name to sign with.", field="name", got=name[:100], allowed=allowed, code="no_name"
            )
        make_folder(self._file.parent)
        with wait_for_lock(lock_path(self._file)):
            write_json(self._file, {**self._read(), account: name}, mode=0o600)

    def _read(self) -> dict[str, str]:
        """Return what is kept; a damaged file has no name, and the account signs."""
        try:
            kept = read_json(self._file)
        except (OSError, ValueError):
            return {}
        names = kept.items() if isinstance(kept, dict) else ()
        return {account: name for account, name in names if isinstance(name, str) and name}


@lru_cache(maxsize=8)
def _read_users(file: Path, signature: FileSignature) -> tuple[User, ...]:
    """Return the users of a file, read once for each state of it: every request of a browser asks."""
    missing = SettingsError(f"the file of users {file} has gone", field=str(file))
    return read_guarded(file, _UserFile, _redact, missing)[0].users


def _parse_users(rows: Sequence[dict[str, Any]]) -> tuple[User, ...]:
    body = str(yaml.dump({"users": list(rows)}, Dumper=QuotingDumper, sort_keys=False, allow_unicode=True))
    try:
        return parse_settings(body, _UserFile, "the users").users
    except SettingsError as error:
        mistakes = [_redact(mistake) for mistake in error.mistakes]
        raise mistakes_error(
            "the users", [Mistake(one.field, one.message, None, one.got) for one in mistakes]
        ) from None


def _redact(mistake: Mistake) -> Mistake:
    """Return a mistake without a password that was written where its hash belongs."""
    if "password" in mistake.field:
        return Mistake(mistake.field, "must be a hash that `alphaloom desk user` wrote", mistake.line)
    return mistake


def _dump_user(user: User) -> dict[str, Any]:
    return user.model_dump(mode="json")


def _require_user(users: Sequence[User], name: str) -> None:
    if all(user.name != name for user in users):
        allowed = [user.name for user in users]
        raise DeskError("There is no user of this name.", field="NAME", got=name, allowed=allowed, code="user")


def _refuse_weak(password: str) -> None:
    if not MIN_PASSWORD_CHARS <= len(password) <= MAX_PASSWORD_CHARS:
        allowed = f"{MIN_PASSWORD_CHARS} to {MAX_PASSWORD_CHARS:,} characters"
        hint = "Four or five words that do not belong together are long and easy to keep."
        raise DeskError(
            "This password will not do.", field="password", got=f"{len(password)} characters", allowed=allowed,
            hint=hint, code="password",
        )  # fmt: skip  # a table


_hashing = threading.Lock()
"""One hash at a time: a flood of logins then costs one core and 32 MiB, not 32 MiB for each thread."""


def hash_password(password: str) -> str:
    """Return a new hash of a password, with its parameters and salt."""
    salt = secrets.token_bytes(SALT_BYTES)
    cost = (SCRYPT_LOG_N, SCRYPT_R, SCRYPT_P)
    return "$".join(("scrypt", *map(str, cost), salt.hex(), _scrypt(password, salt, cost).hex()))


def check_password(password: str, kept: str) -> bool:
    """Return whether a password has a hash; the hash's own parameters hold, so that they may grow later."""
    _, log_n, r, p, salt, expected = kept.split("$")
    found = _scrypt(password, bytes.fromhex(salt), (int(log_n), int(r), int(p)))
    return hmac.compare_digest(found, bytes.fromhex(expected))


def _scrypt(password: str, salt: bytes, cost: tuple[int, int, int]) -> bytes:
    log_n, r, p = cost
    # The same password typed on another system may have other code points; bytes beyond the limit are not hashed.
    text = unicodedata.normalize("NFKC", password[:MAX_PASSWORD_CHARS]).encode("utf-8", "surrogatepass")
    memory = 128 * r * (2**log_n + p + 2)
    with _hashing:
        return hashlib.scrypt(text, salt=salt, n=2**log_n, r=r, p=p, maxmem=memory * 2, dklen=PASSWORD_HASH_BYTES)
