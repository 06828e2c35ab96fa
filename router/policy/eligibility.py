"""Which models may see a task, and the keys that they want."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from ...extras import install_hint
from ..calls.task import Sensitivity, Task
from ..config import ModelSettings
from ..errors import Confidential, NoModel


@dataclass(frozen=True)
class Route:
    """The model that is asked, and those that are asked if it fails."""

    name: str
    fallbacks: tuple[str, ...]


def permitted_models(
    task: Task, models: Mapping[str, ModelSettings], attested: Collection[str] = ()
) -> dict[str, ModelSettings]:
    """Return the models that may see the task, `attested` being those whose proof holds; why none may, where that is so."""
    reasons = {
        name: bar_reason(each, task.sensitivity, task.jurisdiction, name in attested) for name, each in models.items()
    }
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
            allowed="a model with place: local, or place: attested with an attestation that holds",
            hint="Serve a model on a machine of yours and give it place: local, or lower the task's sensitivity.",
        )
    return here


def bar_reason(settings: ModelSettings, sensitivity: Sensitivity, jurisdiction: str, proven: bool = False) -> str:
    """Return why a text may not be sent to a model; empty where it may.

    A model that is attested stands beside one of the house while its proof holds (`proven`), and is as any other that is
    elsewhere while it does not.
    """
    if settings.place == "local" or (settings.place == "attested" and proven):
        return ""
    if sensitivity == "confidential":
        if settings.place == "attested":
            return "confidential text goes to an attested model only while its proof holds, and none does"
        return f"confidential text does not leave, and this model is {settings.place}"
    if jurisdiction and settings.region != jurisdiction:
        return f"the text may not leave {jurisdiction}, and this model runs in {settings.region or 'no stated region'}"
    return ""


def secret(settings: ModelSettings, environment: Mapping[str, str]) -> str | None:
    """Return a model's key; None if it needs none.

    Raises
    ------
    NoModel
        If the variable or the entry of the keyring that should hold it is empty or not there.
    """
    if settings.api_key_keyring is not None:
        return _read_keyring(settings.model, settings.api_key_keyring)
    if settings.api_key_env is None:
        return None
    value = environment.get(settings.api_key_env, "").strip()  # files of secrets often end with a line's end
    if not value:
        raise NoModel(
            f"{settings.model} needs a key, and the environment variable {settings.api_key_env} is not set",
            field="api_key_env",
            got=settings.api_key_env,
            hint=f"export {settings.api_key_env}=... and try again; the key itself is never written down.",
        )
    if not (value.isascii() and value.isprintable()) or " " in value:
        raise NoModel(
            f"what the environment variable {settings.api_key_env} holds cannot be a key: there are blanks or signs in it "
            "that no header may have",
            field="api_key_env",
            got=f"{len(value)} characters",
            hint="Set it again, without quotes or line ends; the key itself is never written down.",
        )
    return value


def wants_key(settings: ModelSettings) -> bool:
    """Return whether a key is to be found for a model."""
    return settings.api_key_env is not None or settings.api_key_keyring is not None


def _read_keyring(model: str, entry: str) -> str:
    """Return the key that the system's keyring holds under service/name."""
    service, _, name = entry.partition("/")
    try:
        keyring: Any = importlib.import_module("keyring")
    except ImportError:
        raise NoModel(
            f"{model} needs a key from the system's keyring, and the package keyring is not installed",
            field="api_key_keyring", got=entry, hint=f"{install_hint('keyring')}, or use api_key_env.",
        ) from None  # fmt: skip
    try:
        value = keyring.get_password(service, name)
        said = "" if value else f"holds no {name} of {service}"
    except keyring.errors.KeyringError as error:  # locked, or no keyring on this machine
        value, said = None, f"cannot be read: {type(error).__name__}"
    if not value:
        raise NoModel(
            f"{model} needs a key, and the system's keyring {said}", field="api_key_keyring", got=entry,
            hint=f"`keyring set {service} {name}` asks for it and keeps it; the key itself is never written down.",
        )  # fmt: skip
    return str(value)
