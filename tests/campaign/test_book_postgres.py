"""Two machines that step one book, whose record is in PostgreSQL: one waits, and no day is doubled."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from alphaloom.campaign import BookSettings, list_steps, open_book, replay_book
from alphaloom.evaluation.admission import add_by_hand
from alphaloom.factors import parse
from alphaloom.ledger import Ledger

from ..ledger import postgres
from ..ledger.postgres import Cluster
from . import markets
from .conftest import Files

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    yield from postgres.cluster()


def start(workspace: Path, files: Files) -> subprocess.Popen[bytes]:
    """Step the book in a process of its own, whose output goes to files of its workspace."""
    command = [sys.executable, "-m", "alphaloom", "book", "step", "paper", "--workspace", str(workspace)]
    command += ["--panel", str(files.panel), "--sectors", str(files.sectors)]
    with (workspace / "out").open("wb") as out, (workspace / "err").open("wb") as err:
        return subprocess.Popen(command, stdout=out, stderr=err)


def test_one_waits_and_none_doubles(cluster: Cluster, files: Files, tmp_path: Path) -> None:
    address, folders = cluster.database(), [tmp_path / "one", tmp_path / "two"]
    ledgers = [Ledger.open(folder, clock=lambda: datetime.now(UTC), address=address) for folder in folders]
    add_by_hand(ledgers[0], parse("rank(-ts_std(returns, 20))"), "2199-07-09")
    book = open_book(ledgers[0], "paper", BookSettings(), markets.NOON)
    with ledgers[0].runs.lock(book):
        running = [start(folder, files) for folder in folders]
        end = time.monotonic() + 60
        while not all("since another process steps this book" in (folder / "err").read_text() for folder in folders):
            assert time.monotonic() < end, [(folder / "err").read_text() for folder in folders]
            time.sleep(0.1)
        assert [process.poll() for process in running] == [None, None]
    assert [process.wait(timeout=120) for process in running] == [0, 0]
    assert sum("Nothing new" in (folder / "out").read_text() for folder in folders) == 1
    assert len(list_steps(ledgers[0], book)) == 1
    assert not any(parts for ledger in ledgers for _, parts in replay_book(ledger, book))
    for ledger in ledgers:
        ledger.close()
