"""Share the rows or columns of one kernel among threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

SMALL = 1 << 15
"""Cells below which a second thread costs more than it saves."""
COLUMNS = 512
"""Columns that a rolling kernel takes at a time, so that its sums stay in the second cache."""
LANES = 16


def usable_cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cuts(size: int, pieces: int, multiple: int) -> list[tuple[int, int]]:
    """Cut ``[0, size)`` into about that many parts whose lengths are multiples of a number, but for the last."""
    each = -(-size // max(pieces, 1))
    each = max(-(-each // multiple), 1) * multiple
    return [(lo, min(lo + each, size)) for lo in range(0, size, each)]


class Workers:
    """Some threads that run parts of a kernel at the same time; each part writes its own cells."""

    def __init__(self, threads: int) -> None:
        self.threads = max(1, threads)
        self._pool = ThreadPoolExecutor(self.threads - 1, "factors") if self.threads > 1 else None

    def columns(self, part: Callable[[int, int], None], shape: tuple[int, ...]) -> None:
        """Run a kernel over blocks of columns."""
        days, names = shape
        pieces = -(-names // COLUMNS)
        if self._pool is not None and days * names >= SMALL:
            pieces = -(-pieces // self.threads) * self.threads
        self._run(part, cuts(names, pieces, LANES), days * names)

    def rows(self, part: Callable[[int, int], None], shape: tuple[int, ...]) -> None:
        """Run a kernel over blocks of rows."""
        days, names = shape
        shared = self._pool is not None and days * names >= SMALL
        self._run(part, cuts(days, self.threads if shared else 1, 1), days * names)

    def _run(self, part: Callable[[int, int], None], ranges: list[tuple[int, int]], cells: int) -> None:
        if self._pool is None or cells < SMALL or len(ranges) == 1:
            for lo, hi in ranges:
                part(lo, hi)
            return
        mine, others = ranges[:: self.threads], [each for k, each in enumerate(ranges) if k % self.threads]
        waiting = [self._pool.submit(part, lo, hi) for lo, hi in others]
        for lo, hi in mine:
            part(lo, hi)
        for future in waiting:
            future.result()
