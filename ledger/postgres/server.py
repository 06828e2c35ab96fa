"""A PostgreSQL server: its address, how long to wait for it, and its errors in a person's words."""

from __future__ import annotations

import os
import re
import socket
import time
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from ...extras import install_hint
from ..database.protocol import unstarted_run_error
from ..errors import AddressError, LedgerError, ServerError, WorkspaceError

if TYPE_CHECKING:
    import psycopg

ADDRESS_FORM = "postgresql://USER@HOST:PORT/DATABASE"
PASSWORD_HINT = "Set the environment variable PGPASSWORD, or write a line into ~/.pgpass."
_SCHEMES = ("postgresql", "postgres")
_OPTIONS = frozenset(
    {
        "channel_binding", "gssencmode", "host", "hostaddr", "krbsrvname", "passfile", "port", "require_auth",
        "service", "sslcert", "sslcrl", "sslkey", "sslmode", "sslrootcert", "target_session_attrs", "user",
    }
)  # fmt: skip  # a table
"""Options allowed in an address: those of libpq that carry no secret and do not change the session."""
_HOSTS = re.compile(r"(?:(?:\[[0-9A-Fa-f:.%]+\]|[^\[\]:,@]*)(?::\d*)?(?:,|$))*")


def check_address(address: str) -> str:
    """Return the address if it contains no secret, so that it can be shown and stored.

    Raises
    ------
    AddressError
        If it is no such address, or contains a password. An unreadable address is not repeated: it may be a secret.
    """
    parts = _split_address(address)
    user, _, hosts = parts.netloc.rpartition("@")
    options = _parse_options(parts.query)
    if ":" in user or any("password" in name for name in options):
        raise AddressError("write no password into the address of the ledger", field="--ledger", hint=PASSWORD_HINT)
    name = parts.path.removeprefix("/")
    split = (
        "@" in user + name + parts.query or "/" in name or parts.fragment
    )  # as from a special character in a password
    if split or not _HOSTS.fullmatch(hosts):
        raise _unreadable_error()
    if not name:
        raise AddressError("the address of the ledger names no database", field="--ledger", allowed=ADDRESS_FORM)
    strange = sorted(set(options) - _OPTIONS)
    if strange:
        raise AddressError(
            "the address of the ledger has options that are not known",
            field="--ledger",
            got=strange,
            allowed=sorted(_OPTIONS),
        )
    return address


def database_name(address: str) -> str:
    """Return the name of the database that an address names."""
    return unquote(urlsplit(address).path.removeprefix("/"))


def _split_address(address: str) -> SplitResult:
    try:
        parts = urlsplit(address)
    except ValueError:
        raise _unreadable_error() from None
    if parts.scheme not in _SCHEMES or f"{parts.scheme}://" != address[: len(parts.scheme) + 3]:
        raise _unreadable_error()
    return parts


def _parse_options(query: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(query, keep_blank_values=True, strict_parsing=True)) if query else {}
    except ValueError:
        raise _unreadable_error() from None


def _unreadable_error() -> AddressError:
    return AddressError(
        "the address of the ledger cannot be read", field="--ledger", allowed=ADDRESS_FORM, hint=PASSWORD_HINT
    )


RECONNECT_SECONDS = 60.0
"""How long a campaign waits for a lost server before it ends; it can be resumed later."""
SILENCE_SECONDS = 60.0
"""How long a statement may go unanswered before the server counts as lost: twice the lock timeout."""
MAX_RECONNECT_PAUSE_SECONDS = 1.0
MIN_POSTGRES_VERSION = 14
POSTGRES_SCHEMA = "alphaloom"

