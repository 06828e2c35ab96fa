"""What every question of the agents says of itself, whoever asks."""

from collections.abc import Callable

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
