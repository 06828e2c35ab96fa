"""What gets a branch: nothing that was proposed before, and nothing that the person does not want."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from alphaloom.agents import AgentsConfig, Steer
from alphaloom.agents.memory.diversity import HypothesisFilter, HypothesisIntake, is_near_duplicate
from alphaloom.agents.nodes.idea_agent import count_useful_ideas
from alphaloom.agents.prompt import load_prompt
from alphaloom.agents.records import BranchHypothesis
from alphaloom.router import Task

from .doubles import Lab

Maker = Callable[..., Lab]
parse = BranchHypothesis.parse

CALM: dict[str, Any] = {
    "mechanism": "calm_names",
    "statement": "Calm stocks are neglected by those who want to be rich soon.",
    "who_is_on_the_other_side": "gamblers",
    "why_it_persists": "habit",
    "direction": -1,
    "horizon_days": 20,
    "fields": ["returns", "close"],
    "regime": "any",
    "refuted_by": "t below 3",
}
BUSY = CALM | {
    "mechanism": "busy_names",
    "statement": "Volume that jumps draws attention, and attention pays too much.",
}
SMALL = AgentsConfig(rounds=2, hypotheses=2, candidates=1, steps=0)


def test_other_words_for_the_same_are_near_duplicates() -> None:
    again = CALM | {"statement": "The calm stock is neglected by those, who want to be RICH soon!"}
    assert is_near_duplicate(parse(CALM), parse(again), 0.8)
    assert not is_near_duplicate(parse(CALM), parse(BUSY), 0.8)


def test_another_direction_horizon_or_field_or_parent_is_another_hypothesis() -> None:
    parent = f"{CALM['statement']} Follow-up of f0123456789abcdef."
    for change in (
        {"direction": 1},
        {"horizon_days": 5},
        {"fields": ["volume", "close"]},
        {"statement": parent},
    ):
        assert not is_near_duplicate(parse(CALM), parse(CALM | change), 0.8), change


def test_the_sieve_says_why() -> None:
    sieve = HypothesisFilter(Steer(avoid=("attention",)), ("returns", "close"), 0.8)
    kept, refused = sieve.sort([parse(body) for body in (CALM, CALM, BUSY, CALM | {"fields": ["cap"]})], [])
    assert [hypothesis.body for hypothesis in kept] == [CALM]
    assert [row["why"] for row in refused] == [
        "it says nearly the same as another of this reply",
        "it is about 'attention', which this campaign avoids",
        "it names cap: allowed are the fields close, returns",
    ]


def replies(*rounds: list[dict[str, Any]]) -> Callable[[Task], str | None]:
    """Return a model whose Idea agent says these hypotheses, call by call, and then the last again and again."""
    said = list(rounds)

    def say(task: Task) -> str | None:
        if task.role != "idea":
            return None
        return json.dumps({"hypotheses": said.pop(0) if len(said) > 1 else said[0]})

    return say


def ideas(campaign: Lab) -> list[dict[str, Any]]:
    return [json.loads(task.messages[1].content) for task in campaign.model.tasks if task.role == "idea"]


def test_a_repeated_hypothesis_gets_no_branch_and_the_agent_is_told(lab: Maker) -> None:
    campaign = lab(config=SMALL)
    campaign.model.say = replies([CALM, CALM], [BUSY], [CALM, BUSY], [CALM])
    state = campaign.run()
    branches = sorted(key for kind, key in campaign.journal.kept if kind == "hypothesis")
    assert branches == ["r01/h00", "r01/h01"]
    assert state["finished"]
    first, again, second, last = ideas(campaign)
    assert "refused" not in first["record"]
    assert again["record"]["refused"][0]["why"] == "it says nearly the same as another of this reply"
    assert again["request"]["count"] == 1
    assert len(second["record"]["refused"]) == 1
    assert {row["why"] for row in last["record"]["refused"][1:]} == {
        "it says nearly the same as r01/h00",
        "it says nearly the same as r01/h01",
    }


def test_a_model_that_never_says_anything_new_costs_two_calls_a_round(lab: Maker) -> None:
    campaign = lab(config=SMALL.model_copy(update={"rounds": 3}))
    campaign.model.say = replies([CALM, CALM])
    assert campaign.run()["finished"]
    assert len(ideas(campaign)) == 6


def test_memory_can_be_switched_off(lab: Maker) -> None:
    told, untold = lab(), lab(config=SMALL.model_copy(update={"memory": False, "candidates": 2}))
    told.run()
    untold.run()
    assert ideas(told)[-1]["record"]["factors"]
    for body in ideas(untold):
        assert body["record"]["factors"] == body["record"]["hypotheses"] == []


def test_of_a_small_models_hypotheses_those_are_of_use_that_would_get_a_branch() -> None:
    page = " ".join(load_prompt("idea").text.split())
    example = json.JSONDecoder().raw_decode(page[page.index('{"hypotheses"') :])[0]["hypotheses"][0]
    surveys = [BUSY | {"either_way": True, "statement": f"{word} orders stocks."} for word in ("Volume", "Range")]
    for proposed, useful in (
        ([CALM, BUSY], 2),
        ([CALM, CALM], 1),
        ([CALM | {"who_is_on_the_other_side": "the and of"}], 0),
        ([example], 0),
        (surveys, 1),
    ):
        intake = HypothesisIntake(HypothesisFilter(Steer(), (), 0.8), [], 4)
        assert count_useful_ideas(intake, proposed, 1) == useful
        assert not intake.kept
