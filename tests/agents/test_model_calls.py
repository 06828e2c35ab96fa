"""What every question of the agents says of itself, whoever asks."""

from collections.abc import Callable

import pytest
from pydantic import ValidationError

from alphaloom.agents import AgentsConfig

from .doubles import Lab

Maker = Callable[..., Lab]


def test_all_that_agents_ask_bears_the_campaigns_label_place_and_tenant(lab: Maker) -> None:
    bound = AgentsConfig(rounds=1, hypotheses=2, sensitivity="confidential", jurisdiction="CH", tenant="desk")
    campaign = lab(config=bound)
    campaign.run()
    asked = campaign.model.tasks
    assert {task.role for task in asked} == {"idea", "factor", "eval"}
    assert {(task.sensitivity, task.jurisdiction, task.tenant) for task in asked} == {("confidential", "CH", "desk")}


@pytest.mark.parametrize("name", ["a b", "desk/one", "-desk", "d" * 65])
def test_a_tenant_has_a_name_that_a_token_may_have(name: str) -> None:
    with pytest.raises(ValidationError, match="tenant"):
        AgentsConfig(tenant=name)
