"""What is said when a text may be seen by some models, and none of them is there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping

from ..attestation.attestation import Attestations
from ..calls.task import Task
from ..config import ModelSettings
from ..endpoints.health import probe_model
from ..errors import ConfidentialWaits
from .eligibility import bar_reason


def is_bound(task: Task) -> bool:
    """Return whether a task may not go just anywhere."""
    return task.sensitivity == "confidential" or bool(task.jurisdiction)


async def explain_waiting(
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
