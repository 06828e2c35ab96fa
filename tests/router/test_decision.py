"""Which model answers, by declaration, house rules and the text; and nothing goes where it may not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from alphaloom.router import RouterConfig
from alphaloom.router.classifier import INTENTS
from alphaloom.router.classifier.model import Classifier
from alphaloom.router.policy.decision import NEXT_MODEL_REASON, Decider, RoutingQuestion
from alphaloom.router.policy.intents import ROLE_INTENTS

CLASSIFIER = Classifier.shipped()
MODELS: dict[str, Any] = {
    "large": {"model": "a/large", "tier": "frontier", "input_cost_per_mtok": 5.0, "output_cost_per_mtok": 25.0},
    "small": {"model": "hosted_vllm/small", "place": "local", "context_tokens": 2_000},
    "quick": {"model": "b/quick", "region": "EU", "place": "region",
              "input_cost_per_mtok": 0.1, "output_cost_per_mtok": 0.4},
    "sealed": {"model": "c/sealed", "tier": "frontier", "place": "attested", "input_cost_per_mtok": 9.0,
               "output_cost_per_mtok": 9.0},
}  # fmt: skip  # a table
EASY = "Which field holds the traded volume in shares?"
HARD = (
    "Find a mechanism nobody trades by which passive flows distort borrow fees, and say how to prove that it is causal."
)


def decider(**config: Any) -> Decider:
    return Decider(RouterConfig.model_validate({"models": MODELS} | config), CLASSIFIER)


def test_what_is_easy_stays_and_what_may_be_hard_goes_up() -> None:
    easy, hard = (decider().decide(RoutingQuestion(prompt=prompt)) for prompt in (EASY, HARD))
    assert (easy.tier, easy.model, easy.difficulty, easy.cost_usd) == ("local", "small", "low", 0.0)
    assert (hard.tier, hard.model, hard.difficulty) == ("frontier", "large", "high")
    assert hard.cost_usd == pytest.approx(5e-6 * hard.signals["tokens"] + 25e-6 * hard.signals["reply_tokens"])
    assert [alternative.model for alternative in easy.alternatives if alternative.reason == NEXT_MODEL_REASON] == [
        "quick",
        "large",
        "sealed",
    ]
    assert [alternative.model for alternative in hard.alternatives if alternative.reason == NEXT_MODEL_REASON] == [
        "sealed"
    ], "hard never goes down"


@pytest.mark.parametrize(
    ("config", "asked", "word"),
    [
        ({"routing": {"most_hard": 0.0}}, {}, "may fail"),
        ({"routing": {"local_tokens": 5}}, {}, "local_tokens"),
        ({"routing": {"local_depth": 1}}, {"schema_depth": 2}, "local_depth"),
        ({"roles": {"data": "frontier"}}, {"role": "data"}, "role data"),
        (
            {"routing": {"intents": {"data_lookup": "frontier"}}, "roles": {"data": "local"}},
            {"role": "data"},
            "intent data_lookup",
        ),
    ],
)
def test_each_signal_can_send_an_easy_prompt_up_and_says_so(config: Any, asked: Any, word: str) -> None:
    decision = decider(**config).decide(RoutingQuestion(prompt=EASY, **asked))
    assert decision.tier == "frontier"
    assert word in decision.reason


def test_a_role_or_intent_that_the_house_gave_a_tier_keeps_it_whatever_the_text_says() -> None:
    decision = decider(routing={"intents": {"factor_idea": "local"}}).decide(RoutingQuestion(prompt=HARD, role="idea"))
    assert (decision.intent, decision.tier, decision.difficulty) == ("factor_idea", "local", "high")


@pytest.mark.parametrize(("role", "prior"), ROLE_INTENTS.items())
def test_a_role_says_what_is_wanted_unless_the_text_says_the_other_thing_that_it_sends(role: str, prior: Any) -> None:
    for prompt in (EASY, HARD, "hm"):
        assert decider().decide(RoutingQuestion(prompt=prompt, role=role)).intent in prior


def test_declared_intents_and_roles_of_ones_own_are_taken_at_their_word() -> None:
    own = decider(routing={"roles": {"esg": {"esg_check": 1.0}}, "intents": {"esg_check": "local"}})
    assert own.decide(RoutingQuestion(prompt=HARD, role="esg")).intent == "esg_check"
    assert own.decide(RoutingQuestion(prompt=HARD, role="esg")).tier == "local"
    assert decider().decide(RoutingQuestion(prompt=EASY, intent="formulas")).intent == "code"
    assert decider().decide(RoutingQuestion(prompt=EASY, role="nobody heard of it")).intent == "data_lookup"


PROVEN = frozenset({"sealed"})


def test_confidential_text_is_told_with_models_that_may_see_it_only() -> None:
    hard = decider().decide(RoutingQuestion(prompt=HARD, sensitivity="confidential", attested=PROVEN))
    assert hard.model == "sealed"
    closed = {
        alternative.model: alternative.reason
        for alternative in hard.alternatives
        if alternative.reason != NEXT_MODEL_REASON
    }
    assert "does not leave" in closed["large"]
    assert "does not leave" in closed["quick"]
    swiss = decider().decide(RoutingQuestion(prompt=EASY, jurisdiction="EU", attested=PROVEN))
    assert [
        swiss.model,
        *(alternative.model for alternative in swiss.alternatives if alternative.reason == NEXT_MODEL_REASON),
    ] == [
        "small",
        "quick",
        "sealed",
    ]


def test_an_attested_model_without_its_proof_is_as_any_that_is_elsewhere() -> None:
    bare = decider().decide(RoutingQuestion(prompt=HARD, sensitivity="confidential"))
    assert bare.model == "small"
    assert (
        "only while its proof holds"
        in {alternative.model: alternative.reason for alternative in bare.alternatives}["sealed"]
    )
    assert (bare.signals["attested"], decider().decide(RoutingQuestion(prompt=HARD)).model) == ([], "large")
    assert decider().decide(RoutingQuestion(prompt=HARD, sensitivity="confidential")) == bare


def test_a_call_that_does_not_fit_goes_to_another_of_its_tier() -> None:
    assert decider().decide(RoutingQuestion(prompt=EASY, context_tokens=1_900)).model == "quick"


@given(
    st.text(max_size=400),
    st.sampled_from([None, *ROLE_INTENTS, "x"]),
    st.sampled_from(["public", "internal", "confidential"]),
    st.sampled_from(["", "EU", "CH"]),
    st.integers(1, 5_000),
    st.sampled_from([PROVEN, frozenset()]),
)
def test_no_decision_breaks_a_rule(
    prompt: str, role: str | None, sensitivity: Any, jurisdiction: str, tokens: int, proven: frozenset[str]
) -> None:
    asked = RoutingQuestion(
        prompt=prompt,
        role=role,
        sensitivity=sensitivity,
        jurisdiction=jurisdiction,
        context_tokens=tokens,
        attested=proven,
    )
    decision = decider().decide(asked)
    assert decision == decider().decide(asked)
    json.dumps(decision.record(), allow_nan=False)
    assert {decision.model, *(alternative.model for alternative in decision.alternatives)} - {None} == {*MODELS}
    for name in [
        decision.model,
        *(alternative.model for alternative in decision.alternatives if alternative.reason == NEXT_MODEL_REASON),
    ]:
        if name is None:
            continue
        model = MODELS[name]
        safe = model.get("place") == "local" or name in proven
        assert safe or sensitivity != "confidential"
        assert safe or not jurisdiction or model.get("region") == jurisdiction
        assert decision.tier != "frontier" or model.get("tier") == "frontier" or "no frontier model" in decision.reason
    assert decision.intent in INTENTS
    assert decision.tier == "frontier" or decision.signals["hard"] < decider().config.routing.most_hard


@pytest.mark.parametrize(
    ("local", "checked", "tier"), [(0.0, True, "local"), (99.0, True, "frontier"), (0.0, False, "frontier")]
)
def test_a_small_model_whose_reply_is_checked_is_asked_first_while_that_is_cheaper(
    local: float, checked: bool, tier: str
) -> None:
    small = {"model": "a/small", "place": "local", "input_cost_per_mtok": local, "output_cost_per_mtok": local}
    large = {"model": "a/large", "tier": "frontier", "input_cost_per_mtok": 100, "output_cost_per_mtok": 100}
    asked = RoutingQuestion(prompt="", role="report", intent="summary", context_tokens=900, checked=checked)
    decision = decider(models={"small": small, "large": large}).decide(asked)
    assert (decision.tier, decision.signals["hard"] >= 0.15) == (tier, True)
