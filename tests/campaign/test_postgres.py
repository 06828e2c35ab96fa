"""Campaigns whose record is in PostgreSQL: the bytes of one in a file, whatever becomes of server and process."""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from alphaloom.desk.cli.main import run_command
from alphaloom.extras import install_hint

from ..ledger import postgres
from ..ledger.postgres import PASSWORD, Cluster, free_port
from .test_kill import answered_again, bill, finish, kill_after, killed, start, wait_for

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    yield from postgres.cluster()


def test_a_server_restarted_in_the_middle_changes_no_byte_and_repeats_no_paid_call(
    cluster: Cluster, tmp_path: Path
) -> None:
    expected = finish(tmp_path / "file", tmp_path / "file.jsonl")
    log = tmp_path / "served.jsonl"
    process = start(tmp_path / "served", log, cluster.database())
    for most in (8, 28, 48, 68):
        wait_for(process, log, most)
        cluster.restart()
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors.decode()[-2000:]
    (results,) = (tmp_path / "served").glob("runs/*/results.json")
    assert results.read_bytes() == expected
    assert answered_again(log) == []
    assert set(bill(log).values()) == {1}
    files = {path.name for path in (tmp_path / "served").rglob("*.sqlite")}
    assert files <= {"sketches.sqlite"}, "an index, which can be made again; no record and no checkpoint"


@pytest.mark.slow
def test_killed_at_random_moments_between_restarts_it_ends_the_same(cluster: Cluster, tmp_path: Path) -> None:
    began = time.monotonic()
    expected = finish(tmp_path / "file", tmp_path / "file.jsonl")
    whole = time.monotonic() - began
    draw, kills = random.Random(6), 0
    for storm in range(3):
        workspace, log, address = tmp_path / f"{storm}", tmp_path / f"{storm}.jsonl", cluster.database()
        for _ in range(4):
            kills += killed(start(workspace, log, address), draw.uniform(0.3, whole))
            cluster.restart()
        assert finish(workspace, log, address) == expected
        assert answered_again(log) == []
    assert kills > 6


def test_killed_once_it_ends_the_same(cluster: Cluster, tmp_path: Path) -> None:
    expected = finish(tmp_path / "file", tmp_path / "file.jsonl")
    address, log = cluster.database(), tmp_path / "served.jsonl"
    kill_after(start(tmp_path / "served", log, address), log, 24)
    assert finish(tmp_path / "served", log, address) == expected
    assert answered_again(log) == []


@pytest.mark.slow
def test_two_campaigns_at_once_on_one_database_use_each_level_once(cluster: Cluster, tmp_path: Path) -> None:
    """Another seed would be another market with names of its own, on which looks are counted apart."""
    address = cluster.database()
    running = {
        who: start(tmp_path / who, tmp_path / f"{who}.jsonl", address, f"agents.candidates={count}")
        for who, count in (("a", 2), ("b", 3))
    }
    wait_for(running["a"], tmp_path / "a.jsonl", 20)
    cluster.restart()
    for process in running.values():
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors.decode()[-2000:]
    rows = cluster.ask(address, LOOKS)
    assert [number for number, *_ in rows] == list(range(1, len(rows) + 1))
    assert len({run for _, run, _ in rows}) == 2
    levels = [json.loads(body)["level"] for *_, body in rows]
    assert len(set(levels)) == len(levels) > 4


LOOKS = "SELECT number, run, outcomes.body FROM alphaloom.trials JOIN alphaloom.outcomes ON trial = id ORDER BY number"


def test_a_server_that_is_down_ends_a_run_before_it_begins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if why := postgres.lacking():
        pytest.skip(why)
    address = f"postgresql://127.0.0.1:{free_port()}/alphaloom"
    code = run_command(["run", "--workspace", str(tmp_path / "w"), "--ledger", address])
    errors = capsys.readouterr().err
    assert code == 3
    assert "no PostgreSQL server answers" in errors
    assert "Traceback" not in errors


def test_a_password_in_the_address_is_refused_and_not_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"postgresql://loom:{PASSWORD}@localhost/alphaloom"
    assert run_command(["run", "--workspace", str(tmp_path / "w"), "--ledger", address, "--json"]) == 2
    told = capsys.readouterr()
    assert PASSWORD not in told.out + told.err
    assert "PGPASSWORD" in json.loads(told.out)["hint"]


def test_postgres_that_is_missing_ends_a_run_before_it_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert run_command(["run", "--workspace", str(tmp_path / "w"), "--ledger", "postgresql://localhost/alphaloom"]) == 3
    assert install_hint("postgres") in capsys.readouterr().err
    assert not list((tmp_path / "w").glob("runs/*"))
