"""Checkpoints in PostgreSQL: only the newest is kept, processes share the tables, restarts are waited out."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from alphaloom.agents import run_graph
from alphaloom.ledger.postgres.connection import PostgresLink
from alphaloom.ledger.postgres.server import PostgresServer

from ..ledger import postgres
from ..ledger.postgres import Cluster
from .doubles import Lab

if TYPE_CHECKING:
    from alphaloom.agents.postgres_checkpoints import ServedCheckpoint

ROOT = Path(__file__).resolve().parents[2] / ".root"
CONFIG: Any = {"configurable": {"thread_id": "run", "checkpoint_ns": ""}}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    yield from postgres.cluster()


@pytest.fixture
def address(cluster: Cluster) -> str:
    """Return a database in which the ledger has made its schema."""
    found = cluster.database()
    cluster.ask(found, "CREATE SCHEMA alphaloom")
    return found


@pytest.fixture
def saver(address: str) -> Iterator[ServedCheckpoint]:
    from alphaloom.agents.postgres_checkpoints import ServedCheckpoint

    link = PostgresLink(PostgresServer(address))
    yield ServedCheckpoint(link)
    link.close()


def checkpoint(name: str, version: str) -> Any:
    return {
        "id": name,
        "v": 4,
        "ts": "",
        "channel_values": {"best": [[1.5, "f", "k"]], "round": 2},
        "channel_versions": {"best": version, "round": version},
        "versions_seen": {},
    }


def put(saver: ServedCheckpoint, name: str, version: str) -> None:
    saver.put(CONFIG, checkpoint(name, version), {}, {"best": version, "round": version})
    given: Any = {"configurable": {**CONFIG["configurable"], "checkpoint_id": name}}
    asyncio.run(saver.aput_writes(given, [("a", 1)], "task"))


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_the_last_that_was_put_is_kept_alone_whatever_the_clock_said(
    cluster: Cluster, address: str, saver: ServedCheckpoint, names: tuple[str, str]
) -> None:
    for version, name in enumerate(names):
        put(saver, name, str(version))
        cluster.restart()
    found = asyncio.run(saver.aget_tuple(CONFIG))
    assert found is not None
    assert (found.checkpoint["id"], found.checkpoint["channel_values"]) == (
        names[1],
        {"best": [[1.5, "f", "k"]], "round": 2},
    )
    assert [write[1:] for write in found.pending_writes or []] == [("a", 1)]
    for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes"):
        assert cluster.ask(address, f"SELECT count(*) FROM alphaloom.{table}") == [(1,)]
    asyncio.run(saver.adelete_thread("run"))
    assert asyncio.run(saver.aget_tuple(CONFIG)) is None


def test_a_search_is_the_same_as_in_a_file_and_goes_on_through_restarts(
    cluster: Cluster, address: str, lab: Callable[..., Lab]
) -> None:
    calm, storm = lab(), lab()
    expected = calm.run()
    place = lambda: PostgresLink(PostgresServer(address))
    over = threading.Event()

    def shake() -> None:
        while not over.wait(0.5):
            cluster.restart()

    shaking = threading.Thread(target=shake)
    shaking.start()
    try:
        state = dict(asyncio.run(run_graph(storm.desk(), place, "run", resume=True)))
    finally:
        over.set()
        shaking.join()
    assert state == expected
    assert storm.journal.kept == calm.journal.kept
    assert dict(asyncio.run(run_graph(storm.desk(), place, "run", resume=True))) == expected


MAKE = """
import sys
sys.path.insert(0, sys.argv[1])
from alphaloom.agents.postgres_checkpoints import ServedCheckpoint
from alphaloom.ledger.postgres.connection import PostgresLink
from alphaloom.ledger.postgres.server import PostgresServer
ServedCheckpoint(PostgresLink(PostgresServer(sys.argv[2])))
"""


def test_several_processes_make_the_tables_at_once(address: str) -> None:
    command = [sys.executable, "-c", MAKE, str(ROOT), address]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    for process in processes:
        _, complaints = process.communicate(timeout=120)
        assert process.returncode == 0, complaints
