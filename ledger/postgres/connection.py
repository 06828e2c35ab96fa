"""The ledger in a PostgreSQL database: one durable connection, shared by threads and reopened after a loss.

Writers take turns by an advisory lock, so that a write sees all earlier writes, as with a SQLite file. A transaction
whose connection is lost is repeated. It does not matter whether the first attempt was committed: every write of the
ledger leaves existing rows as they are.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..database.protocol import Rows, T, Transaction
from ..database.schema import INDICES, SCHEMA_PART_GONE, SCHEMA_VERSION, TABLE_KEYS, ColumnTypes, tables
from ..errors import AddressError, RunLocked, WorkspaceError
from .server import MIN_POSTGRES_VERSION, POSTGRES_SCHEMA, PostgresServer, driver

if TYPE_CHECKING:
    import psycopg


_POSTGRES_TYPES = ColumnTypes(serial="BIGINT PRIMARY KEY", integer="BIGINT", text='TEXT COLLATE "C"')
POSTGRES_ONLY_TABLES = {
    "objects": 'digest TEXT COLLATE "C" PRIMARY KEY, body BYTEA NOT NULL',
    "formats": "version BIGINT PRIMARY KEY",
}
"""Tables for what a SQLite ledger stores in a folder (objects) and in the file's header (its format)."""
_APPEND_ONLY = f"""
CREATE OR REPLACE FUNCTION {POSTGRES_SCHEMA}.append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$"""
_NUMBERING_FUNCTION = f"""
CREATE OR REPLACE FUNCTION {POSTGRES_SCHEMA}.numbered() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    last BIGINT;
BEGIN
    EXECUTE format('SELECT max(%I) FROM %I.%I', TG_ARGV[0], TG_TABLE_SCHEMA, TG_TABLE_NAME) INTO last;
    RETURN jsonb_populate_record(NEW, jsonb_build_object(TG_ARGV[0], coalesce(last, 0) + 1));
END $$"""

LOCK_WAIT_SECONDS = 3.0
"""How long to wait for a lock: the server may take a moment to see that its holder was killed."""


class PostgresLink:
    """One connection, shared by threads that take turns; `renewed` is called with each new one before it is used."""

    def __init__(self, server: PostgresServer, renewed: Callable[[Any], None] = lambda _: None) -> None:
        self._server, self._renewed = server, renewed
        self._lock, self._over = threading.RLock(), False
        self.connection: psycopg.Connection[Any] = server.connect()

    def repeated(self, deed: Callable[[psycopg.Connection[Any]], T]) -> T:
        """Run `deed`; repeat it when the connection is lost and the server comes back in time.

        Raises
        ------
        LedgerError
            The server refuses; `ServerError` if it does not come back.
        """
        with self._lock:
            return self._repeat(deed)

    def _repeat(self, deed: Callable[[psycopg.Connection[Any]], T]) -> T:
        until = None
        while True:
            try:
                return deed(self._open())
            except driver().Error as error:
                until = until or time.monotonic() + self._server.patience_s
                if not self._server.is_lost(error, self.connection) or time.monotonic() > until:
                    self._server.refuse(error)

    def _open(self) -> psycopg.Connection[Any]:
        """Return the connection, a new one if the last was lost."""
        if self._over:
            raise WorkspaceError(f"the ledger {self._server.address} is closed or misused", field="ledger")
        if self.connection.closed:
            self.connection = self._server.connect(again=True)
            self._renewed(self.connection)
        return self.connection

    def close(self) -> None:
        """Close the connection; a second time does nothing."""
        with self._lock:
            self._over = True
            self.connection.close()


def lock_key(name: str) -> int:
    """Return the number of a lock on the server: the first 8 bytes of a hash of its name, signed."""
    return int.from_bytes(hashlib.sha256(f"alphaloom {name}".encode()).digest()[:8], "big", signed=True)


