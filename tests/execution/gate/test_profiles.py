"""Venue profiles count as the rule counts, and the hours of a market are those of its zone or its exchange."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from alphaloom.execution import ExecutionError, OrderRuling
from alphaloom.execution.gate import ExchangeHours, RateLimit, VenueProfile, WeekdayHours, read_profiles

from .market import MINUTE, NOW, SECOND, Desk, make_limits


def at(*moment: int) -> int:
    return int(datetime(*moment, tzinfo=UTC).timestamp()) * SECOND  # type: ignore[misc, arg-type]


def burst(desk: Desk, size: int, begin: int) -> list[OrderRuling]:
    return [desk.send(desk.order(shares=1), begin + place) for place in range(size)]


def profiled(name: str) -> Desk:
    profile = read_profiles()[name]
    return Desk(make_limits(profile.orders, profile.messages))


@pytest.mark.parametrize(("name", "most"), [("mission_5x5", 5), ("northbound_10x10", 10)])
def test_so_many_orders_in_a_second_so_many_times_a_day(name: str, most: int) -> None:
    desk = profiled(name)
    for place in range(most - 1):
        rulings = burst(desk, most, NOW + 2 * SECOND * place)
        assert all(ruling.passed for ruling in rulings)
        warned = "orders_busy_seconds" in rulings[0].warnings
        assert warned == (place * 100 >= 60 * most)
    rulings = burst(desk, most, NOW + MINUTE)
    assert [ruling.passed for ruling in rulings] == [True] * (most - 1) + [False]
    assert rulings[-1].refusals == ("orders_rolling", "orders_calendar")
    assert "orders_rolling" in rulings[-2].warnings
    assert "orders_rolling" not in rulings[0].warnings
    assert desk.gate.report_rates()["orders"] == {
        "day": most * most - 1, "busiest_second": most, "busy_seconds_rolling": most - 1,
        "busy_seconds_calendar": most - 1,
    }  # fmt: skip  # a table


def test_high_frequency_is_orders_and_cancels_of_a_second_or_of_a_day() -> None:
    desk = profiled("hft_300_20000")
    rulings = burst(desk, 150, NOW)
    cancels = [desk.gate.check_cancel(ruling.order, NOW + 200) for ruling in rulings[:149]]
    assert "messages_rolling" in cancels[-1].warnings
    assert desk.send(desk.order(shares=1), NOW + 300).refusals == ("messages_rolling", "messages_calendar")
    last = NOW
    for place in range(19_999 - 299):
        last = NOW + 2 * SECOND + place * 10_000
        desk.gate.check_cancel("p-1", last)
    assert desk.send(desk.order(shares=1), last + 2 * SECOND).refusals == ("messages_day",)


def test_a_limit_warns_from_sixty_percent() -> None:
    desk = Desk(make_limits(RateLimit(per_day=11)))
    assert [bool(ruling.warnings) for ruling in burst(desk, 7, NOW)] == [False] * 5 + [True] * 2


@pytest.mark.parametrize(
    "changed",
    [{"time_zone": "Mars/Base"}, {"hours": []}, {"hours": [["16:00", "09:30"]]}, {"hours": [["9", "10"]]}],
    ids=str,
)
def test_a_malformed_profile_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        VenueProfile.model_validate({"time_zone": "Europe/London", "hours": [["08:00", "16:30"]], **changed})


def test_weekday_hours_follow_summer_time_and_a_break() -> None:
    hours = WeekdayHours(read_profiles()["plain"])
    for moment, opens in (
        (at(2026, 1, 5, 14, 30), True),
        (at(2026, 7, 6, 13, 30), True),
        (at(2026, 7, 6, 13, 29), False),
    ):
        assert hours.find_day(moment).is_open(moment) == opens
    assert hours.find_day(at(2026, 1, 4, 15)).closes_us is None  # a Sunday
    day = WeekdayHours(read_profiles()["mission_5x5"]).find_day(at(2026, 1, 5, 2))
    assert [day.is_open(at(2026, 1, 5, hour, 45)) for hour in (1, 3, 4, 5, 7)] == [True, False, False, True, False]
    assert day.starts_us == at(2026, 1, 4, 16)


def exchange(code: str, start: date, end: date) -> SimpleNamespace:
    """Return what `exchange_calendars.get_calendar` does, of a session with a break and one that ends early."""
    if start.year > 2_100:
        raise ValueError("out of bounds\nmore")
    stamps: list[list[str | None]] = [
        ["2026-01-05 01:30", "2026-01-05 04:00", "2026-01-05 05:00", "2026-01-05 08:00"],
        ["2026-01-06 01:30", None, None, "2026-01-06 04:00"],
    ]
    rows = [[pd.Timestamp(text, tz="UTC") if text else pd.NaT for text in row] for row in stamps]
    table = pd.DataFrame(
        rows, columns=["open", "break_start", "break_end", "close"], index=pd.to_datetime(["2026-01-05", "2026-01-06"])
    )
    return SimpleNamespace(schedule=table, tz="Asia/Hong_Kong")


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = SimpleNamespace(get_calendar=exchange, get_calendar_names=lambda include_aliases: ["XHKG"])
    monkeypatch.setitem(sys.modules, "exchange_calendars", stand_in)


@pytest.mark.usefixtures("package")
def test_the_sessions_of_an_exchange() -> None:
    hours = ExchangeHours("XHKG")
    day = hours.find_day(at(2026, 1, 5, 4, 30))
    assert day.spans == ((at(2026, 1, 5, 1, 30), at(2026, 1, 5, 4)), (at(2026, 1, 5, 5), at(2026, 1, 5, 8)))
    assert hours.find_day(at(2026, 1, 5, 17)).closes_us == at(2026, 1, 6, 4)  # already Tuesday there
    assert hours.find_day(at(2026, 1, 7, 2)).spans == ()
    for code, year in (("XHKX", 2026), ("XHKG", 2_200)):
        with pytest.raises(ExecutionError, check=lambda error: error.field == "calendar"):
            ExchangeHours(code).find_day(at(year, 1, 5))


def test_without_the_package_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "exchange_calendars", None)
    with pytest.raises(ExecutionError, match="not installed") as raised:
        ExchangeHours("XNYS")
    assert "pip install" in str(raised.value.hint)


def test_the_real_calendar_of_new_york() -> None:
    pytest.importorskip("exchange_calendars", reason="exchange-calendars is not installed")
    hours = ExchangeHours("XNYS")
    assert hours.find_day(at(2025, 12, 24, 15)).closes_us == at(2025, 12, 24, 18)
    assert hours.find_day(at(2025, 12, 25, 15)).spans == ()
