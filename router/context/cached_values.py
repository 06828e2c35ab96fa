"""Values in a store, each with its digest and the seconds of its computation; a lease lets one worker compute each."""

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
"""Seconds after which a dead worker is replaced."""


@dataclass
class ValueStore:
    """A store with a tally of hits, misses and saved time; `clock` measures durations."""

    store: ByteStore
    tally: CacheTally
    lease_seconds: float = LEASE_SECONDS
    most_bytes: int | None = None
    clock: Callable[[], float] = field(default=time.perf_counter)

    def get(self, key: str, *, counted: bool = True) -> bytes | None:
        """Return the value of a key, or None; a value that does not match its digest is deleted."""
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
        """Store a value unless the key has one, and trim the store; return whether it was new."""
        body = struct.pack("<d", seconds) + value
        framed = hashlib.sha256(body).digest() + body
        new = self.store.put(key, framed, pinned=pinned)
        if new and not pinned:
            self.tally.miss(len(framed))
            if self.most_bytes is not None:
                self.store.trim(self.most_bytes)
        return new

    def once(self, key: str, make: Callable[[], bytes]) -> bytes:
        """Return the value of a key; without one, one worker computes it while the others wait."""
        value = self.get(key)
        for pause in _yield_pauses():
            if value is not None:
                return value
            with self._take_turn(key) as mine:
                value = self._read_made_elsewhere(key)
                if mine and value is None:
                    began = self.clock()
                    computed = make()
                    return self._keep(key, computed, self.clock() - began)
            if value is None:
                time.sleep(pause)
        raise AssertionError("pauses do not end")

    async def once_later(self, key: str, make: Callable[[], Awaitable[bytes]]) -> bytes:
        """Work as `once`, with an awaitable maker; access to the store itself is short enough to block."""
        value = self.get(key)
        for pause in _yield_pauses():
            if value is not None:
                return value
            with self._take_turn(key) as mine:
                value = self._read_made_elsewhere(key)
                if mine and value is None:
                    began = self.clock()
                    computed = await make()
                    return self._keep(key, computed, self.clock() - began)
            if value is None:
                await asyncio.sleep(pause)
        raise AssertionError("pauses do not end")

    @contextmanager
    def _take_turn(self, key: str) -> Iterator[bool]:
        """Yield whether this worker holds the lease to compute a value, and give it back at the end."""
        lease = Lease(self.store, key, self.lease_seconds)
        mine = lease.take()
        try:
            yield mine
        finally:
            if mine:
                lease.give()

    def _read_made_elsewhere(self, key: str) -> bytes | None:
        """Return the value if another worker has stored it meanwhile."""
        value = self.get(key, counted=False)
        if value is not None:
            self.tally.wait()
        return value

    def _keep(self, key: str, value: bytes, seconds: float) -> bytes:
        """Store a value and return the stored one: that of another worker, if it was faster."""
        if self.put(key, value, seconds):
            return value
        return self.get(key, counted=False) or value


def _yield_pauses() -> Iterator[float]:
    """Yield the pauses between checks for another worker's value, short at first."""
    pause = FIRST_MAKER_PAUSE_S
    while True:
        yield pause
        pause = min(2 * pause, MAX_MAKER_PAUSE_S)


class Lease:
    """The right to compute the value of a key, prolonged by a thread of its own until it is given back.

    A lease saves work and protects nothing: the first write wins, so a worker that lost its lease does no harm.
    """

    def __init__(self, store: ByteStore, key: str, seconds: float = LEASE_SECONDS) -> None:
        self._store, self._key, self._seconds = store, key, seconds
        self._owner = uuid.uuid4().hex
        self._ended = threading.Event()
        self._pulse: threading.Thread | None = None

    def take(self) -> bool:
        """Try to take the lease, and return whether it is ours; it must then be given back."""
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
            except StoreUnusable:  # the worker gets the same error when it writes
                return


@dataclass(frozen=True)
class Statistics:
    """Counts since the cache was opened.

    `seconds_saved` is the computation time of the values found, minus the time to read them. `waited` counts values
    that another worker computed meanwhile, `damaged` those that did not match their digest.
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
    """Thread-safe counts."""

    _now: Statistics = Statistics()
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def now(self) -> Statistics:
        """Return the current counts."""
        return self._now

    def hit(self, size: int, saved: float) -> None:
        """Count a value that was in the store."""
        with self._lock:
            now = self._now
            bytes_read, seconds_saved = now.bytes_read + size, now.seconds_saved + saved
            self._now = replace(now, hits=now.hits + 1, bytes_read=bytes_read, seconds_saved=seconds_saved)

    def miss(self, size: int) -> None:
        """Count a value that had to be computed."""
        with self._lock:
            self._now = replace(self._now, misses=self._now.misses + 1, bytes_written=self._now.bytes_written + size)

    def wait(self) -> None:
        """Count a value that another worker computed."""
        with self._lock:
            self._now = replace(self._now, waited=self._now.waited + 1)

    def damage(self) -> None:
        """Count a value that does not match its digest."""
        with self._lock:
            self._now = replace(self._now, damaged=self._now.damaged + 1)