_BEGIN_WRITE = f"BEGIN; SELECT pg_advisory_xact_lock({lock_key('write')})"
_BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_FORMAT = f"SELECT max(version) FROM {POSTGRES_SCHEMA}.formats"
_FIND_SCHEMA = (
    f"SELECT to_regclass('{POSTGRES_SCHEMA}.formats') IS NOT NULL, "
    f"EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = '{POSTGRES_SCHEMA}')"
)
_HOLDER = """
SELECT pid, application_name FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND granted AND objsubid = 1
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND classid::bigint = (%s::bigint >> 32) & 4294967295 AND objid::bigint = %s::bigint & 4294967295"""


class _Transaction:
    """Runs the ledger's SQL, in which `?` marks a value."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Rows:
        rows: Rows = self._connection.execute(_translate_marks(statement), values or None)
        return rows


@lru_cache(maxsize=256)
def _translate_marks(statement: str) -> str:
    return statement.replace("?", "%s")


class PostgresDatabase:
    """A ledger in a schema of a database; every write is on the server's disk when it returns.

    `before_making` is called before the schema is created; it may raise to refuse that. `upgraded` is called in the
    transaction that adds to a schema of an earlier version what it lacks.
    """

    def __init__(
        self,
        server: PostgresServer,
        before_making: Callable[[], None] = lambda: None,
        upgraded: Callable[[Transaction], None] = lambda _: None,
    ) -> None:
        self._server, self._before_making, self._upgraded = server, before_making, upgraded
        self._held: list[str] = []
        self._link = PostgresLink(server, self._seize_again)
        try:
            self._prepare()
        except BaseException:
            self._link.close()
            raise

    def _prepare(self) -> None:
        """Refuse a database that cannot hold a ledger, and create the tables that are missing."""
        self._check_server()
        ledger, exists = self.rows(_FIND_SCHEMA)[0]
        if exists and not ledger:
            raise AddressError(
                f"the schema {POSTGRES_SCHEMA} at {self._server.address} is no ledger",
                field="ledger",
                hint="Name a database of its own for the ledger.",
            )
        version = self.rows(_FORMAT)[0][0] if ledger else 0
        if version > SCHEMA_VERSION:
            raise WorkspaceError(
                f"the ledger at {self._server.address} was written by a newer Alphaloom",
                got=f"format {version}",
                allowed=f"format {SCHEMA_VERSION}",
                hint="Upgrade Alphaloom, or name another database with --ledger.",
            )
        if not ledger:
            self._before_making()
        if version < SCHEMA_VERSION:
            self.write(self._create_tables)

    def _create_tables(self, session: Transaction) -> None:
        (ledger, _) = session.execute(_FIND_SCHEMA).fetchone()  # another process may have been faster
        (version,) = session.execute(_FORMAT).fetchone() if ledger else (0,)
        for statement in statements():
            session.execute(statement)
        if version and version < SCHEMA_VERSION:
            self._upgraded(session)

    def _check_server(self) -> None:
        """Refuse a server that is too old, and a database that cannot hold every text."""
        version = self._link.connection.info.server_version // 10_000
        (encoding,) = self.rows("SHOW server_encoding")[0]
        if version < MIN_POSTGRES_VERSION or encoding != "UTF8":
            raise AddressError(
                f"the database at {self._server.address} cannot hold a ledger",
                field="ledger",
                got=f"PostgreSQL {version}, encoding {encoding}",
                allowed=f"PostgreSQL {MIN_POSTGRES_VERSION} or later, encoding UTF8",
            )

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run a piece of work in one transaction, after all other writers; again if the connection is lost."""
        return self._link.repeated(lambda connection: _run_transaction(connection, (_BEGIN_WRITE, "COMMIT"), work))

    def rewrite(self, tables: Sequence[str], work: Callable[[Transaction], T]) -> T:
        """Run a piece of work that may change rows of these tables; others wait for it, and old rows are vacuumed."""
        names = [(f"{POSTGRES_SCHEMA}.{table}", f"TRIGGER {table}_append_only") for table in tables]

        def unguarded(session: Transaction) -> T:
            for table, guard in names:
                session.execute(f"ALTER TABLE {table} DISABLE {guard}")
            result = work(session)
            for table, guard in names:
                session.execute(f"ALTER TABLE {table} ENABLE ALWAYS {guard}")
            return result

        result = self.write(unguarded)
        vacuum = f"VACUUM {', '.join(table for table, _ in names)}"
        self._link.repeated(lambda connection: connection.execute(vacuum))
        return result

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Run a piece of work that sees a single state."""
        return self._link.repeated(lambda connection: _run_transaction(connection, (_BEGIN_READ, "ROLLBACK"), work))

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        return self._link.repeated(
            lambda connection: connection.execute(_translate_marks(query), values or None).fetchall()
        )

    @contextmanager
    def held(self, name: str) -> Iterator[None]:
        """Lock a name against every process that uses this database; after a lost connection it is locked again."""
        self._link.repeated(lambda connection: self._seize(connection, name))
        self._held.append(name)
        try:
            yield
        finally:
            self._held.remove(name)
            with suppress(driver().Error):
                self._link.connection.execute("SELECT pg_advisory_unlock(%s)", (lock_key(name),))

    def holder(self, name: str) -> str | None:
        """Return the process that holds the lock of a name, with its machine; None if there is none."""
        holders = self._link.repeated(
            lambda connection: connection.execute(_HOLDER, (lock_key(name), lock_key(name))).fetchall()
        )
        return _format_process(holders[0][1]) if holders else None

    def explained(self, place: Path) -> AbstractContextManager[None]:
        """Do nothing: a link to the server explains its own errors."""
        return nullcontext()

    def close(self) -> None:
        """Close the connection; a second time does nothing."""
        self._link.close()

    def _seize_again(self, connection: psycopg.Connection[Any]) -> None:
        """Take the locks of a lost connection again on the new one."""
        for name in self._held:
            self._seize(connection, name)

    def _seize(self, connection: psycopg.Connection[Any], name: str) -> None:
        """Take a lock, or raise `RunLocked` with the process that holds it."""
        until = time.monotonic() + LOCK_WAIT_SECONDS
        while not connection.execute("SELECT pg_try_advisory_lock(%s)", (lock_key(name),)).fetchall()[0][0]:
            holders = connection.execute(_HOLDER, (lock_key(name), lock_key(name))).fetchall()
            process, holder = holders[0] if holders else (0, "another process")
            if holder == self._server.name:  # our own lost connection, which the server still keeps
                connection.execute("SELECT pg_terminate_backend(%s)", (process,))
            elif time.monotonic() > until:
                raise RunLocked(
                    f"process {_format_process(holder)} is working on {name}",
                    field="run",
                    got=name.removeprefix("run "),
                    hint="Wait for it to end or stop it; a run can be resumed at any moment.",
                )
            time.sleep(0.05)


def _format_process(name: str) -> str:
    """Return a process's number and machine from its name on the server; see `PostgresServer.name`."""
    return name.removeprefix("alphaloom ").partition(" #")[0]


