"""A trip acts before it is recorded, and what is not on record is not sent."""

from pathlib import Path
from typing import Any

import pytest

from alphaloom.execution import BreakerLimits, Breakers, BreakerTrip, BreakerWatch, HaltSwitch
from alphaloom.execution.breaker_watch import WATCHER
from alphaloom.risk import Mode

AT_US = 1_000_000


class Modes:
    """A gate's mode alone."""

    def __init__(self) -> None:
        self.mode: Mode = "active"

    def set_mode(self, mode: Mode) -> None:
        self.mode = mode


@pytest.fixture
def parts(tmp_path: Path) -> tuple[HaltSwitch, Modes, list[BreakerTrip]]:
    """Return a switch, a gate's mode and what was kept."""
    return HaltSwitch(tmp_path), Modes(), []


def make_watch(parts: tuple[HaltSwitch, Modes, list[BreakerTrip]], *stood: BreakerTrip, **limits: Any) -> BreakerWatch:
    switch, gate, kept = parts
    steady = iter([0, 10_000_000])
    breakers = Breakers(BreakerLimits(**limits), stood)
    return BreakerWatch(breakers, gate, switch, kept.extend, "active", lambda: next(steady))


def test_a_halting_trip_sets_the_switch_and_another_holds_the_gate_to_reductions(
    parts: tuple[HaltSwitch, Modes, list[BreakerTrip]],
) -> None:
    switch, gate, kept = parts
    watch = make_watch(parts)
    watch.see_equity(970, 1_000, 1_000, AT_US)
    assert (gate.mode, switch.is_set(), kept) == ("active", False, [])  # at the limit of the day's loss
    watch.see_equity(969, 1_000, 1_000, AT_US)
    assert (gate.mode, switch.is_set(), [trip.breaker for trip in kept]) == ("reducing", False, ["loss"])
    watch.see_equity(849, 1_000, 1_000, AT_US)
    halt = switch.read()
    assert halt is not None
    assert (halt.by, halt.reason) == (WATCHER, "breaker drawdown: 1510 against 1500")
    assert [trip.breaker for trip in kept] == ["loss", "drawdown"]
    switch.close()


def test_a_clock_that_jumps_and_a_record_that_fails_halt(parts: tuple[HaltSwitch, Modes, list[BreakerTrip]]) -> None:
    switch, _, kept = parts
    watch = make_watch(parts)
    watch.see_clock(AT_US)
    watch.see_clock(AT_US + 10_000_000)  # as far as the steady clock
    assert not switch.is_set()
    make_watch(parts).see_failed_record(AT_US)
    assert switch.is_set()
    assert kept == []  # the record is what failed
    switch.close()


def test_a_trip_that_stood_holds_after_a_restart(parts: tuple[HaltSwitch, Modes, list[BreakerTrip]]) -> None:
    trip = BreakerTrip("loss", 400, 300, AT_US, "reducing")
    make_watch(parts, trip)
    assert parts[1].mode == "reducing"
    parts[0].close()