_SESSION_SQL = f"""
SET search_path = {POSTGRES_SCHEMA};
SET lock_timeout = '30s';
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"""
_CONNECT_OPTIONS = {
    "client_encoding": "utf8",
    "connect_timeout": 5,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
_CONNECTION_NUMBERS = count(1)


@dataclass(frozen=True)
class PostgresServer:
    """A database's address, without any secret; the password comes from PGPASSWORD or ~/.pgpass, as with psql."""

    address: str
    patience_s: float = RECONNECT_SECONDS
    silence_s: float = SILENCE_SECONDS
    name: str = field(
        default_factory=lambda: f"alphaloom {os.getpid()}@{socket.gethostname()[:24]} #{next(_CONNECTION_NUMBERS)}"
    )
    """The name of this process on the server."""

    def connect(self, *, again: bool = False) -> psycopg.Connection[Any]:
        """Open a connection; wait for a server that starts or stops, and with `again` for one that does not answer.

        Raises
        ------
        ServerError
            If no server answers, or not within `patience_s` seconds, or psycopg is not installed.
        AddressError
            If the server refuses the user, the password or the database.
        """
        psycopg = driver()
        began, pause = time.monotonic(), 0.05
        while True:
            try:
                return self._open_once()
            except psycopg.Error as error:
                passing = _has_mark(error, *_STARTING_MARKS) or (again and _is_unanswered(error))
                if not passing or time.monotonic() - began > self.patience_s:
                    self.refuse(error, waited=passing)
            time.sleep(pause)
            pause = min(2 * pause, MAX_RECONNECT_PAUSE_SECONDS)

    def _open_once(self) -> psycopg.Connection[Any]:
        from .keepalive import WatchedConnection

        connection = WatchedConnection.connect(
            self.address, autocommit=True, application_name=self.name, **_CONNECT_OPTIONS
        )
        connection.silence_s = self.silence_s
        try:
            connection.execute(_SESSION_SQL, prepare=False)
        except BaseException:
            connection.close()
            raise
        return connection

    def is_lost(self, error: Exception, connection: psycopg.Connection[Any]) -> bool:
        """Return whether an error means that the connection is lost, so that a new one may help."""
        psycopg = driver()
        return bool(connection.closed) and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)

    def refuse(self, error: Exception, *, waited: bool = False) -> NoReturn:
        """Raise the error that explains the server's to a person; an error of the program is raised unchanged."""
        explained = self._explain(error, waited)
        if explained is None:
            raise error
        raise explained from error

    def _explain(self, error: Exception, waited: bool) -> LedgerError | None:
        psycopg = driver()
        if isinstance(error, psycopg.errors.ForeignKeyViolation):
            return unstarted_run_error()
        if isinstance(error, psycopg.IntegrityError):
            return None
        for marks, kind, message, hint in _SERVER_REFUSALS:
            if _has_mark(error, *marks):
                return self._build_refusal(kind, message, hint)
        if isinstance(error, psycopg.ProgrammingError):
            return None
        if _is_unanswered(error):
            since = f" after {self.patience_s:.0f} seconds" if waited else ""
            return self._build_refusal(ServerError, "no PostgreSQL server answers at {address}" + since, _START)
        return self._build_refusal(
            WorkspaceError, "cannot use {address}: " + _read_first_line(error).replace("{", "(").replace("}", ")"), ""
        )

    def _build_refusal(self, kind: type[WorkspaceError], message: str, hint: str) -> WorkspaceError:
        words = {"address": self.address, "name": database_name(self.address)}
        refusal = kind(message.format(**words), field="ledger", hint=hint.format(**words))
        refusal.placeless = message.format(address="the record's database", name="the database")
        return refusal


def driver() -> Any:
    """Return the module psycopg.

    Raises
    ------
    ServerError
        If it is not installed.
    """
    try:
        import psycopg
    except ImportError as error:
        raise ServerError(
            f"a ledger in PostgreSQL needs psycopg: {error}",
            field="ledger",
            hint=f"Install it: {install_hint('postgres')}",
        ) from None
    return psycopg


def _has_mark(error: Exception, *marks: str) -> bool:
    """Return whether an error has one of these SQLSTATE codes, or its text one of these phrases."""
    text = str(error).lower()
    state = getattr(error, "sqlstate", None)
    return any(mark == state or mark in text for mark in marks)


def _is_unanswered(error: Exception) -> bool:
    """Return whether no server answered: an answer has a code, or is FATAL."""
    return getattr(error, "sqlstate", None) in (None, "57P01", "57P02") and "FATAL" not in str(error)


def _read_first_line(error: Exception) -> str:
    """Return the first line of the server's message."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


_START = (
    "Start the server, or mend the address; what was recorded is safe, and a run goes on with: alphaloom resume latest"
)
_STARTING_MARKS = (
    "starting up",
    "shutting down",
    "in recovery mode",
    "not yet accepting",
    "57P03",
    "too many clients",
    "53300",
)
_Refusal = tuple[tuple[str, ...], type[WorkspaceError], str, str]
_SERVER_REFUSALS: tuple[_Refusal, ...] = (
    (
        ("password", "authentication failed", "no pg_hba.conf entry", 'role "', "28P01", "28000"),
        AddressError,
        "the server at {address} refuses the user or the password",
        f"{PASSWORD_HINT} The user is the one of the address, else PGUSER, else yours.",
    ),
    (
        ("permission denied", "42501"),
        AddressError,
        "the user of {address} has no right to keep a ledger in it",
        'Let its owner say: GRANT CREATE ON DATABASE "{name}" TO the user.',
    ),
    (
        ('database "', "3D000"),
        AddressError,
        "there is no database {name} at {address}",
        "Make it with: createdb {name}",
    ),
    (("read-only transaction", "25006"), AddressError, "{address} can only be read", "Name the primary server."),
    (
        ("53100", "disk full", "no space left"),
        WorkspaceError,
        "no space is left for {address}; what was recorded is safe",
        "Free some space on the server and resume.",
    ),
    (
        ("lock timeout", "55P03"),
        WorkspaceError,
        "another process holds {address} for too long",
        "Wait for it or stop it, then try again.",
    ),
    (
        _STARTING_MARKS,
        ServerError,
        "the server at {address} is not ready",
        "Wait until it is, then: alphaloom resume latest",
    ),
)
"""Marks of the server's errors: codes, and phrases of errors that come before a code can be read."""
