"""Where the graph's state is kept: the last checkpoint of a campaign, in one SQLite file.

The connection lives in the thread of the event loop and every write is one transaction that nothing can cancel halfway.
When `open_checkpoints` is left, however it is left, no thread and no transaction of it is.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

# Whoever imports this module is about to run a graph, and `graph` imports it no sooner.
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
"""How long one waits for another process that reads the file; nobody else writes to it while a run's lock is held."""

_OLDER_IN_SQLITE = "thread_id = ? AND checkpoint_ns = ? AND checkpoint_id <> ?"
"""Ids are times; what is put last counts, also where a clock was set back in between."""


@asynccontextmanager
async def open_checkpoints(place: CheckpointPlace) -> AsyncIterator[BaseCheckpointSaver[str]]:
    """Open the checkpoints at a place, making them if they are not there, and close them whatever happens."""
    if not isinstance(place, Path):
        from .postgres_checkpoints import ServedCheckpoint

        with closing(place()) as link:
            yield ServedCheckpoint(link)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(place, timeout=CHECKPOINT_BUSY_SECONDS, isolation_level=None)) as connection:
        yield LastCheckpoint(connection)


class InTheLoop(BaseCheckpointSaver[str]):
    """Does at once, in the thread of the loop, what LangGraph asks to be awaited."""

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
        """Keep a checkpoint."""
        return self.put(config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Keep what a node returned while others of its step still work."""
        self.put_writes(config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Forget a thread."""
        self.delete_thread(thread_id)


class LastCheckpoint(InTheLoop, SqliteSaver):
    """Keeps the newest checkpoint of each thread and what was written since; older ones go with the newest's coming.

    One transaction adds a checkpoint and takes away those before it: a process that is killed leaves the one or the
    other. LangGraph resumes from the newest alone, since no channel here keeps differences.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self.lock = threading.RLock()  # type: ignore[assignment]  # a checkpoint and its pruning share a transaction
        self.setup()

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        """Lend a cursor, within the transaction that is open or one of its own; all of it is done, or nothing."""
        with self.lock, closing(self.conn.cursor()) as cursor:
            if not transaction or self.conn.in_transaction:
                yield cursor
                return
            cursor.execute("BEGIN IMMEDIATE")
            try:
                yield cursor
                cursor.execute("COMMIT")
            except BaseException:  # also Ctrl-C: it goes on its way after the rollback
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
        """Keep a checkpoint, and drop those before it with their writes."""
        thread = (str(config["configurable"]["thread_id"]), config["configurable"]["checkpoint_ns"], checkpoint["id"])
        with self.cursor() as cursor:
            kept = super().put(config, checkpoint, metadata, new_versions)
            for table in ("checkpoints", "writes"):
                cursor.execute(f"DELETE FROM {table} WHERE {_OLDER_IN_SQLITE}", thread)
            return kept
