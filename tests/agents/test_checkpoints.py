"""Checkpoints: the newest alone is kept, and nothing holds the file once a search has ended, however it ended."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from alphaloom.agents import checkpoints, run_graph
from alphaloom.agents.checkpoints import LastCheckpoint, open_checkpoints

from .doubles import Crash, Lab

CONFIG: Any = {"configurable": {"thread_id": "run", "checkpoint_ns": ""}}


def rows(place: Path, table: str) -> int:
    with closing(sqlite3.connect(place)) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def seize(place: Path) -> None:
    """Take the file for writing at once, or fail."""
    with closing(sqlite3.connect(place, timeout=0, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("ROLLBACK")


def checkpoint(name: str) -> Any:
    return {"id": name, "v": 4, "ts": "", "channel_values": {}, "channel_versions": {}, "versions_seen": {}}


def put(saver: LastCheckpoint, name: str) -> None:
    saver.put(CONFIG, checkpoint(name), {}, {})
    saver.put_writes({"configurable": {**CONFIG["configurable"], "checkpoint_id": name}}, [("a", 1)], "task")


def newest(saver: LastCheckpoint) -> tuple[str, int]:
    found = saver.get_tuple(CONFIG)
    assert found is not None
    return found.checkpoint["id"], len(found.pending_writes or [])


def test_a_campaign_leaves_one_checkpoint(calm: tuple[Lab, dict[str, Any]]) -> None:
    place = calm[0].folder / "graph.sqlite"
    assert rows(place, "checkpoints") == 1
    assert rows(place, "writes") <= 8


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_the_last_that_was_put_counts_whatever_the_clock_said(tmp_path: Path, names: tuple[str, str]) -> None:
    with closing(sqlite3.connect(tmp_path / "file", isolation_level=None)) as connection:
        saver = LastCheckpoint(connection)
        for name in names:
            put(saver, name)
        assert newest(saver) == (names[1], 1)


def test_a_checkpoint_that_cannot_be_put_leaves_the_one_before(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "file", isolation_level=None)) as connection:
        saver = LastCheckpoint(connection)
        put(saver, "a")
        connection.execute("CREATE TRIGGER full BEFORE DELETE ON checkpoints BEGIN SELECT RAISE(FAIL, 'full'); END")
        with pytest.raises(sqlite3.IntegrityError, match="full"):
            put(saver, "b")
        assert newest(saver) == ("a", 1)


async def interrupted(lab: Lab, after: int) -> None:
    """Cancel a search after so many turns of the event loop, and again at each turn until it has ended."""
    search = asyncio.create_task(run_graph(lab.desk(), lab.folder / "graph.sqlite", "run", resume=True))
    for _ in range(after):
        await asyncio.sleep(0)
    while not search.done():
        search.cancel()
        await asyncio.sleep(0)


@pytest.mark.parametrize("after", [5, 9, 17, 33, 65, 129, 257])
def test_an_interrupted_search_leaves_no_thread_and_no_lock(lab: Callable[..., Lab], after: int) -> None:
    campaign = lab()
    before = threading.active_count()
    with suppress(asyncio.CancelledError):
        asyncio.run(interrupted(campaign, after))
    assert threading.active_count() == before
    seize(campaign.folder / "graph.sqlite")


def test_a_search_that_failed_within_can_be_resumed_at_once(lab: Callable[..., Lab]) -> None:
    calm, storm = lab(), lab()
    state = calm.run()
    for after in (7, 40, 150, 400):
        with suppress(asyncio.CancelledError):
            asyncio.run(interrupted(storm, after))
    assert storm.run(resume=True) == state
    assert storm.journal.kept == calm.journal.kept


class Dying(LastCheckpoint):
    """Checkpoints of a process that is killed before it keeps its second one: what nodes returned is kept already."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self.left = 1

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            raise Crash("between what a step returned and its checkpoint")
        return await super().aput(config, checkpoint, metadata, new_versions)


def test_a_kill_between_what_a_step_returned_and_its_checkpoint_ends_nothing(
    lab: Callable[..., Lab], calm: tuple[Lab, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    storm, kills = lab(), 0
    state: dict[str, Any] = {}
    monkeypatch.setattr(checkpoints, "LastCheckpoint", Dying)
    while not state:
        try:
            state = storm.run(resume=True)
        except Crash:
            kills += 1
    assert state == calm[1]
    assert storm.journal.kept == calm[0].journal.kept
    assert kills > 10


def test_checkpoints_are_closed_when_what_is_inside_fails(tmp_path: Path) -> None:
    async def fail() -> None:
        async with open_checkpoints(tmp_path / "deep" / "file"):
            raise KeyError

    with pytest.raises(KeyError):
        asyncio.run(fail())
    seize(tmp_path / "deep" / "file")
