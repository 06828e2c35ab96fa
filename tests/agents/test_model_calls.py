"""What every question of the agents says of itself, whoever asks."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from alphaloom.agents import AgentsConfig, Models

from .doubles import Lab

Maker = Callable[..., Lab]


def test_all_that_agents_ask_bears_the_campaigns_label_place_and_tenant(lab: Maker) -> None:
    bound = AgentsConfig(rounds=1, hypotheses=2, sensitivity="confidential", jurisdiction="CH", tenant="desk")
    campaign = lab(config=bound)
    campaign.run()
    asked = campaign.model.tasks
    assert {task.role for task in asked} == {"idea", "factor", "eval"}
    assert {(task.sensitivity, task.jurisdiction, task.tenant) for task in asked} == {("confidential", "CH", "desk")}


def test_a_critique_is_compared_and_repairs_may_be_hedged(lab: Maker) -> None:
    campaign = lab(config=AgentsConfig(rounds=1, hypotheses=2))
    campaign.run()
    compared = {task.intent: task.compared for task in campaign.model.tasks}
    assert compared == {"hypotheses": (), "formulas": (), "critique": ("keep",)}
    assert {task.idempotent for task in campaign.model.tasks} == {False}


@pytest.mark.parametrize(
    ("given", "roles"),
    [
        ({}, {"idea": "frontier", "factor": "local", "eval": "frontier", "report": "local"}),
        ({"routing": {"policy": "learned"}}, {}),
        ({"routing": {"policy": "learned"}, "roles": {"idea": "frontier"}}, {"idea": "frontier"}),
    ],
)
def test_the_policy_that_learns_acts_on_roles_that_the_file_does_not_fix(given: Any, roles: Any) -> None:
    models = Models.model_validate(given)
    assert models.roles == roles
    assert Models.model_validate(models.model_dump(mode="json")) == models, "a resumed run keeps its roles"


@pytest.mark.parametrize("name", ["a b", "desk/one", "-desk", "d" * 65])
def test_a_tenant_has_a_name_that_a_token_may_have(name: str) -> None:
    with pytest.raises(ValidationError, match="tenant"):
        AgentsConfig(tenant=name)
