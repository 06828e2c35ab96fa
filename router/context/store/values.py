"""Values in a store, each with its digest and what it took to make, and each made once, whoever asks at once."""

from __future__ import annotations

import asyncio
import hashlib
import struct
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ..statistics import CacheTally
from .lease import LEASE_SECONDS, Lease
from .store import ByteStore

_VALUE_HEADER = struct.Struct("<32sd")
FIRST_MAKER_PAUSE_S, MAX_MAKER_PAUSE_S = 0.01, 0.25


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
