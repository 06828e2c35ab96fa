"""The state of one model: what any course of calls, looks and time may do to it."""

from dataclasses import replace

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from alphaloom.router.endpoints.breaker import MAX_REST_S, Breaker, Permit
from alphaloom.router.timing import Timing

FAILURES, REST_S = 3, 5.0


class Courses(RuleBasedStateMachine):
    """Any course; `by_time` is set by the two machines below."""

    by_time = True

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        timing = replace(Timing(), clock=lambda: self.now, chance=lambda: 0.5)
        self.breaker = Breaker(FAILURES, REST_S, timing, by_time=self.by_time)
        self.out: list[Permit] = []
        self.row = 0

    @rule(force=st.booleans())
    def enter(self, force: bool) -> None:
        state, trials = self.breaker.state, self.trials()
        permit = self.breaker.enter(force=force)
        assert (permit is not None) == (force or state == "closed" or (state == "half-open" and not trials))
        if permit is not None:
            self.out.append(permit)

    def trials(self) -> list[Permit]:
        return [attempt for attempt in self.out if attempt.trial and attempt.epoch == self.breaker._epoch]

    def take(self, data: st.DataObject) -> tuple[Permit, bool]:
        permit = self.out.pop(data.draw(st.integers(0, len(self.out) - 1)))
        return permit, permit.epoch == self.breaker._epoch

    @precondition(lambda self: self.out)
    @rule(data=st.data())
    def succeed(self, data: st.DataObject) -> None:
        state = self.breaker.state
        permit, fresh = self.take(data)
        self.breaker.succeed(permit)
        assert self.breaker.state == ("closed" if fresh or state == "closed" else "half-open")
        self.row = 0 if fresh else self.row

    @precondition(lambda self: self.out)
    @rule(data=st.data(), at_once=st.booleans(), rest_s=st.floats(0, 500))
    def fail(self, data: st.DataObject, at_once: bool, rest_s: float) -> None:
        state = self.breaker.state
        permit, fresh = self.take(data)
        self.breaker.fail(permit, at_once=at_once, rest_s=rest_s)
        if not fresh:
            assert self.breaker.state == state
            return
        self.row += 1
        opens = at_once or state != "closed" or self.row >= FAILURES
        assert self.breaker.state == ("open" if opens else "closed")
        if opens:
            self.row = 0
            assert REST_S <= self.breaker._until - self.now <= 1.25 * max(rest_s, MAX_REST_S)
            assert self.breaker._until - self.now >= rest_s

    @precondition(lambda self: self.out)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        state = self.breaker.state
        self.breaker.leave(self.take(data)[0])
        assert self.breaker.state == state

    @rule()
    def heard(self) -> None:
        state = self.breaker.state
        self.breaker.note_alive()
        assert self.breaker.state == ("half-open" if state == "open" else state)

    @rule()
    def unheard(self) -> None:
        self.breaker.note_gone()
        self.row = 0
        assert self.breaker.state == "open"

    @rule(seconds=st.floats(0, 400))
    def wait(self, seconds: float) -> None:
        state, until = self.breaker.state, self.breaker._until
        self.now += seconds
        back = self.by_time and state == "open" and self.now >= until
        assert self.breaker.state == ("half-open" if back else state)

    @invariant()
    def one_trial_at_a_time(self) -> None:
        assert len(self.trials()) <= 1

    @invariant()
    def it_can_always_come_back(self) -> None:
        if self.breaker.state == "half-open" and not self.trials():
            permit = self.breaker.enter()
            assert permit is not None
            self.breaker.leave(permit)


class Looked(Courses):
    by_time = False


TestByTime = Courses.TestCase
TestByTime.settings = settings(stateful_step_count=30)
TestByLooks = Looked.TestCase
TestByLooks.settings = TestByTime.settings


def rests(breaker: Breaker, times: int) -> list[float]:
    """Return how long it rests after each failure at once."""
    found = []
    for _ in range(times):
        permit = breaker.enter(force=True)
        assert permit is not None
        breaker.fail(permit, at_once=True)
        found.append(breaker._until)
    return found


def test_each_rest_in_a_row_is_twice_as_long_up_to_the_longest() -> None:
    breaker = Breaker(1, REST_S, replace(Timing(), clock=lambda: 0.0, chance=lambda: 0.0), by_time=True)
    assert rests(breaker, 8) == [5, 10, 20, 40, 80, 160, 300, 300]
    permit = breaker.enter(force=True)
    assert permit is not None
    breaker.succeed(permit)
    assert rests(breaker, 1) == [5]


@pytest.mark.parametrize("chance", [0.0, 0.999])
def test_who_rests_alike_does_not_come_back_in_the_same_moment(chance: float) -> None:
    breaker = Breaker(1, REST_S, replace(Timing(), clock=lambda: 0.0, chance=lambda: chance), by_time=True)
    assert rests(breaker, 1) == [pytest.approx(5 * (1 + 0.25 * chance))]
