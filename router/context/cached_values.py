"""Values in a store, each with its digest and the seconds that it took to make; a lease lets one worker make each, once."""

from __future__ import annotations

import asyncio
import hashlib
import struct
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from ..errors import StoreUnusable
from .store import ByteStore

_VALUE_HEADER = struct.Struct("<32sd")
FIRST_MAKER_PAUSE_S, MAX_MAKER_PAUSE_S = 0.01, 0.25
LEASE_SECONDS = 20.0
"""A worker that dies is replaced after so long."""


@dataclass
class ValueStore:
    """A store, read and written with a count of what that was worth; `clock` measures how long things take."""

    store: ByteStore
    tally: CacheTally
    lease_seconds: float = LEASE_SECONDS
    most_bytes: int | None = None
    clock: Callable[[], float] = field(default=time.perf_counter)

    def get(self, key: str, *, counted: bool = True) -> bytes | None:
        """Return the value under a key; one that is not what its digest says is forgotten."""
        began = self.clock()
        framed = self.store.get(key)
        if framed is None:
            return None
        value = framed[_VALUE_HEADER.size :]
        if len(framed) < _VALUE_HEADER.size or hashlib.sha256(framed[32:]).digest() != framed[:32]:
            self.tally.damage()
            self.store.drop(key)
            return None
        if counted:
            _, seconds = _VALUE_HEADER.unpack_from(framed)
            self.tally.hit(len(framed), max(0.0, seconds - (self.clock() - began)))
        return value

    def put(self, key: str, value: bytes, seconds: float = 0.0, *, pinned: bool = False) -> bool:
        """Keep a value, unless one is there, and make room for it; tell whether it was new."""
        body = struct.pack("<d", seconds) + value
        framed = hashlib.sha256(body).digest() + body
        new = self.store.put(key, framed, pinned=pinned)
        if new and not pinned:
            self.tally.miss(len(framed))
            if self.most_bytes is not None:
                self.store.trim(self.most_bytes)
        return new

    def once(self, key: str, make: Callable[[], bytes]) -> bytes:
        """Return the value under a key; if there is none, it is made by one worker while the others wait for it."""
        found = self.get(key)
        for pause in _pauses():
            if found is not None:
                return found
            with self._turn(key) as mine:
                found = self._read_made_elsewhere(key)
                if mine and found is None:
                    began = self.clock()
                    value = make()
                    return self._kept(key, value, self.clock() - began)
            if found is None:
                time.sleep(pause)
        raise AssertionError("pauses do not end")

    async def once_later(self, key: str, make: Callable[[], Awaitable[bytes]]) -> bytes:
        """Do as `once` does, with a maker that is awaited; the store itself answers too soon to be."""
        found = self.get(key)
        for pause in _pauses():
            if found is not None:
                return found
            with self._turn(key) as mine:
                found = self._read_made_elsewhere(key)
                if mine and found is None:
                    began = self.clock()
                    value = await make()
                    return self._kept(key, value, self.clock() - began)
            if found is None:
                await asyncio.sleep(pause)
        raise AssertionError("pauses do not end")

    @contextmanager
    def _turn(self, key: str) -> Iterator[bool]:
        """Tell whether it is our turn to make a value."""
        lease = Lease(self.store, key, self.lease_seconds)
        mine = lease.take()
        try:
            yield mine
        finally:
            if mine:
                lease.give()

    def _read_made_elsewhere(self, key: str) -> bytes | None:
        """Return the value if another worker has made it since."""
        found = self.get(key, counted=False)
        if found is not None:
            self.tally.wait()
        return found

    def _kept(self, key: str, value: bytes, seconds: float) -> bytes:
        """Keep a value and return what is kept: that of another worker, if it was faster after all."""
        if self.put(key, value, seconds):
            return value
        return self.get(key, counted=False) or value


def _pauses() -> Iterator[float]:
    """Yield how long to wait for another worker: short at first."""
    pause = FIRST_MAKER_PAUSE_S
    while True:
        yield pause
        pause = min(2 * pause, MAX_MAKER_PAUSE_S)


class Lease:
    """The right to make what belongs under a key, prolonged by a thread of its own until it is given back.

    A lease spares work and guards nothing: whoever writes first is kept, so a worker that lost its lease does no harm.
    """

    def __init__(self, store: ByteStore, key: str, seconds: float = LEASE_SECONDS) -> None:
        self._store, self._key, self._seconds = store, key, seconds
        self._owner = uuid.uuid4().hex
        self._ended = threading.Event()
        self._pulse: threading.Thread | None = None

    def take(self) -> bool:
        """Tell whether the lease is ours now; then it must be given back."""
        if not self._store.lease(self._key, self._owner, self._seconds):
            return False
        self._pulse = threading.Thread(target=self._beat, name="context lease", daemon=True)
        self._pulse.start()
        return True

    def give(self) -> None:
        """Give it back, if it is ours."""
        if self._pulse is not None:
            self._ended.set()
            self._pulse.join()
            with suppress(StoreUnusable):  # it runs out by itself
                self._store.release(self._key, self._owner)

    def _beat(self) -> None:
        while not self._ended.wait(self._seconds / 3):
            try:
                if not self._store.lease(self._key, self._owner, self._seconds):
                    return
            except StoreUnusable:  # the worker meets it too when it writes
                return


@dataclass(frozen=True)
class Statistics:
    """Counts since the cache was opened.

    `seconds_saved` is what the values that were found had once taken to make, less the time that it took to find them.
    `waited` counts values that another worker made meanwhile, `damaged` those that were not what their digest says.
    """

    hits: int = 0
    misses: int = 0
    waited: int = 0
    damaged: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    seconds_saved: float = 0.0


@dataclass
class CacheTally:
    """The counts, which many threads add to."""

    _now: Statistics = Statistics()
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def now(self) -> Statistics:
        """Return the counts as they are."""
        return self._now

    def hit(self, size: int, saved: float) -> None:
        """Count a value that was found."""
        with self._lock:
            now = self._now
            self._now = replace(now, hits=now.hits + 1, bytes_read=now.bytes_read + size, seconds_saved=now.seconds_saved + saved)  # fmt: skip

    def miss(self, size: int) -> None:
        """Count a value that had to be made."""
        with self._lock:
            self._now = replace(self._now, misses=self._now.misses + 1, bytes_written=self._now.bytes_written + size)

    def wait(self) -> None:
        """Count a value that another worker made."""
        with self._lock:
            self._now = replace(self._now, waited=self._now.waited + 1)

    def damage(self) -> None:
        """Count a value that is not what its digest says."""
        with self._lock:
            self._now = replace(self._now, damaged=self._now.damaged + 1)
