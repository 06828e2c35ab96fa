"""Real processes on one store: the work is done once, and a dead worker is replaced."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from alphaloom.router.context import ContextCache
from alphaloom.router.context.redis_store import RedisStore
from alphaloom.router.context.store import SqliteStore

from .conftest import KINDS
from .texts import filing

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[3]


def run(*arguments: object, processes: int = 1) -> list[tuple[int, str]]:
    """Run so many workers at once; return how each ended and what it said. None is left behind."""
    with ExitStack() as stack:
        command = [sys.executable, "-m", "tests.router.context.worker", *map(str, arguments)]
        workers = [
            stack.enter_context(
                subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            )
            for _ in range(processes)
        ]
        for worker in workers:
            stack.callback(worker.kill)
        heard = [worker.communicate(timeout=120) for worker in workers]
        assert all(not complaints for _, complaints in heard), heard
        return [(worker.returncode, said.strip()) for worker, (said, _) in zip(workers, heard, strict=True)]


@pytest.fixture(params=KINDS)
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Yield a kind of store and where it is."""
    if request.param == "redis":
        yield "redis", request.getfixturevalue("redis").address
    else:
        yield "file", str(tmp_path / "context.db")


def test_processes_that_add_one_document_at_once_do_the_work_once(shared: tuple[str, str], tmp_path: Path) -> None:
    counts = tmp_path / "counts"
    ended = run(*shared, 1, counts, processes=4)
    assert {code for code, _ in ended} == {0}
    assert len({name for _, name in ended}) == 1
    assert len(counts.read_text().split()) == 1


def test_a_worker_that_dies_at_work_is_replaced_when_its_lease_has_run_out(
    shared: tuple[str, str], tmp_path: Path
) -> None:
    counts = tmp_path / "counts"
    assert run(*shared, 2, counts, "die-before") == [(9, "")]
    ((code, _),) = run(*shared, 2, counts)
    assert code == 0
    assert len(counts.read_text().split()) == 2


def test_a_worker_that_dies_after_writing_left_all_of_it_and_nobody_waits_for_its_lease(
    shared: tuple[str, str], tmp_path: Path, embedded: list[str]
) -> None:
    assert run(*shared, 3, tmp_path / "counts", "die-after") == [(9, "")]
    kind, place = shared
    store = RedisStore(place, namespace="shared", place="local") if kind == "redis" else SqliteStore(Path(place))
    ContextCache(store).add(filing(3), sensitivity="public")
    assert not embedded
    store.close()


def test_a_worker_that_takes_long_keeps_its_lease(tmp_path: Path) -> None:
    """The work takes three times as long as a lease that nobody prolongs."""
    store, seconds = SqliteStore(tmp_path / "context.db"), 0.3
    cache = ContextCache(store, lease_seconds=seconds)
    key = "index:" + "0" * 64

    def make() -> bytes:
        time.sleep(3 * seconds)
        assert not store.lease(key, "another", seconds)
        return b"made"

    assert cache._shelf.once(key, make) == b"made"
    assert store.lease(key, "another", seconds)
    store.close()
