"""A person's words: what they change about what is proposed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from alphaloom.agents import AgentsConfig, Steer
from alphaloom.agents.memory.diversity import is_near_duplicate
from alphaloom.agents.offline import describe_unmatched
from alphaloom.agents.offline.ideas import choose_variant
from alphaloom.agents.offline.mechanisms import load_mechanisms
from alphaloom.agents.records import BranchHypothesis

from .doubles import FIELDS, GROUPS, Lab, ask, context

Maker = Callable[..., Lab]
IDEAS = AgentsConfig(rounds=1, hypotheses=6, candidates=1, steps=0)


def ideas(steer: dict[str, Any], count: int = 6, seed: int = 0, **record: Any) -> list[dict[str, Any]]:
    told = {"factors": [], "hypotheses": [], "library": [], **record}
    body = context("idea", steer=steer, record=told, request={"count": count, "round": 1})
    return list(ask(body, seed)["hypotheses"])


def test_the_goal_decides_what_comes_first() -> None:
    calm = ideas({"goal": "calm names after sector stress, monthly horizon, low turnover"})
    night = ideas({"goal": "what happens overnight, between the close and the open"})
    said = [idea["mechanism"] for idea in calm]
    assert said[:3] == [
        "sector_leader",
        "liquidity_shock",
        "quiet_drift",
    ]  # sector, stress, calm: each side of the goal
    assert "low_volatility" in said
    assert "overnight_drift" in [idea["mechanism"] for idea in night[:2]]
    assert {idea["mechanism"] for idea in calm} != {idea["mechanism"] for idea in night}
    assert not any(idea["mechanism"].startswith("survey") for idea in calm)


@given(st.lists(st.sampled_from(["momentum", "volatility", "sector", "survey", "price", "reversal"]), max_size=4))
def test_what_is_to_be_avoided_is_never_proposed(avoid: list[str]) -> None:
    said = Steer(avoid=tuple(avoid))
    for idea in ideas({"avoid": avoid, "goal": "momentum of volatile sectors"}, count=12):
        assert not said.find_avoided(idea["mechanism"], idea["statement"])


def test_the_focus_comes_before_the_goal_and_again() -> None:
    tried = [{"id": f"r0{n}/h00", "mechanism": "lottery_demand", "statement": ""} for n in range(3)]
    found = ideas({"goal": "calm names", "focus": ["lottery demand"]}, hypotheses=tried)
    assert found[0]["mechanism"] == "lottery_demand"


def test_a_goal_that_nothing_matches_is_told() -> None:
    assert describe_unmatched({"goal": "calm names", "avoid": ["momentum"]}) == []
    goal, avoid = describe_unmatched({"goal": "xylophone zebra", "avoid": ["momentum", "ziggurat"]})
    assert "xylophone zebra" in goal
    assert "'ziggurat'" in avoid
    assert "momentum" not in avoid


def test_an_entry_without_a_word_is_refused() -> None:
    with pytest.raises(ValidationError, match="a word that says something"):
        Steer(avoid=("of the",))


def test_a_mechanism_is_told_anew_each_time() -> None:
    for mechanism in load_mechanisms():
        fields = [name for name in mechanism.fields if name in FIELDS]
        if not mechanism.usable((*FIELDS, *GROUPS)):
            continue
        told = [choose_variant(mechanism, fields, 5, tries) for tries in range(4)]
        said = [
            BranchHypothesis({}, mechanism=mechanism.id, statement=v.statement, fields=v.fields, horizon_days=v.horizon)
            for v in told
        ]
        assert not any(is_near_duplicate(one, other, 0.8) for i, one in enumerate(said) for other in said[:i]), (
            mechanism.id
        )
        assert all({*v.fields} <= {*fields} and 1 <= v.horizon <= 25 for v in told)


def test_the_words_reach_every_prompt_as_data_before_what_changes(lab: Maker) -> None:
    campaign = lab(config=IDEAS, steer=Steer(goal="calm names", avoid=("momentum",)))
    campaign.run()
    said = [json.loads(task.messages[1].content) for task in campaign.model.tasks if task.role in ("idea", "factor")]
    assert {body["task"] for body in said} == {"idea", "factor"}
    for body in said:
        assert body["steer"] == {"goal": "calm names", "avoid": ["momentum"]}
        assert list(body).index("steer") < list(body).index("record")
    assert all("calm names" not in task.messages[0].content for task in campaign.model.tasks)


def test_without_words_no_prompt_speaks_of_them(lab: Maker) -> None:
    campaign = lab(config=IDEAS)
    campaign.run()
    assert all("steer" not in json.loads(task.messages[1].content) for task in campaign.model.tasks)


def test_what_is_misspelt_is_told_with_what_was_probably_meant() -> None:
    (said,) = describe_unmatched({"avoid": ["prise level"]})
    assert "did you mean 'price level'?" in said


def test_what_is_wanted_and_avoided_at_once_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="focus and avoid both speak of price level"):
        Steer(focus=("price level",), avoid=("price level",))
