"""How long a model takes: a moving mean, a 95th percentile, and whether it has become slow."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from statistics import median

LATENCIES_KEPT = 100
MIN_LATENCIES = 8
"""Answers before a model is compared with anything."""
MOVING_MEAN_WEIGHT = 0.3
"""Weight of the newest answer in the mean of now."""
MIN_SLOWNESS_S = 0.25
"""Differences below this are nobody's slowness."""


class Latency:
    """The seconds that one model's answers took."""

    def __init__(self) -> None:
        self._kept: deque[float] = deque(maxlen=LATENCIES_KEPT)
        self._fresh = 0
        self.now = math.nan

    @property
    def known(self) -> bool:
        """Whether there are enough answers, and enough since it was last excused, to say anything."""
        return len(self._kept) >= MIN_LATENCIES and self._fresh >= MIN_LATENCIES // 2

    def add(self, seconds: float) -> None:
        """Take in an answer; that of a call cut off is taken as if it had come then."""
        self.now = seconds if not self._fresh else self.now + MOVING_MEAN_WEIGHT * (seconds - self.now)
        self._kept.append(seconds)
        self._fresh += 1

    def excuse(self) -> None:
        """Begin the mean of now afresh: what was slow a while ago must show it again."""
        self._fresh = 0

    @property
    def ever(self) -> float:
        """The usual seconds of its latest answers, the slow among them included."""
        return median(self._kept)

    def percentile(self, share: float = 0.95) -> float | None:
        """Return the seconds within which that share of its answers came; None before there are enough."""
        if len(self._kept) < MIN_LATENCIES:
            return None
        return sorted(self._kept)[math.ceil(share * len(self._kept)) - 1]


def is_slow(own: Latency, peers: Iterable[Latency], factor: float) -> bool:
    """Return whether a model takes several times as long as its peers do, or as it did itself."""
    if not factor or not own.known:
        return False
    usual = [own.ever]
    if others := [peer.now for peer in peers if peer.known]:
        usual.append(median(others))
    return any(own.now > factor * seconds and own.now - seconds > MIN_SLOWNESS_S for seconds in usual)
