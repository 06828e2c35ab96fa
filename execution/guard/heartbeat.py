"""The guard's sign of life: a file whose time is set each second while the guard goes on, and that goes as it ends."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from ..orders import US_PER_SECOND

BEAT_FILE: Final = "guard.beat"
_NS_PER_US: Final = 1_000


class GuardBeat:
    """Gives the guard's signs of life, and takes the file away when the guard ends in order.

    A disk that fails does not stop the guard: the breaker then sees that the signs have ended.
    """

    def __init__(self, workspace: Path, clock_us: Callable[[], int]) -> None:
        self._file, self._clock_us, self._last_us = workspace / BEAT_FILE, clock_us, 0

    def __enter__(self) -> Self:
        """Give the first sign."""
        with suppress(OSError):
            self._file.touch()
        self.beat()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Take the file away, unless the guard failed."""
        if kind is None:
            with suppress(OSError):
                self._file.unlink()

    def beat(self) -> None:
        """Give a sign, at most once a second."""
        now_us = self._clock_us()
        if abs(now_us - self._last_us) >= US_PER_SECOND:
            self._last_us = now_us
            with suppress(OSError):
                os.utime(self._file, ns=(now_us * _NS_PER_US, now_us * _NS_PER_US))


def read_beat(workspace: Path) -> int | None:
    """Return the guard's last sign of life, microseconds since 1970; None where no guard was started, or it ended."""
    try:
        return os.stat(workspace / BEAT_FILE).st_mtime_ns // _NS_PER_US
    except FileNotFoundError:
        return None
