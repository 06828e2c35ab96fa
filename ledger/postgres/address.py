"""The address of a PostgreSQL database, checked so that nothing secret is in it, whatever way it was written."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from ..errors import AddressError

ADDRESS_FORM = "postgresql://USER@HOST:PORT/DATABASE"
PASSWORD_HINT = "Set the environment variable PGPASSWORD, or write a line into ~/.pgpass."
_SCHEMES = ("postgresql", "postgres")
_OPTIONS = frozenset(
    {
        "channel_binding", "gssencmode", "host", "hostaddr", "krbsrvname", "passfile", "port", "require_auth", "service",
        "sslcert", "sslcrl", "sslkey", "sslmode", "sslrootcert", "target_session_attrs", "user",
    }
)  # fmt: skip
"""What may stand behind the question mark; of libpq's options those that carry no secret and leave the session as it is."""
_HOSTS = re.compile(r"(?:(?:\[[0-9A-Fa-f:.%]+\]|[^\[\]:,@]*)(?::\d*)?(?:,|$))*")


def check_address(address: str) -> str:
    """Return an address that holds no secret and can be shown and kept.

    Raises
    ------
    AddressError
        If it is no such address, or has a password in it. What cannot be read is not repeated: it may be a secret.
    """
    parts = _split(address)
    user, _, hosts = parts.netloc.rpartition("@")
    options = _options(parts.query)
    if ":" in user or any("password" in name for name in options):
        raise AddressError("write no password into the address of the ledger", field="--ledger", hint=PASSWORD_HINT)
    name = parts.path.removeprefix("/")
    split = "@" in user + name + parts.query or "/" in name or parts.fragment  # as by a sign within a password
    if split or not _HOSTS.fullmatch(hosts):
        raise _unreadable_error()
    if not name:
        raise AddressError("the address of the ledger names no database", field="--ledger", allowed=ADDRESS_FORM)
    strange = sorted(set(options) - _OPTIONS)
    if strange:
        raise AddressError(
            "the address of the ledger has options that are not known", field="--ledger", got=strange,
            allowed=sorted(_OPTIONS),
        )  # fmt: skip
    return address


def database_name(address: str) -> str:
    """Return the name of the database that an address names."""
    return unquote(urlsplit(address).path.removeprefix("/"))


def _split(address: str) -> SplitResult:
    try:
        parts = urlsplit(address)
    except ValueError:
        raise _unreadable_error() from None
    if parts.scheme not in _SCHEMES or f"{parts.scheme}://" != address[: len(parts.scheme) + 3]:
        raise _unreadable_error()
    return parts


def _options(query: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(query, keep_blank_values=True, strict_parsing=True)) if query else {}
    except ValueError:
        raise _unreadable_error() from None


def _unreadable_error() -> AddressError:
    return AddressError(
        "the address of the ledger cannot be read", field="--ledger", allowed=ADDRESS_FORM, hint=PASSWORD_HINT
    )
