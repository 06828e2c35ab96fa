"""Which models may see a task, and the keys that they want."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .config import ModelSettings
from .errors import Confidential, NoModel
from .task import Sensitivity, Task


@dataclass(frozen=True)
class Route:
    """The model that is asked, and those that are asked if it fails."""

    name: str
    fallbacks: tuple[str, ...]


def permitted(task: Task, models: Mapping[str, ModelSettings]) -> dict[str, ModelSettings]:
    """Return the models that may see the task; why none may, where that is so."""
    reasons = {name: barred(each, task.sensitivity, task.jurisdiction) for name, each in models.items()}
    here = {name: each for name, each in models.items() if not reasons[name]}
    if not here and task.sensitivity != "confidential":
        raise Confidential(
            f"a task ({task.role}, {task.intent}) may not leave {task.jurisdiction}, and no model there is set up",
            field="models",
            got=[f"{name} ({each.place} {each.region})".replace(" )", ")") for name, each in models.items()],
            allowed=f"a model with place: local, or region: {task.jurisdiction}",
            hint="Serve a model on a machine of yours and give it place: local, or name the region of one that is there.",
        )
    if not here:
        raise Confidential(
            f"a confidential task ({task.role}, {task.intent}) may not leave this machine, and no model here is set up",
            field="models",
            got=[f"{name} ({each.place})" for name, each in models.items()],
            allowed="a model with place: local",
            hint="Serve a model on a machine of yours and give it place: local, or lower the task's sensitivity.",
        )
    return here


def barred(settings: ModelSettings, sensitivity: Sensitivity, jurisdiction: str) -> str:
    """Return why a text may not be sent to a model; empty where it may."""
    if settings.place in ("local", "attested"):
        return ""
    if sensitivity == "confidential":
        return f"confidential text does not leave, and this model is {settings.place}"
    if jurisdiction and settings.region != jurisdiction:
        return f"the text may not leave {jurisdiction}, and this model runs in {settings.region or 'no stated region'}"
    return ""


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
