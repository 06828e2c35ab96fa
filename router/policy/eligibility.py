"""Which models may see a task, by place, region and proof, and the reasons against the others."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ..attestation import Attestations, Attested
from ..calls.task import Sensitivity, Task
from ..config import ModelSettings
from ..endpoints.health import probe_model
from ..errors import Confidential, ConfidentialWaits
from ..redaction import redact_text


@dataclass(frozen=True)
class Route:
    """The model that is asked, and the models that are asked in turn if it fails."""

    name: str
    fallbacks: tuple[str, ...]


def require_permitted(task: Task, models: Mapping[str, ModelSettings], attested: Collection[str]) -> None:
    """Refuse a task that no model may see; `attested` names the models whose proof holds.

    Raises
    ------
    Confidential
        If no configured model may see it.
    """
    if not all(
        bar_reason(settings, task.sensitivity, task.jurisdiction, name in attested) for name, settings in models.items()
    ):
        return
    if task.sensitivity != "confidential":
        raise Confidential(
            f"a task ({task.role}, {task.intent}) may not leave {task.jurisdiction}, and no model there is set up",
            field="models",
            got=[
                f"{name} ({settings.place} {settings.region})".replace(" )", ")") for name, settings in models.items()
            ],
            allowed=f"a model with place: local, or region: {task.jurisdiction}",
            hint="Serve a model on a machine of yours and give it place: local, or name the region of one that is "
            "there.",
        )
    raise Confidential(
        f"a confidential task ({task.role}, {task.intent}) may not leave this machine, and no model here is set up",
        field="models",
        got=[f"{name} ({settings.place})" for name, settings in models.items()],
        allowed="a model with place: local, or place: attested with an attestation that holds",
        hint="Serve a model on a machine of yours and give it place: local, or lower the task's sensitivity.",
    )


def bar_reason(settings: ModelSettings, sensitivity: Sensitivity, jurisdiction: str, proven: bool = False) -> str:
    """Return why a text may not be sent to a model; empty where it may.

    An attested model counts as local while its proof holds (`proven`), and as any remote model while it does not.
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
    """Which models may see a task now, by place, region and proof.

    Parameters
    ----------
    models : mapping of str to ModelSettings
        The configured models.
    attestations : Attestations
        The proofs of attested models.
    providers : collection of str
        Names of providers of this process.
    environment : mapping of str to str
        Environment variables with the keys.
    """

    def __init__(
        self,
        models: Mapping[str, ModelSettings],
        attestations: Attestations,
        providers: Collection[str],
        environment: Mapping[str, str],
    ) -> None:
        self._models, self._attestations = models, attestations
        self._providers, self._environment = providers, environment

    async def find_attested(self, task: Task) -> frozenset[str]:
        """Return the models whose proof holds; none, without asking, for a task that every model may see."""
        return await self._attestations.refresh() if is_bound(task) else frozenset()

    async def list_open(self, task: Task, names: Sequence[str]) -> tuple[list[str], dict[str, Attested]]:
        """Return the models that may still see a task, and the proofs that hold.

        A proof may have ended since the task was routed.

        Raises
        ------
        ConfidentialWaits
            If the first of the models may no longer see it.
        """
        proving = is_bound(task) or any(self._models[name].attestation for name in names)
        proven = await self._attestations.refresh() if proving else frozenset()
        open_names = [
            name
            for name in names
            if not bar_reason(self._models[name], task.sensitivity, task.jurisdiction, name in proven)
        ]
        if open_names[:1] != list(names[:1]):
            raise await self.explain_waiting(task)
        return open_names, {name: proof for name in proven if (proof := self._attestations.find_proof(name))}

    def may_see(self, task: Task, name: str) -> bool:
        """Return whether a model may see a task now, without a request to any machine."""
        proven = self._attestations.find_proof(name) is not None
        return not bar_reason(self._models[name], task.sensitivity, task.jurisdiction, proven)

    async def explain_waiting(self, task: Task, failure: str = "") -> ConfidentialWaits:
        """Return the error that names each model and why it is not available.

        It makes no paid call. `failure` is why the call failed, where one was made.
        """
        proven = await self._attestations.refresh()
        reasons = await asyncio.gather(
            *(self._explain_unavailable(task, name, failure, proven) for name in self._models)
        )
        lines = [
            f"  {name} ({settings.place}): {redact_text(reason)}"
            for (name, settings), reason in zip(self._models.items(), reasons, strict=True)
        ]
        confidential = task.sensitivity == "confidential"
        text = "confidential text" if confidential else f"text that may not leave {task.jurisdiction}"
        there = "" if confidential else f", or one in {task.jurisdiction}"
        return ConfidentialWaits(
            f"{text} ({task.role}, {task.intent}) waits for a local or attested model{there}, and none is available:\n"
            + "\n".join(lines),
            field="models",
            hint="It went nowhere else. Start one of them, or mend what it proves, and resume the run.",
        )

    async def _explain_unavailable(self, task: Task, name: str, failure: str, proven: Collection[str]) -> str:
        settings = self._models[name]
        barred = bar_reason(settings, task.sensitivity, task.jurisdiction, name in proven)
        if reason := self._attestations.explain_missing(name) or barred:
            return reason
        health = await probe_model(name, settings, self._providers, self._environment)
        return health.detail if health.answers is False else failure or "it answers now: ask again"


def is_bound(task: Task) -> bool:
    """Return whether a task may not be sent to every model."""
    return task.sensitivity == "confidential" or bool(task.jurisdiction)
