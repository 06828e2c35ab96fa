"""Checkpoints of the graph's state in PostgreSQL: the last one of each campaign, beside the campaign's record.

Each call is one transaction, repeated if the connection is lost: it writes the same rows again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

# `checkpoints` imports this module only when a graph is about to run on a server.
from langgraph.checkpoint.postgres import PostgresSaver  # noqa: TID253 - this file is imported only where a search keeps checkpoints

from .checkpoints import InTheLoop
from .search_context import DatabaseLink

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple

T = TypeVar("T")
SETUP_LOCK_KEY = 0x0A1FA_100
"""Advisory lock under which one process at a time creates the tables."""


class ServedCheckpoint(InTheLoop, PostgresSaver):  # type: ignore[misc]  # it is not installed where types are checked
    """Keep the newest checkpoint of each thread with the writes since, as `LastCheckpoint` does in a file."""

    def __init__(self, link: DatabaseLink) -> None:
        self._link = link
        link.repeated(lambda connection: PostgresSaver.__init__(self, connection))
        self._repeat(self._prepare)

    def _repeat(self, action: Callable[[], T]) -> T:
        """Run a function on the open connection, and run it again if the connection is lost."""

        def on(connection: Any) -> T:
            self.conn = connection
            return action()

        return self._link.repeated(on)

    def _prepare(self) -> None:
        """Create the tables, one process at a time.

        The wait polls on this side: an index that is built concurrently waits for every open statement, so a process
        that waited within the server would block the one that builds it.
        """
        while not self.conn.execute("SELECT pg_try_advisory_lock(%s)", (SETUP_LOCK_KEY,)).fetchone()[0]:
            time.sleep(0.05)
        try:
            self.setup()
        finally:
            self.conn.execute("SELECT pg_advisory_unlock(%s)", (SETUP_LOCK_KEY,))

    @contextmanager
    def _cursor(self, *, pipeline: bool = False) -> Iterator[Any]:
        """Yield a cursor, in a transaction if several statements belong together."""
        from psycopg.rows import dict_row

        with self.conn.cursor(binary=True, row_factory=dict_row) as cursor:
            if not pipeline:
                yield cursor
                return
            with self.conn.transaction():
                yield cursor

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint, and delete the older ones with the rows that only they need."""
        from psycopg.types.json import Jsonb

        thread = (str(config["configurable"]["thread_id"]), config["configurable"]["checkpoint_ns"])

        def save() -> RunnableConfig:
            with self._cursor(pipeline=True) as cursor:
                saved: RunnableConfig = super(ServedCheckpoint, self).put(config, checkpoint, metadata, new_versions)
                for table in ("checkpoints", "checkpoint_writes"):
                    cursor.execute(f"DELETE FROM {table} WHERE {_OLDER_IN_POSTGRES}", (*thread, checkpoint["id"]))
                cursor.execute(_UNUSED, (*thread, Jsonb(checkpoint["channel_versions"])))
                return saved

        return self._repeat(save)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the newest checkpoint of a thread, or None."""
        checkpoint: CheckpointTuple | None = self._repeat(lambda: super(ServedCheckpoint, self).get_tuple(config))
        return checkpoint

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a node returned while others of its step still work."""
        self._repeat(lambda: super(ServedCheckpoint, self).put_writes(config, writes, task_id, task_path))

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread."""
        self._repeat(lambda: super(ServedCheckpoint, self).delete_thread(thread_id))


_OLDER_IN_POSTGRES = "thread_id = %s AND checkpoint_ns = %s AND checkpoint_id <> %s"
_UNUSED = """
DELETE FROM checkpoint_blobs AS held WHERE thread_id = %s AND checkpoint_ns = %s
AND NOT EXISTS (
  SELECT 1 FROM jsonb_each_text(%s) AS named WHERE named.key = held.channel AND named.value = held.version
)"""
