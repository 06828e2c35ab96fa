"""Order rates are counted as the order gate counts them, with the busiest second, where it was, and the share used."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from alphaloom.execution import US_PER_SECOND, AccountDay, OrderMessage, count_rates
from alphaloom.execution.gate import RateLimit, VenueProfile, read_profiles
from alphaloom.execution.gate.rates import RateCounter

OPEN = int(datetime(2026, 3, 2, 9, 30, tzinfo=ZoneInfo("Asia/Shanghai")).timestamp()) * US_PER_SECOND
HOURS = (("09:30", "15:00"),)


def send(*times_us: int, kind: str = "new", account: str = "a") -> list[OrderMessage]:
    return [OrderMessage(OPEN + at, account, "v", kind) for at in times_us]  # type: ignore[arg-type]


def burst(orders: int, at_s: float, *, kind: str = "new") -> list[OrderMessage]:
    """Return orders that are spread over less than a second from a moment after the opening."""
    return send(*(int(at_s * US_PER_SECOND) + number * 1_000 for number in range(orders)), kind=kind)


@pytest.mark.parametrize(
    ("profile", "sent", "share", "near"),
    [
        ("mission_5x5", [row for at in range(2) for row in burst(5, at * 2)], 0.4, False),
        ("mission_5x5", [row for at in range(3) for row in burst(5, at * 2)], 0.6, True),
        ("mission_5x5", [row for at in range(5) for row in burst(5, at * 2)], 1.0, True),
        ("mission_5x5", [row for at in range(50) for row in burst(4, at * 2)], 4 / 300, False),
        ("northbound_10x10", [row for at in range(6) for row in burst(10, at * 2)], 0.6, True),
        ("hft_300_20000", burst(100, 0) + burst(79, 0, kind="cancel"), 179 / 300, False),
        ("hft_300_20000", burst(100, 0) + burst(80, 0, kind="cancel"), 0.6, True),
        ("hft_300_20000", [row for at in range(600) for row in burst(20, at * 2)], 0.6, True),  # 12,000 in a day
    ],
)
def test_a_day_uses_the_share_of_its_profile_that_the_rule_counts(
    profile: str, sent: list[OrderMessage], share: float, near: bool
) -> None:
    (day,) = count_rates(reversed(sent), read_profiles()[profile])
    assert day.share == pytest.approx(share)
    assert day.record()["near"] is near


def test_the_busiest_second_is_named_as_it_rolls_and_by_the_clock() -> None:
    profile = VenueProfile(time_zone="Asia/Shanghai", hours=HOURS, orders=RateLimit(per_second=5))
    half = US_PER_SECOND // 2
    rows = send(0, half + 1, half + 2, US_PER_SECOND, US_PER_SECOND + half, US_PER_SECOND + half + 1)
    (day,) = count_rates([*rows, *send(5, kind="cancel"), *send(7, account="b")][:-1], profile)
    assert (day.orders.total, day.messages.total) == (6, 7)
    assert (day.orders.rolling, day.orders.rolling_us) == (4, OPEN + US_PER_SECOND + half)
    assert (day.orders.calendar, day.orders.calendar_us) == (3, OPEN)
    exact = send(0, US_PER_SECOND)  # exactly a second apart: no second has both
    assert [count.orders.rolling for count in count_rates(exact, profile)] == [1]


def test_accounts_venues_and_days_of_the_zone_are_counted_apart() -> None:
    late = int(datetime(2026, 3, 2, 16, 30, tzinfo=UTC).timestamp()) * US_PER_SECOND - OPEN  # 00:30 in Shanghai
    sent = [*send(0, 1), *send(0, account="b"), *send(late), OrderMessage(OPEN, "a", "w", "cancel")]
    days = count_rates(sent, read_profiles()["mission_5x5"])
    assert [(day.account, day.venue, day.day, day.orders.total, day.messages.total) for day in days] == [
        ("a", "v", "2026-03-02", 2, 2),
        ("a", "v", "2026-03-03", 1, 1),
        ("a", "w", "2026-03-02", 0, 1),
        ("b", "v", "2026-03-02", 1, 1),
    ]


@given(
    st.lists(st.integers(0, 4 * US_PER_SECOND), min_size=1, max_size=60),
    st.integers(1, 6),
)
def test_the_report_counts_as_the_gate_does(offsets: list[int], most: int) -> None:
    limit = RateLimit(per_second=most, times_a_day=3)
    profile = VenueProfile(time_zone="UTC", hours=HOURS, orders=limit)
    counter = RateCounter(limit)
    for at in sorted(offsets):
        counter.count(OPEN + at)
    (day,) = count_rates(send(*offsets), profile)
    assert _select(day) == counter.record()


def _select(day: AccountDay) -> dict[str, int]:
    count = day.orders
    return {
        "day": count.total,
        "busiest_second": count.rolling,
        "busy_seconds_rolling": count.busy_rolling,
        "busy_seconds_calendar": count.busy_calendar,
    }
