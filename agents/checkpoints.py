"""Checkpoints of the graph's state: the last one of a campaign, in one SQLite file.

The connection lives in the thread of the event loop, and every write is one transaction that nothing can cancel
halfway. After `open_checkpoints` ends, normally or by an error, no thread and no open transaction of it remains.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

# `graph` imports this module only when it is about to run.
from langgraph.checkpoint.base import BaseCheckpointSaver  # noqa: TID253 - this file is imported only where a search keeps checkpoints
from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: TID253 - this file is imported only where a search keeps checkpoints

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import (
        ChannelVersions,
        Checkpoint,
        CheckpointMetadata,
        CheckpointTuple,
    )

    from .search_context import CheckpointPlace

CHECKPOINT_BUSY_SECONDS = 30.0
"""Wait for another process that reads the file; no other process writes to it while the run's lock is held."""

_OLDER_IN_SQLITE = "thread_id = ? AND checkpoint_ns = ? AND checkpoint_id <> ?"
"""Compares ids for inequality only: ids are times, and the last checkpoint written counts even if the clock was set
back."""


@asynccontextmanager
async def open_checkpoints(place: CheckpointPlace) -> AsyncIterator[BaseCheckpointSaver[str]]:
    """Open the checkpoints at a place, create them if they are missing, and close them at the end."""
    if not isinstance(place, Path):
        from .postgres_checkpoints import ServedCheckpoint

        with closing(place()) as link:
            yield ServedCheckpoint(link)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(place, timeout=CHECKPOINT_BUSY_SECONDS, isolation_level=None)) as connection:
        yield LastCheckpoint(connection)


class InTheLoop(BaseCheckpointSaver[str]):
    """Run LangGraph's asynchronous methods synchronously, in the thread of the event loop."""

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the newest checkpoint of a thread, or None."""
        return self.get_tuple(config)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint."""
        return self.put(config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a node returned while others of its step still work."""
        self.put_writes(config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a thread."""
        self.delete_thread(thread_id)


class LastCheckpoint(InTheLoop, SqliteSaver):
    """Keep only the newest checkpoint of each thread, with the writes since.

    One transaction adds a checkpoint and deletes the older ones, so a process that is killed leaves one or the other.
    LangGraph resumes from the newest alone, since no channel here stores differences.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self.lock = threading.RLock()  # type: ignore[assignment]  # a checkpoint and its pruning share a transaction
        self.setup()

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        """Yield a cursor within the open transaction, or within one of its own that is rolled back on any error."""
        with self.lock, closing(self.conn.cursor()) as cursor:
            if not transaction or self.conn.in_transaction:
                yield cursor
                return
            cursor.execute("BEGIN IMMEDIATE")
            try:
                yield cursor
                cursor.execute("COMMIT")
            except BaseException:  # also Ctrl-C, which is raised again after the rollback
                with suppress(sqlite3.Error):
                    cursor.execute("ROLLBACK")
                raise

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint, and delete the older ones with their writes."""
        thread = (str(config["configurable"]["thread_id"]), config["configurable"]["checkpoint_ns"], checkpoint["id"])
        with self.cursor() as cursor:
            saved = super().put(config, checkpoint, metadata, new_versions)
            for table in ("checkpoints", "writes"):
                cursor.execute(f"DELETE FROM {table} WHERE {_OLDER_IN_SQLITE}", thread)
            return saved
