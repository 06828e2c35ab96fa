"""The ledger in PostgreSQL: guarded, numbered and locked as the file is, and whole when the server goes away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from alphaloom.extras import install_hint
from alphaloom.ledger import (
    AlphaloomError,
    Ledger,
    LedgerError,
    Look,
    Run,
    RunLocked,
    UnknownRun,
    WindowKey,
    WorkspaceError,
)
from alphaloom.ledger.database.home import ADDRESS_FILE
from alphaloom.ledger.database.schema import TABLE_KEYS
from alphaloom.ledger.errors import AddressError, ServerError
from alphaloom.ledger.log import KeyFolder, verify_workspace
from alphaloom.ledger.postgres.connection import POSTGRES_ONLY_TABLES, PostgresDatabase
from alphaloom.ledger.postgres.server import PostgresServer, database_name

from .postgres import PASSWORD, Cluster, free_port
from .test_store import CALL, fill

ROOT = Path(__file__).resolve().parents[2] / ".root"
WINDOW = WindowKey("data", "2020-01-01", "2020-12-31", ("A", "B"))


@contextmanager
def opened(folder: Path, address: str = "") -> Iterator[Ledger]:
    with Ledger.open(folder, clock=lambda: datetime(2026, 1, 2, tzinfo=UTC), address=address) as ledger:
        ledger.runs.start(Run("one", {}, 1, "data", "2026"))
        yield ledger


@pytest.fixture(scope="module")
def filled(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    address = cluster.database()
    with opened(tmp_path_factory.mktemp("w"), address) as ledger:
        fill(ledger)
        ledger.objects.put(b"a body")
    return address


DEEDS = [
    "UPDATE alphaloom.{} SET {} = {}",
    "DELETE FROM alphaloom.{}",
    "TRUNCATE alphaloom.{} CASCADE",
    "SET session_replication_role = replica; DELETE FROM alphaloom.{}",
    "INSERT INTO alphaloom.{} SELECT * FROM alphaloom.{} ON CONFLICT ({}) DO UPDATE SET {} = EXCLUDED.{}",
]
TABLES = {name: keys[0][0] for name, keys in TABLE_KEYS.items()} | {"objects": "digest", "formats": "version"}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("deed", DEEDS)
def test_no_table_can_be_changed_even_from_outside(cluster: Cluster, filled: str, table: str, deed: str) -> None:
    import psycopg

    column = TABLES[table]
    names = [table, table, column, column, column] if "INSERT" in deed else [table, column, column]
    before = cluster.ask(filled, f"SELECT * FROM alphaloom.{table} ORDER BY 1")
    with pytest.raises(psycopg.IntegrityError, match="is append-only"):
        cluster.ask(filled, deed.format(*names))
    assert cluster.ask(filled, f"SELECT * FROM alphaloom.{table} ORDER BY 1") == before != []


def test_every_table_is_guarded(cluster: Cluster, filled: str) -> None:
    there = {name for (name,) in cluster.ask(filled, "SELECT tablename FROM pg_tables WHERE schemaname = 'alphaloom'")}
    assert there == {*TABLE_KEYS, *POSTGRES_ONLY_TABLES} == {*TABLES}


def test_an_edit_by_the_owner_of_the_server_is_named(cluster: Cluster, tmp_path: Path) -> None:
    address = cluster.database()
    with opened(tmp_path, address) as ledger:
        fill(ledger)
    assert verify_workspace(tmp_path, KeyFolder.of_user()).findings == ()
    cluster.ask(address, "ALTER TABLE alphaloom.verdicts DISABLE TRIGGER ALL")
    cluster.ask(address, "UPDATE alphaloom.verdicts SET body = '{}'")
    cluster.ask(address, "ALTER TABLE alphaloom.calls DISABLE TRIGGER ALL")
    cluster.ask(address, "DELETE FROM alphaloom.calls")
    for table in ("verdicts", "calls"):
        cluster.ask(address, f"ALTER TABLE alphaloom.{table} ENABLE ALWAYS TRIGGER {table}_append_only")
        cluster.ask(address, f"ALTER TABLE alphaloom.{table} ENABLE TRIGGER {table}_numbered")
    findings = verify_workspace(tmp_path, KeyFolder.of_user()).findings
    assert [(one.kind, one.what) for one in findings] == [
        ("dropped", "calls 1 (one / c1)"),
        ("edited", "verdicts 1 (one / f1)"),
    ]


SILENT = "CREATE FUNCTION alphaloom.silent() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$"


@pytest.mark.parametrize(
    "statements",
    [
        ["ALTER TABLE alphaloom.calls DISABLE TRIGGER calls_append_only"],
        ["DROP TRIGGER calls_numbered ON alphaloom.calls"],
        [SILENT, "CREATE TRIGGER a BEFORE INSERT ON alphaloom.calls FOR EACH ROW EXECUTE FUNCTION alphaloom.silent()"],
        ["CREATE RULE silent AS ON INSERT TO alphaloom.calls DO INSTEAD NOTHING"],
        [SILENT.replace("CREATE", "CREATE OR REPLACE").replace("silent", "append_only")],
    ],
)
def test_a_trigger_or_rule_of_somebody_else_is_named(cluster: Cluster, tmp_path: Path, statements: list[str]) -> None:
    address = cluster.database()
    with opened(tmp_path, address):
        pass
    assert verify_workspace(tmp_path, KeyFolder.of_user()).findings == ()
    for statement in statements:
        cluster.ask(address, statement)
    assert {one.kind for one in verify_workspace(tmp_path, KeyFolder.of_user()).findings} == {"schema"}


def test_a_name_and_a_text_are_erased_and_the_guards_stand_again(cluster: Cluster, tmp_path: Path) -> None:
    import psycopg

    address, keys = cluster.database(), KeyFolder.of_user()
    with opened(tmp_path, address) as ledger:
        fill(ledger)
        ledger.events.record("one", "review", "f1/1", {"by": "Ada", "comment": "Ada"})
        text = ledger.objects.put(b"a prompt")
        assert ledger.erasures.erase_person("Ada", "Eve", "she asked")
        assert ledger.erasures.erase_objects([ledger.erasures.find_text(text)], "Eve", "old")
        assert ledger.erasures.is_erased(text)
        assert ledger.events.of("one", "review")[0].body == {"by": "[erased 2]", "comment": "[erased 2]"}
        assert ledger.objects.put(b"a prompt") == text
        assert ledger.objects.get(text) == b"a prompt"
    assert verify_workspace(tmp_path, keys).findings == ()
    for statement in ("UPDATE alphaloom.events SET body = '{}'", "DELETE FROM alphaloom.objects"):
        with pytest.raises(psycopg.IntegrityError, match="is append-only"):
            cluster.ask(address, f"SET session_replication_role = replica; {statement}")
    cluster.ask(address, "ALTER TABLE alphaloom.events DISABLE TRIGGER ALL")
    cluster.ask(address, "UPDATE alphaloom.events SET body = '{}' WHERE kind = 'review'")
    findings = verify_workspace(tmp_path, keys).findings
    assert [one.kind for one in findings if one.what.startswith("events ")] == ["edited"]


# Two workspaces, several processes.


WRITE = """
import sys
from datetime import UTC, datetime
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from alphaloom.ledger import Attempt, Ledger, Look, Run, WindowKey
ledger = Ledger.open(Path(sys.argv[2]), clock=lambda: datetime(2026, 1, 2, tzinfo=UTC), address=sys.argv[3])
who, count = sys.argv[4], int(sys.argv[5])
ledger.runs.start(Run(who, {}, 1, "data", "2026"))
window = WindowKey("data", "2020-01-01", "2020-12-31", ("A", "B"))
with ledger.runs.lock(who):
    for index in range(count):
        key = f"{who}{index:06d}"
        body = ledger.objects.put(key.encode() * 100)
        new = ledger.attempts.add(Attempt(who, key, "h", body, None, "parse", ""))
        ledger.trials.open(Look(who, key, window))
        print(key, new, flush=True)
