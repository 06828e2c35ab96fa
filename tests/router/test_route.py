from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from alphaloom.router import Confidential, ModelSettings, RouterConfig, Task
from alphaloom.router.policy.decision import Decider

Make = Callable[..., Task]
MODELS = {
    "cloud": {"model": "a/b", "tier": "frontier"},
    "near": {"model": "c/d", "place": "local"},
    "cloud2": {"model": "e/f", "tier": "frontier"},
    "near2": {"model": "g/h", "place": "local"},
}


def route(task: Task, models: dict[str, Any], **config: Any) -> tuple[str, ...]:
    roles = {"idea": "frontier", "eval": "frontier", "factor": "local"}
    _, chosen = Decider(RouterConfig.model_validate({"models": models, "roles": roles} | config)).route(task)
    return (chosen.name, *chosen.fallbacks)


def test_a_local_role_falls_back_within_its_tier_and_then_upwards(task: Make) -> None:
    assert route(task(role="factor"), MODELS) == ("near", "near2", "cloud", "cloud2")


@pytest.mark.parametrize("role", ["idea", "eval", "a role of one's own"])
def test_a_frontier_or_unknown_role_never_falls_downwards(task: Make, role: str) -> None:
    assert route(task(role=role), MODELS) == ("cloud", "cloud2")


def test_the_only_model_there_is_answers_all(task: Make) -> None:
    assert route(task(role="idea"), {"near": MODELS["near"]}) == ("near",)
    assert route(task(role="factor"), {"cloud": MODELS["cloud"]}) == ("cloud",)


@pytest.mark.parametrize("role", ["idea", "factor"])
def test_a_confidential_task_stays_here_also_when_falling_back(task: Make, role: str) -> None:
    assert route(task(role=role, sensitivity="confidential"), MODELS) == ("near", "near2")


def test_a_local_tier_is_not_a_local_place(task: Make) -> None:
    with pytest.raises(Confidential, match="may not leave this machine") as caught:
        route(task(sensitivity="confidential"), {"cheap": {"model": "cloud/mini", "tier": "local"}})
    assert "cheap (remote)" in str(caught.value)
    assert "place: local" in caught.value.hint


@pytest.mark.parametrize(
    "wrong",
    [
        {"api_base": "localhost:8000"},
        {"api_base": "file:///etc/passwd"},
        {"api_base": "http://me:secret@host/v1"},
        {"api_key_env": "sk-0123-456"},
        {"input_cost_per_mtok": 1.0},
        {"input_cost_per_mtok": -1.0, "output_cost_per_mtok": 1.0},
        {"tier": "middle"},
        {"api_key": "sk-1"},
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ModelSettings.model_validate({"model": "a/b"} | wrong)


def test_a_router_without_models_is_refused() -> None:
    with pytest.raises(ValidationError):
        RouterConfig(models={})
