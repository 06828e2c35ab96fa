import math

import pytest
from hypothesis import given, strategies as st
from scipy.stats import beta

from alphaloom.router import RouterError
from alphaloom.router.config import LearningSettings, Tier
from alphaloom.router.policy.learning import FLOOR_QUANTILE, WAYS, Learner, TierOutcome, cost_per_valid

from .learning import World, always, laws, learner

INTENTS, DIFFICULTIES = ("summary", "code"), ("low", "high")
tiers: st.SearchStrategy[Tier] = st.sampled_from(["local", "frontier"])
outcomes = st.builds(
    TierOutcome, st.sampled_from(INTENTS), tiers, st.booleans(), st.floats(0, 0.05), st.sampled_from(DIFFICULTIES)
)
courses = st.lists(outcomes, max_size=80)
limits = st.builds(
    LearningSettings,
    half_life=st.sampled_from([1.0, 10.0, 200.0, math.inf]),
    floor=st.sampled_from([0.0, 0.5, 0.9, 1.0]),
    try_hard_locally=st.booleans(),
)


def local(success: bool, difficulty: str = "low") -> TierOutcome:
    return TierOutcome("code", "local", success, 0.0, difficulty)


@given(limits=limits, course=courses, seed=st.integers(0, 9))
def test_no_outcome_moves_a_bound(limits: LearningSettings, course: list[TierOutcome], seed: int) -> None:
    one = Learner(limits, seed, course)
    for intent in INTENTS:
        for difficulty in DIFFICULTIES:
            way = one.decide("key", intent, difficulty).way
            law = one.find_arm(intent, difficulty, "local").law
            if difficulty == "high" and beta.ppf(FLOOR_QUANTILE, *law) < limits.floor - 1e-9:
                assert way in (("frontier", "cascade") if limits.try_hard_locally else ("frontier",))


@given(limits=limits, course=courses, seed=st.integers(0, 9))
def test_what_was_learned_is_rebuilt_from_the_record(
    limits: LearningSettings, course: list[TierOutcome], seed: int
) -> None:
    living, said = Learner(limits, seed), []
    for number, outcome in enumerate(course):
        said.append(living.decide(str(number), outcome.intent, outcome.difficulty))
        living.record(outcome)
    for number in range(0, len(course), 7):
        rebuilt = Learner(limits, seed, course[:number])
        assert rebuilt.decide(str(number), course[number].intent, course[number].difficulty) == said[number]


def test_keys_and_seeds_draw_differently_and_the_order_of_asking_does_not_matter() -> None:
    one = learner(1)
    keys = [str(number) for number in range(60)]
    forth = {key: one.decide(key, "code").way for key in keys}
    assert {key: one.decide(key, "code").way for key in reversed(keys)} == forth
    assert forth != {key: learner(2).decide(key, "code").way for key in keys}
    assert len(set(forth.values())) > 1


@given(limits=limits, course=courses, turned=st.integers(0, 79))
def test_a_success_never_lowers_the_mean(limits: LearningSettings, course: list[TierOutcome], turned: int) -> None:
    def mean(course: list[TierOutcome]) -> float:
        return mean_local(Learner(limits, 0, course))

    assert mean([*course, local(True)]) >= mean(course) - 1e-12
    assert mean([*course, local(False)]) <= mean(course) + 1e-12
    place = turned % (len(course) + 1)
    assert mean([*course[:place], local(True), *course[place:]]) >= mean(
        [*course[:place], local(False), *course[place:]]
    )


def test_the_floor_opens_when_success_is_shown() -> None:
    one = learner(0, floor=0.9)
    assert one.list_ways("code", "high")[0] == ("frontier",)
    for _ in range(20):
        one.record(local(True, "high"))
    assert one.list_ways("code", "high")[0] == ("frontier",)
    for _ in range(20):
        one.record(local(True, "high"))
    assert one.list_ways("code", "high") == (WAYS, "")


