"""What a cache was worth to this process."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace


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
