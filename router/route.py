"""From a task to the models that may answer it, in the order in which they are asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .config import ModelSettings, RouterConfig
from .errors import Confidential, NoModel
from .task import Task


@dataclass(frozen=True)
class Route:
    """The model that is asked, and those that are asked if it fails."""

    name: str
    fallbacks: tuple[str, ...]


def choose(task: Task, config: RouterConfig) -> Route:
    """Return the first model of the role's tier, then the rest of that tier, then the tier above; never one below.

    A role without a setting asks the frontier tier. Where no model of the tier is configured, the other tier answers:
    a house with one model needs no second.

    Raises
    ------
    Confidential
        If the task may not leave this machine and no configured model is on it.
    """
    allowed = permitted(task, config.models)
    tier = config.roles.get(task.role, "frontier")
    same = [name for name, each in allowed.items() if each.tier == tier]
    above = [name for name, each in allowed.items() if each.tier == "frontier" != tier]
    order = same + above or list(allowed)
    return Route(order[0], tuple(order[1:]))


def permitted(task: Task, models: Mapping[str, ModelSettings]) -> dict[str, ModelSettings]:
    """Return the models that may see the task."""
    if task.sensitivity != "confidential":
        return dict(models)
    here = {name: each for name, each in models.items() if each.place == "local"}
    if not here:
        raise Confidential(
            f"a confidential task ({task.role}, {task.intent}) may not leave this machine, and no model here is set up",
            field="models",
            got=[f"{name} ({each.place})" for name, each in models.items()],
            allowed="a model with place: local",
            hint="Serve a model on a machine of yours and give it place: local, or lower the task's sensitivity.",
        )
    return here


def secret(settings: ModelSettings, environment: Mapping[str, str]) -> str | None:
    """Return a model's key; None if it needs none.

    Raises
    ------
    NoModel
        If the variable that should hold it is empty or not set.
    """
    if settings.api_key_env is None:
        return None
    value = environment.get(settings.api_key_env, "")
    if not value:
        raise NoModel(
            f"{settings.model} needs a key, and the environment variable {settings.api_key_env} is not set",
            field="api_key_env",
            got=settings.api_key_env,
            hint=f"export {settings.api_key_env}=... and try again; the key itself is never written down.",
        )
    return value
