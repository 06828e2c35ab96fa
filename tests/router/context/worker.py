"""A process that adds one document.

python -m tests.router.context.worker STORE PLACE SEED COUNTS [die-before | die-after]

Each time that it embeds, it adds a line to the file COUNTS. It dies without a word before it has written what it made,
or after that and before it gives its lease back.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

from alphaloom.router.context import ByteStore, ContextCache, index
from alphaloom.router.context.redis_store import RedisStore
from alphaloom.router.context.store import SqliteStore
from alphaloom.router.context.vectors import TextVectors, embed_texts

from .texts import filing

LEASE_SECONDS = 0.6


def slow(texts: Sequence[str]) -> TextVectors:
    """Embed texts, take time over it, and note that it was asked."""
    with Path(sys.argv[4]).open("a") as counts:
        counts.write(f"{os.getpid()}\n")
    time.sleep(0.2)
    if "die-before" in sys.argv:
        os._exit(9)
    return embed_texts(texts)


class Dying:
    """A store whose process dies when it is to give a lease back."""

    def release(self, key: str, owner: str) -> None:
        os._exit(9)


class DyingFile(Dying, SqliteStore):
    """Such a file."""


class DyingRedis(Dying, RedisStore):
    """Such a connection."""


def opened() -> ByteStore:
    kind, place = sys.argv[1:3]
    dies = "die-after" in sys.argv
    if kind == "redis":
        return (DyingRedis if dies else RedisStore)(place, namespace="shared", place="local")
    return (DyingFile if dies else SqliteStore)(Path(place))


def main() -> None:
    store = opened()
    cache = ContextCache(store, lease_seconds=LEASE_SECONDS)
    with patch.object(index, "embed_texts", slow):
        print(cache.add(filing(int(sys.argv[3])), sensitivity="public").id)
    store.close()


if __name__ == "__main__":
    main()