"""


def writer(workspace: Path, address: str, who: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITE, str(ROOT), str(workspace), address, who, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_processes_of_several_workspaces_share_one_count_from_its_first_moment(
    cluster: Cluster, tmp_path: Path
) -> None:
    address, count = cluster.database(), 20
    processes = [writer(tmp_path / who, address, who, count) for who in "abc"]
    for process in processes:
        _, complaints = process.communicate(timeout=120)
        assert process.returncode == 0, complaints
    with opened(tmp_path / "a") as ledger:
        trials = ledger.trials.overlapping(WINDOW)
        assert [trial.number for trial in trials] == [trial.id for trial in trials] == list(range(1, 3 * count + 1))
        assert {attempt.key for attempt in ledger.attempts.of("b")} == {f"b{index:06d}" for index in range(count)}


def test_every_acknowledged_write_outlives_kill_9(cluster: Cluster, tmp_path: Path) -> None:
    address = cluster.database()
    with writer(tmp_path, address, "k", 1_000_000) as process:
        assert process.stdout is not None
        acknowledged = [process.stdout.readline().split()[0] for _ in range(9)]
        process.kill()
        acknowledged += [line.split()[0] for line in process.stdout.read().split("\n")[:-1]]
    with opened(tmp_path) as ledger, ledger.runs.lock("k"):
        attempts = {attempt.key: attempt.text for attempt in ledger.attempts.of("k")}
        assert set(acknowledged) <= set(attempts)
        assert all(ledger.objects.get(body) == key.encode() * 100 for key, body in attempts.items())
        numbers = [trial.number for trial in ledger.trials.overlapping(WINDOW)]
        assert numbers == list(range(1, len(numbers) + 1))


def test_a_run_that_is_worked_on_from_another_workspace_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    address = cluster.database()
    with writer(tmp_path / "theirs", address, "one", 1_000_000) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with opened(tmp_path / "mine", address) as ledger:
            with pytest.raises(RunLocked, match=f"process {process.pid}@.* is working on run one") as caught:
                ledger.runs.lock("one").__enter__()
            assert caught.value.exit_code == 1
            assert str(ledger.runs.holder("one")).startswith(f"{process.pid}@")
            with pytest.raises(UnknownRun, match="not in this workspace"):
                ledger.runs.files("theirs")
            process.send_signal(signal.SIGKILL)
            process.wait()
            with ledger.runs.lock("one"):
                assert ledger.runs.is_held("one")
            assert ledger.runs.holder("one") is None


# A server that goes away.


def test_a_server_that_is_restarted_again_and_again_costs_no_record_and_counts_none_twice(
    cluster: Cluster, tmp_path: Path
) -> None:
    count = 150
    told = []
    with writer(tmp_path, cluster.database(), "k", count) as process:
        assert process.stdout is not None
        for index in range(count):
            told.append(process.stdout.readline().split())
            if index in (10, 50, 90):
                cluster.restart()
        assert process.wait(timeout=60) == 0
    assert told == [[f"k{index:06d}", "True"] for index in range(count)]
    with opened(tmp_path) as ledger:
        assert [trial.id for trial in ledger.trials.all()] == list(range(1, count + 1))
        assert len(ledger.attempts.of("k")) == count


class Fading:
    """A connection that is lost just after it has kept what was written, so that nobody hears of it."""

    def __init__(self, connection: Any) -> None:
        self.real, self.fades = connection, 1

    @property
    def closed(self) -> bool:
        return bool(self.real.closed)

    def close(self) -> None:
        self.real.close()

    def execute(self, statement: Any, values: Any = None, **options: Any) -> Any:
        import psycopg

        done = self.real.execute(statement, values, **options)
        if statement == "COMMIT" and self.fades:
            self.fades = 0
            self.real.close()
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        return done


def test_a_write_that_was_kept_unheard_is_new_and_counted_once(cluster: Cluster, tmp_path: Path) -> None:
    with opened(tmp_path, cluster.database()) as ledger:
        served = ledger._database._database
        assert isinstance(served, PostgresDatabase)
        link = served._link
        link.connection = Fading(link.connection)
        assert ledger.calls.add(CALL)
        assert not ledger.calls.add(CALL)
        link.connection = Fading(link.connection)
        assert ledger.trials.open(Look("one", "f", WINDOW)).number == 1
        assert len(ledger.calls.of("one")) == len(ledger.trials.all()) == 1


def test_a_lock_outlives_the_connection_that_took_it(cluster: Cluster, tmp_path: Path) -> None:
    address = cluster.database()
    with (
        opened(tmp_path / "mine", address) as mine,
        opened(tmp_path / "theirs", address) as theirs,
        mine.runs.lock("one"),
    ):
        cluster.restart()
        mine.events.record("one", "k", "k", 1)
        with pytest.raises(RunLocked):
            theirs.runs.lock("one").__enter__()


def test_a_lock_that_another_took_meanwhile_ends_the_work(cluster: Cluster, tmp_path: Path) -> None:
    address = cluster.database()
    with (
        opened(tmp_path / "mine", address) as mine,
        opened(tmp_path / "theirs", address) as theirs,
        mine.runs.lock("one"),
    ):
        mine.signer.close()  # else it signs within a second, connects again, and may take the lock first
        cluster.restart()
        with theirs.runs.lock("one"), pytest.raises(RunLocked):
            mine.events.record("one", "k", "k", 1)


def test_what_is_left_of_a_lost_connection_holds_no_lock_against_its_own_process(
    cluster: Cluster, tmp_path: Path
) -> None:
    with opened(tmp_path, cluster.database()) as ledger, ledger.runs.lock("one"):
        served = ledger._database._database
        assert isinstance(served, PostgresDatabase)
        forgotten, served._link.connection = served._link.connection, served._server.connect()
        served._link.connection.close()
        ledger.events.record("one", "k", "k", 1)
        assert not forgotten.closed
    forgotten.close()


def test_a_server_that_stays_away_ends_the_work_after_a_stated_time(cluster: Cluster) -> None:
    served = PostgresDatabase(PostgresServer(cluster.database(), patience_s=0.5))
    cluster.stop()
    try:
        with pytest.raises(
            ServerError, match=r"no PostgreSQL server answers at .* after 0 seconds|after 1 seconds"
        ) as caught:
            served.rows("SELECT 1")
        assert caught.value.exit_code == 3
        assert "alphaloom resume latest" in caught.value.hint
    finally:
        cluster.start()
    assert served.rows("SELECT 1") == [(1,)]
    served.close()
    with pytest.raises(WorkspaceError, match="is closed or misused"):
        served.rows("SELECT 1")


def test_a_server_that_freezes_ends_the_work_after_a_stated_time(cluster: Cluster) -> None:
    served = PostgresDatabase(PostgresServer(cluster.database(), patience_s=0.5, silence_s=0.5))
    with cluster.frozen(), pytest.raises(ServerError, match="no PostgreSQL server answers at") as caught:
        served.rows("SELECT 1")
    assert caught.value.exit_code == 3
    assert "alphaloom resume latest" in caught.value.hint
    assert served.rows("SELECT 1") == [(1,)]
    served.close()


def test_a_server_that_freezes_for_a_while_costs_no_record_and_no_lock(cluster: Cluster) -> None:
    served = PostgresDatabase(PostgresServer(cluster.database(), silence_s=0.3))
    add = lambda session: session.execute("INSERT INTO formats VALUES (2) ON CONFLICT DO NOTHING").rowcount
    with served.held("run one"):
        over = threading.Event()

        def freeze() -> None:
            with cluster.frozen():
                started.set()
                over.wait(1.0)

        started = threading.Event()
        freezing = threading.Thread(target=freeze)
        freezing.start()
        started.wait(10)
        served.write(add)
        freezing.join()
        assert str(served.holder("run one")).startswith(f"{os.getpid()}@")
    assert served.rows("SELECT count(*) FROM formats WHERE version = 2") == [(1,)]
    served.close()


def test_a_slow_statement_is_not_taken_for_silence_before_its_time(cluster: Cluster) -> None:
    served = PostgresDatabase(PostgresServer(cluster.database(), silence_s=5.0))
    assert served.rows("SELECT 1 FROM pg_sleep(0.4)") == [(1,)]
    served.close()


def test_threads_share_one_ledger_through_a_restart(cluster: Cluster, tmp_path: Path) -> None:
    with opened(tmp_path, cluster.database()) as ledger:

        def note(who: int) -> None:
            for index in range(40):
                ledger.events.record("one", "note", f"{who}/{index:03d}", index)

        threads = [threading.Thread(target=note, args=(who,)) for who in range(4)]
        for thread in threads:
            thread.start()
        cluster.restart()
        for thread in threads:
            thread.join()
        assert len(ledger.events.of("one")) == 160


# What is refused.


def refused(folder: Path, address: str) -> LedgerError:
    with pytest.raises(WorkspaceError) as caught:
        Ledger.open(folder, clock=lambda: datetime(2026, 1, 2, tzinfo=UTC), address=address)
    assert caught.value.hint or caught.value.allowed
    assert PASSWORD not in f"{caught.value} {caught.value.record()}"
    assert not (folder / ADDRESS_FILE).exists()
    return caught.value


def test_no_server_no_user_and_no_database_are_told_apart(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = refused(tmp_path, f"postgresql://127.0.0.1:{free_port()}/lab")
    assert (type(told), told.exit_code) == (ServerError, 3)
    assert "no PostgreSQL server answers" in told.message
    for secret in ("", "wrong" + PASSWORD):
        monkeypatch.setenv("PGPASSWORD", secret)
        told = refused(tmp_path, cluster.by_tcp("postgres"))
        assert (type(told), told.exit_code) == (AddressError, 2)
        assert "PGPASSWORD" in told.hint
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    told = refused(tmp_path, cluster.by_tcp("nowhere"))
    assert (told.exit_code, told.hint) == (2, "Make it with: createdb nowhere")
    told = refused(tmp_path, cluster.address("postgres").replace("loom@", "nobody@"))
    assert "refuses the user" in told.message


def test_a_user_without_rights_is_told_which_is_missing(cluster: Cluster, tmp_path: Path) -> None:
    address = cluster.database()
    cluster.ask(address, "CREATE ROLE guest LOGIN")
    assert "GRANT CREATE" in refused(tmp_path, address.replace("loom@", "guest@")).hint


def test_the_password_comes_from_the_environment_and_is_kept_nowhere(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    address = cluster.by_tcp(database_name(cluster.database()))
    with opened(tmp_path, address) as ledger:
        fill(ledger)
        everything = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    for table in TABLES:
        everything.append(repr(cluster.ask(address, f"SELECT * FROM alphaloom.{table}")).encode())
    assert not [one for one in everything if PASSWORD.encode() in one]


def test_a_ledger_from_the_future_is_refused_and_one_of_before_is_mended(cluster: Cluster, tmp_path: Path) -> None:
    address = cluster.database()
    with opened(tmp_path, address):
        pass
    cluster.ask(address, "DROP TRIGGER trials_append_only ON alphaloom.trials")
    cluster.ask(address, "ALTER TABLE alphaloom.formats DISABLE TRIGGER ALL; UPDATE alphaloom.formats SET version = 1")
    with opened(tmp_path):
        pass
    triggers = cluster.ask(address, "SELECT tgname FROM pg_trigger WHERE tgenabled = 'A'")
    assert {name for (name,) in triggers} == {f"{table}_append_only" for table in TABLES}
    cluster.ask(address, "INSERT INTO alphaloom.formats VALUES (99)")
    with pytest.raises(WorkspaceError, match="written by a newer Alphaloom") as caught, opened(tmp_path):
        pass
    assert "Upgrade" in caught.value.hint


def test_a_schema_of_somebody_else_and_a_narrow_encoding_are_left_alone(cluster: Cluster, tmp_path: Path) -> None:
    address = cluster.database()
    cluster.ask(address, "CREATE SCHEMA alphaloom; CREATE TABLE alphaloom.runs (mine TEXT)")
    assert "is no ledger" in refused(tmp_path, address).message
    latin = cluster.database("TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    assert "LATIN1" in str(refused(tmp_path, latin))


def test_a_workspace_keeps_to_its_record(cluster: Cluster, tmp_path: Path) -> None:
    address = cluster.database()
    with opened(tmp_path / "file"), opened(tmp_path / "served", address):
        pass
    for folder, other in (("file", address), ("served", cluster.database())):
        with (
            pytest.raises(WorkspaceError, match="this workspace keeps its record at"),
            opened(tmp_path / folder, other),
        ):
            pass
    with opened(tmp_path / "served", address), opened(tmp_path / "served"):
        assert not (tmp_path / "served" / "ledger.sqlite").exists()
    (tmp_path / "served" / ADDRESS_FILE).write_text("{}")
    with pytest.raises(WorkspaceError, match="does not say where the ledger is"), opened(tmp_path / "served"):
        pass


def test_a_new_ledger_beside_runs_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    address = cluster.database()
    with opened(tmp_path, address):
        pass
    cluster.ask(address, "DROP SCHEMA alphaloom CASCADE")
    with pytest.raises(WorkspaceError, match="holds 1 run, such as one, and their record is gone"), opened(tmp_path):
        pass
    assert cluster.ask(address, "SELECT to_regclass('alphaloom.formats')") == [(None,)]


def test_without_psycopg_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    told = refused(tmp_path, "postgresql://host/alphaloom")
    assert (told.exit_code, told.hint) == (3, f"Install it: {install_hint('postgres')}")
    assert isinstance(told, AlphaloomError)
    assert os.listdir(tmp_path) == ["runs"]