def _run_transaction(connection: psycopg.Connection[Any], ends: tuple[str, str], work: Callable[[Transaction], T]) -> T:
    """Run a piece of work between two statements: all of it, or nothing, whatever interrupts it."""
    try:
        connection.execute(ends[0], prepare=False)
        result = work(_Transaction(connection))
        connection.execute(ends[1])
    except BaseException:  # Ctrl-C too; it is raised again after the rollback
        with suppress(driver().Error):
            connection.execute("ROLLBACK")
        raise
    return result


def list_schema_changes(run_query: Callable[[str], Sequence[tuple[Any, ...]]]) -> Iterator[tuple[str, str]]:
    """Yield the triggers and rules of the ledger's tables that are not as this version makes them, and what differs."""
    expected = {(name, f"{name}_append_only"): "A" for name in (*TABLE_KEYS, *POSTGRES_ONLY_TABLES)}
    expected |= {(name, f"{name}_numbered"): "O" for name, keys in TABLE_KEYS.items() if keys[0][0] in ("seq", "id")}
    bodies = {"append_only": _APPEND_ONLY, "numbered": _NUMBERING_FUNCTION}
    for table, name, enabled, definition, function, body in run_query(_LIST_TRIGGERS):
        what = f"trigger {name} of {table}"
        if (table, name) not in expected:
            yield what, "the ledger has no such thing: somebody added it"
        elif enabled != expected.pop((table, name)):
            yield what, "it was switched off"
        elif str(body).split() != bodies.get(function, "").partition("$$")[2].rpartition("$$")[0].split():
            yield what, f"its function {function} was changed"
        elif " WHEN " in definition or not name.endswith(f"_{function}"):
            yield what, "it was changed"
    for table, name in expected:
        yield f"trigger {name} of {table}", SCHEMA_PART_GONE
    for table, name in run_query(_LIST_RULES):
        yield f"rule {name} of {table}", "the ledger has no such thing: somebody added it"


