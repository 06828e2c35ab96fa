"""Counts messages as a rule on order rates counts them: in each rolling second, each second of the clock, and each day.

A second is too busy when it holds as many messages as the profile names. In a rolling window a second begins after the
last one that was too busy, so that one burst is counted once.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from ..orders import US_PER_SECOND
from .profile import RateLimit

WARN_PERCENT: Final = 60
"""Part of a limit from which a ruling warns, in percent."""
_PERCENT: Final = 100
NO_LIMIT: Final = 1 << 64
"""Stands for no limit where numbers are compared in one go: larger than any of them."""

Rates = tuple[int, int, int]


class RateCounter:
    """Counts orders, or orders and cancels, of one account; its memory is the messages of one second.

    Attributes
    ----------
    in_second, in_day, most
        Messages in the last second of the clock, in the day, and in the busiest rolling second of the day.
    busy_rolling, busy_calendar
        Seconds of the day that were too busy.
    limits
        The most that may be sent in the rolling second, the clock's second and the day; None for no limit.
    bounds, warns_at
        The same with `NO_LIMIT` for None, and the numbers from which a ruling warns.
    """

    __slots__ = (
        "_busy_until", "_limit", "_second", "_times", "bounds", "busy_calendar", "busy_rolling", "in_day", "in_second",
        "limits", "most", "warns_at",
    )  # fmt: skip  # a table

    def __init__(self, limit: RateLimit) -> None:
        self._limit = limit
        self._times: deque[int] = deque()
        self._second = self._busy_until = -1
        self.in_second = self.in_day = self.most = self.busy_rolling = self.busy_calendar = 0
        self._set_limits()

    def measure(self, at_us: int, more: int) -> Rates:
        """Return the messages of the rolling second, the clock's second and the day, with so many more sent now."""
        times, start = self._times, at_us - US_PER_SECOND
        while times and times[0] <= start:
            times.popleft()
        in_second = self.in_second if at_us // US_PER_SECOND == self._second else 0
        return len(times) + more, in_second + more, self.in_day + more

    def _set_limits(self) -> None:
        """Set the limits that hold now: a second is free while further busy seconds of the day are."""
        most, spare, day = self._limit.per_second, self._limit.times_a_day - 1, self._limit.per_day
        self.limits: tuple[int | None, ...] = (
            None if most is None or self.busy_rolling < spare else most - 1,
            None if most is None or self.busy_calendar < spare else most - 1,
            None if day is None else day - 1,
        )
        self.bounds = tuple(NO_LIMIT if one is None else one for one in self.limits)
        self.warns_at = tuple(-(-one * WARN_PERCENT // _PERCENT) for one in self.bounds)

    def count(self, at_us: int, measured: Rates | None = None) -> None:
        """Count one message that is sent; `measured` is what `measure` gave for it, if it was asked before."""
        rolling, self.in_second, self.in_day = measured or self.measure(at_us, 1)
        self._times.append(at_us)
        self._second = at_us // US_PER_SECOND
        self.most = max(self.most, rolling)
        most = self._limit.per_second
        if most is None:
            return
        if rolling >= most and at_us >= self._busy_until:
            self.busy_rolling += 1
            self._busy_until = at_us + US_PER_SECOND
            self._set_limits()
        if self.in_second == most:
            self.busy_calendar += 1
            self._set_limits()

    def is_near(self) -> bool:
        """Tell whether the busy seconds of the day have come to 60 % of those that are too many."""
        times = self._limit.times_a_day
        return times > 1 and max(self.busy_rolling, self.busy_calendar) * _PERCENT >= times * WARN_PERCENT

    def begin_day(self) -> None:
        """Begin a new day."""
        self.in_day = self.busy_rolling = self.busy_calendar = self.most = 0
        self._set_limits()

    def record(self) -> dict[str, int]:
        """Return the counts of the day for its report."""
        return {
            "day": self.in_day,
            "busiest_second": self.most,
            "busy_seconds_rolling": self.busy_rolling,
            "busy_seconds_calendar": self.busy_calendar,
        }
