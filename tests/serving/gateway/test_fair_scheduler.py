"""The gate itself in simulated time: its laws under whatever hypothesis thinks of."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, strategies as st

from alphaloom.serving.errors import CallTooLarge, QueueFull, QuotaReached, ServingError
from alphaloom.serving.gateway.fair_scheduler import FairScheduler, compute_fairness_bound
from alphaloom.serving.gateway.tenants import FairnessSettings, Tenant, TenantCall, TenantSettings

from .fairness import ORDERS, Scenario, beside_flood, hurried, ratios

L_IN, L_OUT, L_WRONG = 40, 30, 25
NAMES = ("a", "b", "c", "d")


@dataclass(frozen=True)
class Ask:
    """One call: when it comes, what it takes, in how many reports, and when its caller gives up (0: never).

    `misjudged` is what its tokens in are more than was thought before it was sent.
    """

    tenant: str
    gap: float
    tokens_in: int
    most: int
    took: int
    reports: int
    patience: float
    misjudged: int = 0


@st.composite
def asks(draw: st.DrawFn) -> Ask:
    most = draw(st.integers(1, L_OUT))
    patience = draw(st.sampled_from([0.0, 0.0, 0.0, 0.5, 3.0, 20.0]))
    came = (draw(st.sampled_from(NAMES)), draw(st.sampled_from([0.0, 0.0, 0.0, 1.0, 30.0])), draw(st.integers(0, L_IN)))
    wrong = draw(st.sampled_from([0, 0, draw(st.integers(-min(came[2], L_WRONG), L_WRONG))]))
    return Ask(*came, most, draw(st.integers(0, most)), draw(st.integers(0, 3)), patience, wrong)


@st.composite
def places(draw: st.DrawFn) -> FairnessSettings:
    shares = {name: TenantSettings(share=draw(st.sampled_from([1.0, 1.0, 2.5])), queue=1000) for name in NAMES}
    weights = draw(st.sampled_from([(1.0, 2.0), (1.0, 1.0), (3.0, 1.0), (1.0, 50.0)]))
    count = draw(st.integers(1, 4))
    return FairnessSettings(places=count, input_weight=weights[0], output_weight=weights[1], tenants=shares)


class Watched(FairScheduler):
    """Looks at every pair of tenants that wait without a break, and at the free places, whenever anything happens."""

    apart: float = 0.0
    idle: int = 0

    def __init__(self, given: FairnessSettings, clock: Callable[[], float]) -> None:
        super().__init__(given, clock=clock)
        self._seen: dict[tuple[str, str], tuple[float, float]] = {}

    def _ready_tenants(self, now: float) -> list[Tenant]:
        ready = super()._ready_tenants(now)
        self.look()
        return ready

    def _serve(self) -> None:
        super()._serve()
        self.idle += bool(self._free and self._queued)

    def report(self, call: TenantCall, tokens_out: int) -> None:
        super().report(call, tokens_out)
        self.look()

    def correct_input(self, call: TenantCall, tokens_in: int) -> None:
        super().correct_input(call, tokens_in)
        self.look()

    def look(self) -> None:
        share = {name: self._settings.find_tenant(name).share for name in NAMES}
        both = list(combinations(sorted(self._ready), 2))
        self._seen = {pair: span for pair, span in self._seen.items() if pair in both}
        for one, other in both:
            apart = self.served_tokens(one) / share[one] - self.served_tokens(other) / share[other]
            low, high = self._seen.get((one, other), (apart, apart))
            self._seen[one, other] = low, high = min(low, apart), max(high, apart)
            self.apart = max(self.apart, high - low)


@dataclass
class Course:
    """What came of some calls: who was dispatched when, and how many finished."""

    gate: Watched
    begun: list[int] = field(default_factory=list)
    finished: int = 0
    cancelled: int = 0


async def one(course: Course, number: int, ask: Ask) -> None:
    async with course.gate.acquire(ask.tenant, ask.tokens_in, ask.most) as place:
        course.begun.append(number)
        for done in range(1, ask.reports + 1):
            await asyncio.sleep((1 + ask.took) / ask.reports)
            place.report_output(ask.took * done // ask.reports)
            place.correct_input(ask.tokens_in + ask.misjudged)
        await asyncio.sleep(0.1)


async def run(given: FairnessSettings, asked: list[Ask]) -> Course:
    """Send calls; whoever's patience ends is cancelled, wherever it stands."""
    course = Course(Watched(given, asyncio.get_running_loop().time))

    async def patient(number: int, ask: Ask) -> None:
        try:
            async with asyncio.timeout(ask.patience or None):
                await one(course, number, ask)
            course.finished += 1
        except TimeoutError:
            course.cancelled += 1

    async with asyncio.TaskGroup() as calls:
        for number, ask in enumerate(asked):
            await asyncio.sleep(ask.gap)
            calls.create_task(patient(number, ask))
    return course