_LIST_TRIGGERS = f"""
SELECT relname, tgname, tgenabled::text, pg_get_triggerdef(pg_trigger.oid), proname, prosrc FROM pg_trigger
JOIN pg_class ON pg_class.oid = tgrelid JOIN pg_namespace ON pg_namespace.oid = relnamespace
JOIN pg_proc ON pg_proc.oid = tgfoid
WHERE nspname = '{POSTGRES_SCHEMA}' AND NOT tgisinternal ORDER BY 1, 2"""
_LIST_RULES = f"SELECT tablename, rulename FROM pg_rules WHERE schemaname = '{POSTGRES_SCHEMA}' ORDER BY 1, 2"


def statements() -> list[str]:
    """Return the SQL that creates an empty store; each statement may be run again."""
    columns = tables(_POSTGRES_TYPES) | POSTGRES_ONLY_TABLES
    creations = [f"CREATE TABLE IF NOT EXISTS {POSTGRES_SCHEMA}.{name} ({body})" for name, body in columns.items()]
    creations += [
        f"CREATE INDEX IF NOT EXISTS {name} ON {POSTGRES_SCHEMA}.{target}" for name, target in INDICES.items()
    ]
    guards = [guard for name in columns for guard in _build_guard(name)]
    numbers = [_build_numbering(name, keys[0][0]) for name, keys in TABLE_KEYS.items() if keys[0][0] in ("seq", "id")]
    version = f"INSERT INTO {POSTGRES_SCHEMA}.formats VALUES ({SCHEMA_VERSION}) ON CONFLICT DO NOTHING"
    return [
        f"CREATE SCHEMA IF NOT EXISTS {POSTGRES_SCHEMA}",
        *creations,
        _APPEND_ONLY,
        _NUMBERING_FUNCTION,
        *guards,
        *numbers,
        version,
    ]


def _build_guard(table: str) -> list[str]:
    """Return the trigger that refuses changes of a table's rows, also in sessions that disable triggers."""
    name = f"{table}_append_only"
    trigger = (
        f"CREATE OR REPLACE TRIGGER {name} BEFORE UPDATE OR DELETE OR TRUNCATE ON {POSTGRES_SCHEMA}.{table} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {POSTGRES_SCHEMA}.append_only()"
    )
    return [trigger, f"ALTER TABLE {POSTGRES_SCHEMA}.{table} ENABLE ALWAYS TRIGGER {name}"]


def _build_numbering(table: str, column: str) -> str:
    """Return the trigger that numbers new rows."""
    return (
        f"CREATE OR REPLACE TRIGGER {table}_numbered BEFORE INSERT ON {POSTGRES_SCHEMA}.{table} "
        f"FOR EACH ROW EXECUTE FUNCTION {POSTGRES_SCHEMA}.numbered('{column}')"
    )
