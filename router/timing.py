"""Injectable clock, sleep and jitter."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """A clock in seconds that never goes back, a way to sleep, and numbers from 0 to below 1."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    chance: Callable[[], float] = random.random

    def spread(self, seconds: float, share: float = 0.25) -> float:
        """Return the seconds, longer by up to `share` of them, so that waiting callers do not all retry at once."""
        return seconds * (1.0 + share * self.chance())
