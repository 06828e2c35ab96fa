"""A trip acts before it is recorded, and what is not on record is not sent."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from alphaloom.execution import (
    CLEARED_EVENT,
    BreakerLimits,
    Breakers,
    BreakerTrip,
    BreakerWatch,
    ChildOrder,
    ExecutionReport,
    HaltSwitch,
    OrderState,
    SessionOrders,
    act_on_trips,
    clear_trips,
    describe_trip,
    list_tripped,
    record_trips,
)
from alphaloom.execution.breaker_watch import WATCHER
from alphaloom.execution.orders import ReportKind
from alphaloom.ledger import Run
from alphaloom.risk import Mode

from .sessions import NOON, RUN, open_ledger

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


def make_watch(
    parts: tuple[HaltSwitch, Modes, list[BreakerTrip]], *stood: BreakerTrip, beat_us: int | None = None, **limits: Any
) -> BreakerWatch:
    switch, gate, kept = parts
    steady = iter([0, 10_000_000])
    breakers = Breakers(BreakerLimits(**limits), stood)
    return BreakerWatch(breakers, gate, switch, kept.extend, "active", lambda: next(steady), lambda: beat_us)


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
    watch.see_present(AT_US)
    watch.see_present(AT_US + 10_000_000)  # as far as the steady clock
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


def test_a_guard_that_was_started_must_live(parts: tuple[HaltSwitch, Modes, list[BreakerTrip]]) -> None:
    switch, _, kept = parts
    for beat_us in (None, AT_US - 15_000_000):  # no guard, and one at the limit
        make_watch(parts, beat_us=beat_us).see_guard(AT_US)
        make_watch(parts, beat_us=beat_us).see_present(AT_US)
    assert not switch.is_set()
    make_watch(parts, beat_us=AT_US - 15_000_001).see_present(AT_US)
    assert switch.is_set()
    assert [trip.breaker for trip in kept] == ["heartbeat"]
    switch.close()


def test_a_clock_that_jumps_is_recorded(parts: tuple[HaltSwitch, Modes, list[BreakerTrip]]) -> None:
    switch, _, kept = parts
    watch = make_watch(parts)
    watch.see_present(AT_US)
    watch.see_present(AT_US + 20_000_000)
    assert switch.is_set()
    assert [trip.breaker for trip in kept] == ["clock"]
    switch.close()


def test_rejects_are_counted_of_what_was_sent(parts: tuple[HaltSwitch, Modes, list[BreakerTrip]]) -> None:
    switch, gate, kept = parts
    session = SessionOrders()
    for place in range(25):
        order = ChildOrder(f"p-{place}", "p", "A", "buy", 1, "market", None, AT_US)
        state = OrderState(order, {"passed": place < 10}, AT_US)
        session.take_order(state)
        kind: ReportKind = "rejected" if place < 3 else "filled"
        if place < 10:
            for copy in "ab":  # a venue that rejects an order twice rejected one order
                session.take_report(ExecutionReport(order.id, kind, f"{place}{copy}", AT_US, 1, 1))
    make_watch(parts, reject_ratio_bp=3_000).see_session(session, AT_US)
    assert (gate.mode, kept) == ("active", [])
    make_watch(parts, reject_ratio_bp=2_999).see_session(session, AT_US)
    assert (gate.mode, [trip.actual for trip in kept]) == ("reducing", [3_000])
    switch.close()


def test_what_cannot_be_recorded_halts_all_the_same(parts: tuple[HaltSwitch, Modes, list[BreakerTrip]]) -> None:
    switch, gate, _ = parts

    def fail(trips: Sequence[BreakerTrip]) -> None:
        raise OSError(trips[0].breaker)

    with pytest.raises(OSError, match="log"):
        act_on_trips([BreakerTrip("log", 1, 0, AT_US, "halted")], switch, fail)
    assert switch.is_set()
    act_on_trips([], switch, fail, gate)
    assert gate.mode == "active"
    with pytest.raises(OSError, match="cost"):
        act_on_trips([BreakerTrip("cost", 2, 1, AT_US, "reducing")], switch, fail, gate)
    modes = [gate.mode]
    assert modes == ["reducing"]
    switch.close()


@pytest.mark.parametrize(("mode", "held"), [("active", "reducing"), ("reducing", "active"), ("halted", "active")])
def test_a_trip_that_stood_never_lets_more_pass(
    parts: tuple[HaltSwitch, Modes, list[BreakerTrip]], mode: Mode, held: Mode
) -> None:
    """The gate holds the book's own mode already: "active" stands here for untouched."""
    switch, gate, kept = parts
    BreakerWatch(
        Breakers(BreakerLimits(), [BreakerTrip("cost", 2, 1, AT_US, "reducing")]), gate, switch, kept.extend, mode
    )
    assert not switch.is_set()
    standing = Breakers(BreakerLimits(), [BreakerTrip("log", 1, 0, AT_US, "halted")])
    BreakerWatch(standing, gate, switch, kept.extend, mode)
    assert gate.mode == held
    assert switch.is_set()  # also where its file was deleted
    switch.close()


def test_the_record_has_trips_until_people_clear_them(tmp_path: Path) -> None:
    first, second = BreakerTrip("cost", 2, 1, AT_US, "reducing"), BreakerTrip("drawdown", None, 1, AT_US, "halted")
    with open_ledger(tmp_path) as ledger:
        ledger.runs.start(Run("book-other", {"book": {}}, 0, "", NOON.isoformat()))
        record_trips(ledger, RUN, [first, second])
        record_trips(ledger, "book-other", [first])
        assert list_tripped(ledger, RUN) == [second, first]
        assert clear_trips(ledger, RUN, ("ann", "bob"), "looked into", AT_US + 1) == [second, first]
        assert list_tripped(ledger, RUN) == []
        assert list_tripped(ledger, "book-other") == [first]
        (body, _) = [event.body for event in ledger.events.of(RUN, CLEARED_EVENT)]
        assert (body["by"], body["second"], body["reason"], body["at_us"]) == ("ann", "bob", "looked into", AT_US + 1)
        again = replace(first, at_us=AT_US + 2)
        record_trips(ledger, RUN, [again])
        assert list_tripped(ledger, RUN) == [again]
    assert describe_trip(second) == "breaker drawdown: not known against 1"
    assert describe_trip(replace(first, about="a model")) == "breaker cost: 2 against 1 (a model)"
