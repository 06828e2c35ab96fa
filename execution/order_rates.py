"""How many orders and cancels an account sent: in a second, counted both ways, and in a day, against a venue's profile.

A rule may mean any second (rolling) or a second of the clock: both are counted, as the order gate does. A rolling
second ends with a message and has those sent less than a second before.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final, Literal
from zoneinfo import ZoneInfo

from .gate import RateLimit, VenueProfile
from .orders import US_PER_SECOND

MessageKind = Literal["new", "cancel"]
NEAR_SHARE: Final = 0.6
"""Share of a limit from which a day is told."""


@dataclass(frozen=True, slots=True)
class OrderMessage:
    """One message to a venue: when (microseconds since 1970 in UTC), of which account, where, and what."""

    at_us: int
    account: str
    venue: str
    kind: MessageKind


@dataclass(frozen=True)
class RateCount:
    """The orders, or the orders and cancels, of one account at one venue on one day, against the limit.

    Attributes
    ----------
    total
        Messages of the day.
    rolling, rolling_us, calendar, calendar_us
        Messages of the busiest rolling second and when its last one was sent; messages of the busiest second of the
        clock and its beginning. 0 without messages.
    busy_rolling, busy_calendar
        Seconds that had as many messages as the limit names; of a rolling one the next begins after a second.
    limit
        What is too many.
    """

    total: int
    rolling: int
    rolling_us: int
    calendar: int
    calendar_us: int
    busy_rolling: int
    busy_calendar: int
    limit: RateLimit

    @property
    def share(self) -> float:
        """Return the largest share of a limit that was used; 1 and more: the rule calls it too many.

        A limit that names several busy seconds of a day is used by the busy seconds.
        """
        limit, shares = self.limit, [0.0]
        if limit.per_second is not None and limit.times_a_day == 1:
            shares.append(max(self.rolling, self.calendar) / limit.per_second)
        elif limit.per_second is not None:
            shares.append(max(self.busy_rolling, self.busy_calendar) / limit.times_a_day)
        if limit.per_day is not None:
            shares.append(self.total / limit.per_day)
        return max(shares)

    def record(self) -> dict[str, Any]:
        """Return it as JSON."""
        own = {name: value for name, value in vars(self).items() if name != "limit"}
        return {**own, "limit": self.limit.model_dump(), "share": round(self.share, 6)}


@dataclass(frozen=True)
class AccountDay:
    """One day of one account at one venue; the day is that of the profile's time zone, ISO."""

    account: str
    venue: str
    day: str
    orders: RateCount
    messages: RateCount

    @property
    def share(self) -> float:
        """Return the larger share of a limit, of orders and of messages."""
        return max(self.orders.share, self.messages.share)

    def record(self) -> dict[str, Any]:
        """Return it as JSON."""
        place = {"account": self.account, "venue": self.venue, "day": self.day}
        counts = {"orders": self.orders.record(), "messages": self.messages.record()}
        return {**place, "share": round(self.share, 6), "near": self.share >= NEAR_SHARE, **counts}


def count_rates(messages: Iterable[OrderMessage], profile: VenueProfile) -> list[AccountDay]:
    """Return the counts of each account, venue and day, in this order; the messages may be in any order."""
    zone, found = ZoneInfo(profile.time_zone), list[AccountDay]()
    ordered = sorted(messages, key=lambda one: (one.account, one.venue, one.at_us))
    for (account, venue), own in groupby(ordered, lambda one: (one.account, one.venue)):
        rows = [(one.at_us, _name_day(one.at_us, zone), one.kind) for one in own]
        every = dict(_count_days([row[:2] for row in rows], profile.messages))
        orders = dict(_count_days([row[:2] for row in rows if row[2] == "new"], profile.orders))
        none = RateCount(0, 0, 0, 0, 0, 0, 0, profile.orders)
        found += [AccountDay(account, venue, day, orders.get(day, none), count) for day, count in every.items()]
    return found


def _name_day(at_us: int, zone: ZoneInfo) -> str:
    return datetime.fromtimestamp(at_us // US_PER_SECOND, UTC).astimezone(zone).date().isoformat()


def _count_days(rows: Sequence[tuple[int, str]], limit: RateLimit) -> Iterator[tuple[str, RateCount]]:
    """Yield each day with its counts; times are sorted, and a rolling second may begin on the day before."""
    window: deque[int] = deque()
    busy_until = -1
    for day, own in groupby(rows, lambda row: row[1]):
        times = [at for at, _ in own]
        most, most_us, busy = 0, 0, 0
        for at in times:
            while window and window[0] <= at - US_PER_SECOND:
                window.popleft()
            window.append(at)
            if len(window) > most:
                most, most_us = len(window), at
            if limit.per_second is not None and len(window) >= limit.per_second and at >= busy_until:
                busy, busy_until = busy + 1, at + US_PER_SECOND
        seconds = Counter(at // US_PER_SECOND for at in times)
        second, in_second = max(seconds.items(), key=lambda item: (item[1], -item[0]))
        full = sum(limit.per_second is not None and sent >= limit.per_second for sent in seconds.values())
        yield day, RateCount(len(times), most, most_us, in_second, second * US_PER_SECOND, busy, full, limit)
