"""Share the parts of a computation among threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count


def count_usable_cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Workers:
    """Threads that take one part after the other; each part writes cells of its own."""

    def __init__(self, threads: int) -> None:
        self.threads = max(1, threads)
        self._pool = ThreadPoolExecutor(self.threads - 1, "factors") if self.threads > 1 else None

    def share(self, parts: int, body: Callable[[int, int], None], *, alone: bool = False) -> None:
        """Run ``body(thread, part)`` for every part; with `alone` in this thread only.

        An error in one part is raised after every thread has stopped.
        """
        queue = count()

        def work(thread: int) -> None:
            while (part := next(queue)) < parts:
                body(thread, part)

        if self._pool is None or alone or parts < 2:
            work(0)
            return
        waiting = [self._pool.submit(work, thread) for thread in range(1, min(self.threads, parts))]
        try:
            work(0)
        finally:
            errors = [error for future in waiting if (error := future.exception()) is not None]
        for error in errors:
            raise error
