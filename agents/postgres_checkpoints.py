"""The graph's state in PostgreSQL: the last checkpoint of each campaign, beside the record that is kept there.

Each call is one transaction, done again when the server went away in between: it puts the same rows in the same places.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

# Whoever imports this module is about to run a graph on a server; see `checkpoints`.
from langgraph.checkpoint.postgres import PostgresSaver  # noqa: TID253 - this file is imported only where a search keeps checkpoints

from .checkpoints import InTheLoop
from .search_context import DatabaseLink

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple

T = TypeVar("T")
SETUP_LOCK_KEY = 0x0A1FA_100
"""By this number processes take turns when they make the tables."""


class ServedCheckpoint(InTheLoop, PostgresSaver):  # type: ignore[misc]  # it is not installed where types are checked
    """Keeps the newest checkpoint of each thread and what was written since, as `LastCheckpoint` does in a file."""

    def __init__(self, link: DatabaseLink) -> None:
        self._link = link
        link.repeated(lambda connection: PostgresSaver.__init__(self, connection))
        self._again(self._prepare)

    def _again(self, deed: Callable[[], T]) -> T:
        """Do something on the connection that is open now, again if it is lost on the way."""

        def on(connection: Any) -> T:
            self.conn = connection
            return deed()

        return self._link.repeated(on)

    def _prepare(self) -> None:
        """Make the tables, one process at a time.

        Whoever waits must not wait within the server: an index that is made concurrently waits for every open statement.
        """
        while not self.conn.execute("SELECT pg_try_advisory_lock(%s)", (SETUP_LOCK_KEY,)).fetchone()[0]:
            time.sleep(0.05)
        try:
            self.setup()
        finally:
            self.conn.execute("SELECT pg_advisory_unlock(%s)", (SETUP_LOCK_KEY,))

    @contextmanager
    def _cursor(self, *, pipeline: bool = False) -> Iterator[Any]:
        """Lend a cursor, in a transaction where several statements belong together."""
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
        """Keep a checkpoint, and drop those before it with what only they need."""
        from psycopg.types.json import Jsonb

        thread = (str(config["configurable"]["thread_id"]), config["configurable"]["checkpoint_ns"])

        def deed() -> RunnableConfig:
            with self._cursor(pipeline=True) as cursor:
                kept: RunnableConfig = super(ServedCheckpoint, self).put(config, checkpoint, metadata, new_versions)
                for table in ("checkpoints", "checkpoint_writes"):
                    cursor.execute(f"DELETE FROM {table} WHERE {_OLDER_IN_POSTGRES}", (*thread, checkpoint["id"]))
                cursor.execute(_UNUSED, (*thread, Jsonb(checkpoint["channel_versions"])))
                return kept

        return self._again(deed)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the newest checkpoint of a thread, or None."""
        found: CheckpointTuple | None = self._again(lambda: super(ServedCheckpoint, self).get_tuple(config))
        return found

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Keep what a node returned while others of its step still work."""
        self._again(lambda: super(ServedCheckpoint, self).put_writes(config, writes, task_id, task_path))

    def delete_thread(self, thread_id: str) -> None:
        """Forget a thread."""
        self._again(lambda: super(ServedCheckpoint, self).delete_thread(thread_id))


_OLDER_IN_POSTGRES = "thread_id = %s AND checkpoint_ns = %s AND checkpoint_id <> %s"
_UNUSED = """
DELETE FROM checkpoint_blobs AS held WHERE thread_id = %s AND checkpoint_ns = %s
AND NOT EXISTS (SELECT 1 FROM jsonb_each_text(%s) AS named WHERE named.key = held.channel AND named.value = held.version)"""
