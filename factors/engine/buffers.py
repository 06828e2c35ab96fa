"""Keep the arrays of an evaluation: a pool of free ones, and a cache of subtrees that are expensive to compute."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..kernels.cells import Array
from ..language.node import Node

MAX_FREE_ARRAYS = 24
SLAB_BYTES = 1 << 25


class BufferPool:
    """Free arrays of one size, so that stored values do not pay for fresh memory."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._free: list[Array] = []

    def take(self) -> Array:
        """Return an uninitialised array; new ones are cut from a slab, whose pages cost less to touch."""
        if not self._free:
            count = max(1, SLAB_BYTES // max(4 * self._size, 1))
            self._free += list(np.empty((min(count, MAX_FREE_ARRAYS), self._size), np.float32))
        return self._free.pop()

    def give(self, array: Array) -> None:
        """Take back an array that is no longer read."""
        if len(self._free) < MAX_FREE_ARRAYS:
            self._free.append(array)


class Scratch:
    """Scratch arrays of one tile or a few rows, reused by every stage; each thread has its own."""

    def __init__(self) -> None:
        self._room: dict[int, list[Array]] = {}

    def take(self, thread: int, count: int, size: int) -> list[Array]:
        """Return `count` uninitialised flat arrays of at least `size` elements."""
        room = self._room.setdefault(thread, [])
        room[:] = [array for array in room if array.size >= size]
        room += [np.empty(size, np.float32) for _ in range(count - len(room))]
        return room[:count]


@dataclass(slots=True)
class _Entry:
    array: Array
    worth: float
    stamp: int


class SubtreeCache:
    """Values of subtrees under a budget of bytes.

    The entry of least worth is evicted first. Its worth is the cost of computing it again, per byte, plus the worth of
    the last evicted entry at the time of its last use, so that unused entries age (GreedyDual-Size; Cao and Irani,
    1997).
    """

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._entries: dict[Node, _Entry] = {}
        self._heap: list[tuple[float, int, Node]] = []
        self._age = 0.0
        self._stamps = 0
        self.bytes = 0

    def __contains__(self, node: Node) -> bool:
        """Return whether the values of a subtree are cached, without raising their worth."""
        return node in self._entries

    def get(self, node: Node, cost: float) -> Array | None:
        """Return the values of a subtree and renew their worth; None if they are not cached."""
        entry = self._entries.get(node)
        if entry is None:
            return None
        self._store(node, entry.array, cost)
        return entry.array

    def offer(self, node: Node, array: Array, cost: float) -> Iterator[tuple[Node, Array]]:
        """Cache the values of a subtree; yield the evicted ones, which may include it."""
        if array.nbytes > self._budget:
            yield node, array
            return
        if node not in self._entries:
            self.bytes += array.nbytes
        self._store(node, array, cost)
        while self.bytes > self._budget:
            yield self._evict()

    def _store(self, node: Node, array: Array, cost: float) -> None:
        """Store a subtree with its present worth; older lines of it in the heap are skipped when popped."""
        self._stamps += 1
        entry = _Entry(array, self._age + cost / max(array.nbytes, 1), self._stamps)
        self._entries[node] = entry
        heapq.heappush(self._heap, (entry.worth, entry.stamp, node))
        if len(self._heap) > 4 * len(self._entries) + 64:
            self._heap = [(cached.worth, cached.stamp, name) for name, cached in self._entries.items()]
            heapq.heapify(self._heap)

    def _evict(self) -> tuple[Node, Array]:
        """Remove the subtree of least worth."""
        while True:
            worth, stamp, node = heapq.heappop(self._heap)
            entry = self._entries.get(node)
            if entry is not None and entry.stamp == stamp:
                del self._entries[node]
                self._age = worth
                self.bytes -= entry.array.nbytes
                return node, entry.array