@given(given=places(), asked=st.lists(asks(), max_size=60))
def test_two_tenants_that_wait_are_served_alike_and_no_place_stands_idle(
    given: FairnessSettings, asked: list[Ask]
) -> None:
    course = hurried(run(given, asked))
    wrong = max((abs(ask.misjudged) for ask in asked), default=0)
    assert course.gate.apart <= compute_fairness_bound(given, L_IN, L_OUT, wrong) + 1e-6
    assert course.gate.idle == 0
    assert course.finished + course.cancelled == len(asked)
    assert course.finished >= sum(not ask.patience for ask in asked)
    assert course.gate.free == given.places


@given(given=places(), asked=st.lists(asks(), max_size=40))
def test_calls_of_a_tenant_go_in_the_order_in_which_they_came(given: FairnessSettings, asked: list[Ask]) -> None:
    begun = hurried(run(given, asked)).begun
    for name in NAMES:
        own = [number for number in begun if asked[number].tenant == name]
        assert own == sorted(own)


def test_the_bound_is_not_idle_talk() -> None:
    """Round robin breaks it: calls of one tenant are long, those of the other short."""
    given = FairnessSettings(places=1)
    asked = [
        Ask(name, 0.0, L_IN if name == "a" else 0, L_OUT, L_OUT if name == "a" else 0, 1, 0.0)
        for name in "ab"
        for _ in range(60)
    ]
    fair = hurried(run(given, asked))
    assert 0 < fair.gate.apart <= compute_fairness_bound(given, L_IN, L_OUT)

    async def by_turns() -> float:
        course = Course(Watched(given, asyncio.get_running_loop().time))
        course.gate._order = ORDERS["round robin"][0]
        await asyncio.gather(*(one(course, number, ask) for number, ask in enumerate(asked)))
        return course.gate.apart

    assert hurried(by_turns()) > 5 * compute_fairness_bound(given, L_IN, L_OUT)


def test_service_follows_the_shares() -> None:
    given = FairnessSettings(places=2, tenants={"a": TenantSettings(share=3.0)})
    asked = [Ask(name, 0.0, 10, 20, 20, 1, 600.0) for name in "ab" for _ in range(90)]
    gate = hurried(run(given, asked)).gate
    assert gate.served_tokens("a") / gate.served_tokens("b") == pytest.approx(3.0, rel=0.2)


def test_idle_time_cannot_be_saved_up() -> None:
    """Who comes late begins beside the others, not a hundred calls behind them."""
    early = [Ask("a", 0.0, 10, 10, 10, 1, 0.0) for _ in range(60)]
    late = [Ask("b", 330.0 if not number else 0.0, 10, 10, 10, 1, 0.0) for number in range(60)]
    begun = hurried(run(FairnessSettings(places=1), early + late)).begun
    after = begun[begun.index(60) :][:20]
    assert 9 <= sum(number >= 60 for number in after) <= 11


def test_idle_time_cannot_be_saved_up_where_nobody_waits_either() -> None:
    """One tenant was served alone, never waiting; then both flood."""
    alone = [Ask("a", 20.0, 10, 10, 10, 1, 0.0) for _ in range(60)]
    both = [Ask(name, 20.0 * (not number), 10, 10, 10, 1, 0.0) for name in "ba" for number in range(40)]
    begun = hurried(run(FairnessSettings(places=1), alone + both)).begun
    assert 9 <= sum(number < 100 for number in begun[65:85]) <= 11