def test_a_poor_local_model_hardly_ever_gets_past_the_floor() -> None:
    """A success of 0.8 below a floor of 0.9, looked at before every one of 2,000 calls."""
    one, past = learner(0, floor=0.9), 0
    world = World(0, 2000)

    def hear(outcome: TierOutcome) -> None:
        nonlocal past
        past += "local" in one.list_ways("summary", "high")[0]
        one.record(outcome)

    world.play(always("cascade"), hear, [{cell: {"local": 0.8, "frontier": 0.95} for cell in laws(0)}])
    assert past < 20


def test_a_decision_says_why() -> None:
    assert learner(0).decide("k", "code", "high").why == "local has shown a success of 0.05 at least, the floor is 0.90"
    decision = learner(0).decide("k", "code")
    assert f"makes {decision.way} cheapest" in decision.why


def test_the_cost_of_a_valid_reply_is_what_one_counts_by_hand() -> None:
    success: dict[Tier, float] = {"local": 0.5, "frontier": 0.8}
    usd: dict[Tier, float] = {"local": 1.0, "frontier": 10.0}
    assert cost_per_valid("local", success, usd, 2.0) == pytest.approx((1 + 0.5 * 2) / 0.5)
    assert cost_per_valid("frontier", success, usd, 2.0) == pytest.approx((10 + 0.2 * 2) / 0.8)
    assert cost_per_valid("cascade", success, usd, 2.0) == pytest.approx((1 + 0.5 * (2 + 10 + 0.2 * 2)) / 0.9)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("half", [0, 1])
def test_a_learner_costs_less_than_any_fixed_way(half: int, seed: int) -> None:
    one = learner(seed, floor=0.0)
    learned = World(seed, 1500).play(lambda key, cell, _: one.decide(key, *cell).way, one.record, [laws(half)])
    assert learned < 0.95 * min(World(seed, 1500).play(always(way), lambda _: None, [laws(half)]) for way in WAYS)


def mean_local(one: Learner) -> float:
    """Return the expected success of the local model."""
    good, bad = one.find_arm("code", "low", "local").law
    return good / (good + bad)


def share_local(one: Learner, first: int) -> float:
    """Return how often the next 200 keys would go to the local model first."""
    return sum(one.decide(f"{first}.{number}", "code").way != "frontier" for number in range(200)) / 200


def live(one: Learner, success: float, calls: int, name: str) -> None:
    """Let the learner decide, and tell it what became of it; the frontier always succeeds."""
    for number in range(calls):
        way = one.decide(f"{name}{number}", "code").way
        if way != "frontier":
            one.record(TierOutcome("code", "local", number % 100 < 100 * success, 0.0004))
        if way == "frontier":
            one.record(TierOutcome("code", "frontier", True, 0.01))


def test_it_notices_that_a_model_became_worse_and_better_again() -> None:
    one = learner(0)
    live(one, 0.97, 400, "good")
    assert share_local(one, 1) > 0.95
    live(one, 0.0, 400, "bad")
    assert share_local(one, 2) < 0.2
    live(one, 0.97, 2500, "mended")
    assert share_local(one, 3) > 0.95


def test_what_is_not_asked_is_forgotten_in_time() -> None:
    """Else a tier that was poor once would never be tried again."""
    one = Learner(LearningSettings(half_life=10), 0, [local(False)] * 50)
    assert mean_local(one) < 0.1
    for _ in range(100):
        one.record(TierOutcome("code", "frontier", True, 0.01))
    assert mean_local(one) == pytest.approx(0.5, abs=0.01)


def test_it_learns_the_price() -> None:
    """A local model that is dearer than the frontier is not asked, however good it is."""
    dear = [
        TierOutcome("code", tier, True, {"local": 0.05, "frontier": 0.01}[tier]) for tier in ("local", "frontier")
    ] * 50
    assert share_local(Learner(LearningSettings(), 0, dear), 0) == 0.0


@pytest.mark.parametrize("price", [-0.1, math.nan, math.inf])
def test_an_outcome_needs_a_price(price: float) -> None:
    with pytest.raises(RouterError, match="Take the price that the ledger holds"):
        learner(0).record(TierOutcome("code", "local", True, price))
