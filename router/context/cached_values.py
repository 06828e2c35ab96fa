"""Values in a store, each with its digest; a lease lets one worker compute each."""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from ..errors import StoreUnusable
from .store import ByteStore

DIGEST_BYTES, UNUSED_BYTES = 32, 8
"""Bytes before a value in the store. In the unused ones older versions wrote how long its computation took."""
FIRST_MAKER_PAUSE_S, MAX_MAKER_PAUSE_S = 0.01, 0.25
LEASE_SECONDS = 20.0
"""Seconds after which a dead worker is replaced."""


@dataclass
class ValueStore:
    """A store whose values are checked against their digests, with a limit on its bytes."""

    store: ByteStore
    lease_seconds: float
    most_bytes: int

    def get(self, key: str) -> bytes | None:
        """Return the value of a key, or None; a value that does not match its digest is deleted."""
        framed = self.store.get(key)
        if framed is None:
            return None
        digest, body = framed[:DIGEST_BYTES], framed[DIGEST_BYTES:]
        if len(body) < UNUSED_BYTES or hashlib.sha256(body).digest() != digest:
            self.store.drop(key)
            return None
        return body[UNUSED_BYTES:]

    def put(self, key: str, value: bytes, *, pinned: bool = False) -> bool:
        """Store a value unless the key has one, and trim the store; return whether it was new."""
        body = bytes(UNUSED_BYTES) + value
        new = self.store.put(key, hashlib.sha256(body).digest() + body, pinned=pinned)
        if new and not pinned:
            self.store.trim(self.most_bytes)
        return new

    def once(self, key: str, make: Callable[[], bytes]) -> bytes:
        """Return the value of a key; without one, one worker computes it while the others wait."""
        value = self.get(key)
        for pause in _yield_pauses():
            if value is not None:
                return value
            with hold_lease(self.store, key, self.lease_seconds) as mine:
                value = self.get(key)
                if mine and value is None:
                    return self._keep(key, make())
            if value is None:
                time.sleep(pause)
        raise AssertionError("pauses do not end")

    async def once_later(self, key: str, make: Callable[[], Awaitable[bytes]]) -> bytes:
        """Work as `once`, with an awaitable maker; access to the store itself is short enough to block."""
        value = self.get(key)
        for pause in _yield_pauses():
            if value is not None:
                return value
            with hold_lease(self.store, key, self.lease_seconds) as mine:
                value = self.get(key)
                if mine and value is None:
                    return self._keep(key, await make())
            if value is None:
                await asyncio.sleep(pause)
        raise AssertionError("pauses do not end")

    def _keep(self, key: str, value: bytes) -> bytes:
        """Store a value and return the stored one: that of another worker, if it was faster."""
        return value if self.put(key, value) else self.get(key) or value


def _yield_pauses() -> Iterator[float]:
    """Yield the pauses between checks for another worker's value, short at first."""
    pause = FIRST_MAKER_PAUSE_S
    while True:
        yield pause
        pause = min(2 * pause, MAX_MAKER_PAUSE_S)


@contextmanager
def hold_lease(store: ByteStore, key: str, seconds: float) -> Iterator[bool]:
    """Yield whether this worker has the right to compute the value of a key; a thread prolongs it until the end.

    A lease saves work and protects nothing: the first write wins, so a worker that lost its lease does no harm.
    """
    owner, ended = uuid.uuid4().hex, threading.Event()
    if not store.lease(key, owner, seconds):
        yield False
        return

    def prolong() -> None:
        with suppress(StoreUnusable):  # the worker gets the same error when it writes
            while not ended.wait(seconds / 3) and store.lease(key, owner, seconds):
                pass

    pulse = threading.Thread(target=prolong, name="context lease", daemon=True)
    pulse.start()
    try:
        yield True
    finally:
        ended.set()
        pulse.join()
        with suppress(StoreUnusable):  # it runs out by itself
            store.release(key, owner)