def test_who_is_ahead_stays_ahead_when_it_comes_back() -> None:
    """A tenant that asks for long replies one by one gets no more than one that waits with short ones."""

    async def steps(gate: FairScheduler) -> None:
        short = [asyncio.create_task(ask(gate, "short", 5)) for _ in range(90)]
        for _ in range(10):
            await ask(gate, "long", 30)
        assert abs(gate.served_tokens("long") - gate.served_tokens("short")) <= compute_fairness_bound(
            FairnessSettings(places=1), 0, 30
        )
        await asyncio.gather(*short)

    at(steps, places=1)


def test_a_newcomer_waits_for_one_place_only() -> None:
    asked = [*(Ask("a", 0.0, 10, 10, 10, 1, 0.0) for _ in range(99)), Ask("b", 300.0, 10, 10, 10, 1, 0.0)]
    begun = hurried(run(FairnessSettings(places=2), asked)).begun
    assert begun.index(99) == 2 * 28  # two calls every 11.1 s until 299.7 s


def at(steps: Callable[[FairScheduler], Coroutine[Any, Any, None]], **given: Any) -> None:
    """Run steps at a fresh gate in simulated time."""

    async def all_of_it() -> None:
        gate = FairScheduler(FairnessSettings.model_validate(given), clock=asyncio.get_running_loop().time)
        await steps(gate)

    hurried(all_of_it())


async def ask(gate: FairScheduler, tenant: str, tokens: int = 10, seconds: float = 1.0) -> float:
    """Ask for one call; return when it began."""
    async with gate.acquire(tenant, 0, tokens) as place:
        began = asyncio.get_running_loop().time()
        await asyncio.sleep(seconds)
        place.report_output(tokens)
    return began


@pytest.mark.parametrize("held", range(5))
@pytest.mark.parametrize("patient", range(8))
def test_a_call_cancelled_at_any_step_leaves_its_place_to_the_next(held: int, patient: int) -> None:
    """Steps of the event loop, one by one: while it waits, as it is granted, as it begins, as it ends."""

    async def call(gate: FairScheduler, steps: int) -> None:
        async with gate.acquire("a", 1, 1):
            for _ in range(steps):
                await asyncio.sleep(0)

    async def steps(gate: FairScheduler) -> None:
        first, second, third = (asyncio.create_task(call(gate, steps)) for steps in (held, 2, 1))
        for _ in range(patient):
            await asyncio.sleep(0)
        second.cancel()
        found = await asyncio.gather(first, second, third, return_exceptions=True)
        assert found[0] is found[2] is None
        assert (gate.free, gate.count_waiting("a")) == (1, 0)

    at(steps, places=1, tenants={"a": {"calls": 1, "tokens_per_minute": 100}})


def test_a_full_queue_says_what_to_do() -> None:
    async def steps(gate: FairScheduler) -> None:
        calls = [asyncio.create_task(ask(gate, "a")) for _ in range(3)]
        await asyncio.sleep(0.5)
        with pytest.raises(QueueFull, match=r"2 calls of a wait already(.|\n)*Ask again when some were answered"):
            await ask(gate, "a")
        assert await ask(gate, "b") == 1.0
        assert sorted(await asyncio.gather(*calls)) == [0.0, 2.0, 3.0]

    at(steps, places=1, default={"queue": 2})


def test_a_quota_of_tokens_lets_calls_wait() -> None:
    async def steps(gate: FairScheduler) -> None:
        began = await asyncio.gather(*(ask(gate, "a") for _ in range(4)))
        assert began == pytest.approx([0.0, 0.0, 60.0, 60.0], abs=0.01)

    at(steps, places=9, tenants={"a": {"tokens_per_minute": 20}})


def test_a_quota_holds_back_its_own_tenant_only() -> None:
    async def steps(gate: FairScheduler) -> None:
        own = asyncio.gather(*(ask(gate, "a") for _ in range(3)))
        others = await asyncio.gather(*(ask(gate, "b") for _ in range(5)))
        assert max(others) < 10
        assert max(await own) >= 60

    at(steps, places=1, tenants={"a": {"tokens_per_minute": 10}})


