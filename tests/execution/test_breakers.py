"""Each breaker trips on a planted cause above its limit and not at it; only people clear one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from alphaloom.execution import BREAKERS, BreakerLimits, Breakers, BreakerTrip, ExecutionError

NOW = 1_767_000_000_000_000
SECOND = 1_000_000
LIMITS = BreakerLimits(
    drawdown_bp=100,
    loss_bp=100,
    reject_ratio_bp=1_000,
    data_staleness=5,
    version_change=1,
    disagreement=1,
    cost_micros=7,
    injection=2,
    clock_ms=3,
    log=1,
    heartbeat_s=2,
)
Trips = tuple[BreakerTrip, ...]


def plant_clock(breakers: Breakers, over: int) -> Trips:
    assert breakers.see_clock(50, NOW) == ()
    assert breakers.see_clock(50 + SECOND, NOW + SECOND) == ()
    return breakers.see_clock(50 + 2 * SECOND, NOW + 2 * SECOND - 3_000 - over)


CAUSES: dict[str, Callable[[Breakers, int], Trips]] = {
    "drawdown": lambda one, over: one.see_equity(990_000 - over, 1_000_000, 990_000, NOW),
    "loss": lambda one, over: one.see_equity(990_000 - over, 990_000, 1_000_000, NOW),
    "reject_ratio": lambda one, over: one.see_orders(1_000, 100 + over, NOW),
    "data_staleness": lambda one, over: one.see_data(5 + over, NOW),
    "version_change": lambda one, over: one.see_versions(["a model", "a prompt"][: 1 + over], NOW),
    "disagreement": lambda one, over: one.see_decisions(
        {"n1": "x", "n2": "x", "n3": "x", "n4": "y", "n5": "z" if over else "x"}, NOW
    ),
    "cost": lambda one, over: one.see_cost(7 + over, NOW),
    "injection": lambda one, over: one.see_injections(2 + over, NOW),
    "clock": plant_clock,
    "log": lambda one, over: one.see_log(1 + over, NOW),
    "heartbeat": lambda one, over: one.see_heartbeat(NOW - 2 * SECOND - over, NOW),
}


@pytest.mark.parametrize("over", [0, 1])
@pytest.mark.parametrize("name", BREAKERS)
def test_a_breaker_trips_above_its_limit(name: str, over: int) -> None:
    breakers = Breakers(LIMITS)
    trips = CAUSES[name](breakers, over)
    assert [trip.breaker for trip in trips] == [name] * over
    assert breakers.mode == ("active" if not over else "halted" if name in LIMITS.halting else "reducing")
    for trip in trips:
        assert trip.actual is not None
        assert trip.actual > trip.limit
        assert trip.record()["mode"] == breakers.mode
        assert NOW <= trip.at_us <= NOW + 2 * SECOND


@pytest.mark.parametrize(
    ("name", "look"),
    [
        ("drawdown", lambda one: one.see_equity(1, 0, 1, NOW)),
        ("loss", lambda one: one.see_equity(1, 1, 0, NOW)),
    ],
)
def test_what_is_not_known_trips(name: str, look: Callable[[Breakers], Trips]) -> None:
    assert [(trip.breaker, trip.actual) for trip in look(Breakers(LIMITS))] == [(name, None)]


def test_few_orders_make_no_ratio() -> None:
    breakers = Breakers(BreakerLimits(reject_ratio_from=10))
    assert breakers.see_orders(9, 9, NOW) == ()
    assert breakers.see_orders(10, 9, NOW)


def test_what_tripped_is_named() -> None:
    breakers = Breakers(BreakerLimits())
    assert breakers.see_versions(["a model", "a prompt"], NOW)[0].about == "a model, a prompt"
    assert breakers.see_decisions({"n1": "x", "n2": "y", "n3": "y"}, NOW)[0].about == "n1"
    assert breakers.see_decisions({}, NOW) == ()


def test_a_trip_is_told_once_stays_and_survives_a_restart() -> None:
    breakers = Breakers(LIMITS)
    (trip,) = breakers.see_cost(8, NOW)
    assert breakers.see_cost(9, NOW + 1) == ()
    assert breakers.see_cost(0, NOW + 2) == ()
    assert breakers.mode == "reducing"
    again = Breakers(LIMITS, breakers.trips)
    assert (again.trips, again.mode) == ((trip,), "reducing")
    assert again.see_log(2, NOW)
    assert again.mode == "halted"
    assert [one.breaker for one in again.trips] == ["cost", "log"]


def test_only_people_clear_a_breaker() -> None:
    breakers = Breakers(LIMITS)
    breakers.see_cost(8, NOW)
    breakers.see_log(2, NOW)
    for arguments in (("cost", "", "why"), ("cost", "Ada", " "), ("loss", "Ada", "why"), ("log", "Ada", "why")):
        with pytest.raises(ExecutionError):
            breakers.clear(*arguments, NOW)
    with pytest.raises(ExecutionError, check=lambda error: error.code == "second_approver"):
        breakers.clear("log", "Ada", "a new disk", NOW, second=" ada ")
    cleared = breakers.clear("log", "Ada", "a new disk", NOW, second="Grace")
    assert (cleared.by, cleared.second, cleared.trip.breaker) == ("Ada", "Grace", "log")
    assert cleared.record()["trip"] == cleared.trip.record()
    assert [trip.breaker for trip in breakers.trips] == ["cost"]
    assert breakers.clear("cost", "Ada", "a larger budget", NOW).second == ""
    assert breakers.mode == "active"
    assert breakers.see_cost(8, NOW)  # the cause is still there


def test_a_cleared_clock_is_compared_from_then_on() -> None:
    breakers = Breakers(LIMITS)
    assert plant_clock(breakers, 1)
    breakers.clear("clock", "Ada", "the clock was set", NOW, second="Grace")
    assert breakers.see_clock(0, NOW + 60 * SECOND) == ()
    assert breakers.see_clock(SECOND, NOW + 61 * SECOND) == ()


def test_which_breakers_halt_is_a_setting() -> None:
    breakers = Breakers(BreakerLimits(halting=("cost",)))
    assert breakers.see_log(1, NOW)[0].mode == "reducing"
    assert breakers.see_cost(10**9, NOW)[0].mode == "halted"
    with pytest.raises(ValueError, match="validation error"):
        BreakerLimits.model_validate({"halting": ["sun"]})
