"""Models that answer with nothing that can be used: what is stopped and asked anew, and what a person is told."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from alphaloom.agents import AgentsConfig
from alphaloom.agents.errors import NoUsableReply
from alphaloom.agents.questions import describe_unusable_replies
from alphaloom.router import ReplyRefused, Task

from .doubles import Lab

Maker = Callable[..., Lab]
ONCE = AgentsConfig(rounds=1, hypotheses=2, candidates=1, steps=0, max_concurrency=1)


def rubbish(*roles: str, upto: int = 9) -> Callable[[Task], None]:
    def say(task: Task) -> None:
        number = int(json.loads(task.messages[1].content).get("hypothesis", {"id": "r01"})["id"][1:3])
        if task.role in roles and number <= upto:
            raise ReplyRefused("qwen gave no reply that fits, after 2 repairs:\nno JSON")

    return say


@pytest.mark.parametrize("role", ["idea", "factor"])
def test_a_search_without_any_usable_reply_stops_and_asks_anew_when_it_is_resumed(lab: Maker, role: str) -> None:
    campaign = lab(config=ONCE)
    campaign.model.say = rubbish(role)
    for _ in range(2):
        with pytest.raises(NoUsableReply, match="nothing was tested: qwen gave no reply"):
            campaign.run(resume=True)
    asked = [task.seed for task in campaign.model.tasks if task.role == role]
    assert len(asked) == len(set(asked))
    campaign.model.say = lambda task: None
    assert campaign.run(resume=True)["finished"]
    assert len(campaign.servers.scored) == 2


def test_a_round_without_a_usable_formula_costs_that_round_only_if_another_brings_some(lab: Maker) -> None:
    campaign = lab(config=ONCE.model_copy(update={"rounds": 2}))
    campaign.model.say = rubbish("factor", upto=1)
    assert campaign.run()["round"] == 2
    assert len(campaign.servers.scored) == 2
    written = [(f"agents.{kind}", key, json.loads(body)) for (kind, key), body in campaign.journal.kept.items()]
    told = (
        "2 of 6 questions had no usable reply (formulas for r01/h00/s0/a0, formulas for r01/h01/s0/a0): "
        "qwen gave no reply that fits, after 2 repairs"
    )
    assert describe_unusable_replies(written) == [told]


def test_a_person_is_told_nothing_where_all_replies_were_of_use() -> None:
    assert (
        describe_unusable_replies(
            [("agents.ideas", "r01", {"hypotheses": []}), ("agents.score", "x", {"failed": "no"})]
        )
        == []
    )