def test_a_quota_can_refuse_and_says_when_to_come_back() -> None:
    async def steps(gate: FairScheduler) -> None:
        await ask(gate, "a", 15)
        with pytest.raises(QuotaReached, match=r"may take 10; allowed: 20(.|\n)*Ask again in 59 s") as refused:
            await ask(gate, "a")
        assert 58 < refused.value.seconds <= 59
        await asyncio.sleep(59)
        await ask(gate, "a")

    at(steps, places=1, tenants={"a": {"tokens_per_minute": 20, "over": "refuse"}})


def test_a_call_that_never_fits_is_refused_at_once() -> None:
    async def steps(gate: FairScheduler) -> None:
        with pytest.raises(CallTooLarge, match="more than a may take in a minute"):
            await ask(gate, "a", 21)

    at(steps, places=1, tenants={"a": {"tokens_per_minute": 20}})


@pytest.mark.parametrize("over", ["wait", "refuse"])
def test_calls_at_once_are_limited(over: str) -> None:
    async def steps(gate: FairScheduler) -> None:
        found = await asyncio.gather(*(ask(gate, "a") for _ in range(3)), return_exceptions=True)
        if over == "wait":
            assert found == [0.0, 1.0, 2.0]
        else:
            assert found[0] == 0.0
            assert [type(outcome) for outcome in found[1:]] == [QuotaReached, QuotaReached]

    at(steps, places=9, tenants={"a": {"calls": 1, "over": over}})


def test_what_a_call_did_not_take_is_given_back() -> None:
    async def steps(gate: FairScheduler) -> None:
        for _ in range(10):
            async with gate.acquire("a", 0, 20) as place:
                place.report_output(2)
        assert gate.served_tokens("a") == 40.0
        assert asyncio.get_running_loop().time() == 0.0

    at(steps, places=1, tenants={"a": {"tokens_per_minute": 38}})


def test_a_call_that_says_nothing_is_charged_what_was_reserved() -> None:
    async def steps(gate: FairScheduler) -> None:
        with pytest.raises(OSError, match="broken"):
            async with gate.acquire("a", 3, 20):
                raise OSError("broken")
        assert gate.served_tokens("a") == 43.0
        assert gate.free == 1

    at(steps, places=1)


def test_tokens_in_are_put_right_while_a_call_holds_its_place() -> None:
    async def steps(gate: FairScheduler) -> None:
        for really in (10, 90):
            async with gate.acquire("a", 50, 20) as place:
                place.correct_input(really)
                place.report_output(5)
        assert gate.served_tokens("a") == 10 + 90 + 2 * 10
        place.correct_input(0)
        assert gate.served_tokens("a") == 120, "it holds its place no more"
        with pytest.raises(ServingError, match="no fewer tokens than 0"):
            place.correct_input(-1)

    at(steps, places=1)


def test_tokens_cannot_become_fewer() -> None:
    async def steps(gate: FairScheduler) -> None:
        async with gate.acquire("a", 3, 20) as place:
            place.report_output(5)
            with pytest.raises(ServingError, match="at least 5"):
                place.report_output(4)

    at(steps, places=1)


def test_a_gate_outlives_its_loop() -> None:
    gate = FairScheduler(FairnessSettings(places=1), clock=lambda: 0.0)
    for _ in range(2):
        assert hurried(ask(gate, "a")) == 0.0
    left = asyncio.new_event_loop()
    call = left.create_task(ask(gate, "a", seconds=1e6))
    left.run_until_complete(asyncio.sleep(0))
    with pytest.raises(ServingError, match="one event loop at a time"):
        hurried(ask(gate, "a"))
    call.cancel()
    left.run_until_complete(asyncio.wait([call]))
    left.close()
    assert hurried(ask(gate, "a")) == 0.0


@pytest.mark.parametrize("longer", [1.0, 4.0])
def test_a_flood_moves_the_tail_of_another_tenant_by_a_fifth_at_most(longer: float) -> None:
    found = ratios(Scenario(places=16, load=0.5, longer=longer, calls=1500))
    assert found["VTC"] <= 1.2
    assert found["FIFO"] > 3


def test_simulated_time_repeats_itself() -> None:
    scenario = Scenario(calls=50)
    first, again = (hurried(beside_flood(scenario, *ORDERS["VTC"])) for _ in range(2))
    assert first == again
