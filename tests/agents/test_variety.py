"""A round on too few mechanisms is reported, and the next one takes others."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from alphaloom.agents import AgentsConfig
from alphaloom.agents.memory.diversity import measure_variety
from alphaloom.agents.records import BranchHypothesis
from alphaloom.agents.schemas import Ideas
from alphaloom.router import Task

from .doubles import Lab, ask, context

Maker = Callable[..., Lab]
THREE = AgentsConfig(rounds=2, hypotheses=3, candidates=1, steps=0, islands=1, survey_share=0.0)


def hypotheses(*names: str, either_way: bool = False) -> list[BranchHypothesis]:
    return [BranchHypothesis.parse({"mechanism": name, "either_way": either_way}) for name in names]


def test_only_stated_mechanisms_count() -> None:
    assert measure_variety([]) == 0.0
    assert measure_variety(hypotheses("a", "b", "c")) == pytest.approx(3.0)
    assert measure_variety(hypotheses("a", "a", "a")) == pytest.approx(1.0)
    assert measure_variety([*hypotheses("a"), *hypotheses("b", "c", either_way=True)]) == pytest.approx(1.0)


def repeat_attention(task: Task) -> str | None:
    """Return three hypotheses on one mechanism in the first round, and the researcher's own words otherwise."""
    if task.schema is not Ideas or '"round": 1' not in task.messages[-1].content:
        return None
    (idea,) = ask(context("idea", steer={"focus": ["attention"]}, request={"count": 1, "round": 1}))["hypotheses"]
    horizons = (5, 10, 20)
    return Ideas.model_validate({"hypotheses": [{**idea, "horizon_days": days} for days in horizons]}).model_dump_json()


def test_a_round_on_one_mechanism_is_told_and_the_next_takes_others(lab: Maker) -> None:
    campaign = lab(config=THREE)
    campaign.model.say = repeat_attention
    campaign.run()
    told = [figures for event, figures in campaign.shown if event == "few_mechanisms"]
    assert [(figures["round"], round(figures["effective"], 6)) for figures in told] == [(1, 1.0)]
    second = [campaign.journal.read("hypothesis", f"r02/h{place:02d}") or {} for place in range(3)]
    assert len({body["mechanism"] for body in second}) == 3
    assert "attention" not in {body["mechanism"] for body in second}


def test_three_mechanisms_are_enough(lab: Maker) -> None:
    campaign = lab(config=THREE)
    campaign.run()
    assert not [figures for event, figures in campaign.shown if event == "few_mechanisms"]
