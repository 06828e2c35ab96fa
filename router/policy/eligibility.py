"""Which models may see a task: where they stand, what they prove, and what keeps the others out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from ..attestation import Attestations, Attested
from ..calls.task import Sensitivity, Task
from ..config import ModelSettings
from ..endpoints.health import probe_model
from ..errors import Confidential, ConfidentialWaits
from ..redaction import redact_text


@dataclass(frozen=True)
class Route:
    """The model that is asked, and those that are asked if it fails."""

    name: str
    fallbacks: tuple[str, ...]


def list_permitted_models(
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


class Access:
    """Says who may be asked, and what keeps the others out.

    Parameters
    ----------
    models : mapping of str to ModelSettings
        The configured models.
    attestations : Attestations
        What those elsewhere prove.
    providers : collection of str
        Names of providers of this process.
    environment : mapping of str to str
        Where keys are looked up.
    """

    def __init__(
        self,
        models: Mapping[str, ModelSettings],
        attestations: Attestations,
        providers: Collection[str],
        environment: Mapping[str, str],
    ) -> None:
        self._models, self._attestations = models, attestations
        self._seen = (providers, environment, redact_text)

    async def attested(self, task: Task) -> frozenset[str]:
        """Return the models that prove what they run, where that makes a difference."""
        return await self._attestations.hold() if is_bound(task) else frozenset()

    async def open_to(self, task: Task, names: Sequence[str]) -> tuple[list[str], dict[str, Attested]]:
        """Return the models that may still see a task, and the proofs that hold: one may have ended since it was routed.

        Raises
        ------
        ConfidentialWaits
            If the first of them may no longer.
        """
        proving = is_bound(task) or any(self._models[name].attestation for name in names)
        held = await self._attestations.hold() if proving else frozenset()
        still = [
            name
            for name in names
            if not bar_reason(self._models[name], task.sensitivity, task.jurisdiction, name in held)
        ]
        if still[:1] != list(names[:1]):
            raise await self.waits(task)
        return still, {name: proof for name in held if (proof := self._attestations.proof(name))}

    def still(self, task: Task, name: str) -> bool:
        """Return whether a model may see a task at this moment, without asking anybody."""
        proved = self._attestations.proof(name) is not None
        return not bar_reason(self._models[name], task.sensitivity, task.jurisdiction, proved)

    async def waits(self, task: Task, said: str = "") -> ConfidentialWaits:
        """Return the error that names each model and why it is not available; `said` is why a call failed."""
        return await _explain_waiting(task, self._models, self._attestations, self._seen, said)


def is_bound(task: Task) -> bool:
    """Return whether a task may not go just anywhere."""
    return task.sensitivity == "confidential" or bool(task.jurisdiction)


async def _explain_waiting(
    task: Task,
    models: Mapping[str, ModelSettings],
    attestations: Attestations,
    seen: tuple[Collection[str], Mapping[str, str], Callable[[str], str]],
    said: str = "",
) -> ConfidentialWaits:
    """Return the error that names each model and why it is not available; none is asked anything that costs.

    `seen` is what models are looked at with: providers of this process, the environment, and what takes keys out of a
    text; `said` is why the call failed, where one was made.
    """
    providers, environment, redact = seen
    held = await attestations.hold()

    async def why(name: str, settings: ModelSettings) -> str:
        if reason := attestations.why(name) or bar_reason(settings, task.sensitivity, task.jurisdiction, name in held):
            return reason
        health = await probe_model(name, settings, providers, environment)
        return health.detail if health.answers is False else said or "it answers now: ask again"

    reasons = await asyncio.gather(*(why(name, each) for name, each in models.items()))
    told = [
        f"  {name} ({each.place}): {redact(reason)}"
        for (name, each), reason in zip(models.items(), reasons, strict=True)
    ]
    confidential = task.sensitivity == "confidential"
    text = "confidential text" if confidential else f"text that may not leave {task.jurisdiction}"
    there = "" if confidential else f", or one in {task.jurisdiction}"
    return ConfidentialWaits(
        f"{text} ({task.role}, {task.intent}) waits for a local or attested model{there}, and none is available:\n"
        + "\n".join(told),
        field="models",
        hint="It went nowhere else. Start one of them, or mend what it proves, and resume the run.",
    )
