"""Which models may see a task now: where they stand, and what they prove."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..attestation.attestation import Attestations, Attested
from ..calls.task import Task
from ..config import ModelSettings
from ..errors import ConfidentialWaits
from ..redaction import redact_text
from .eligibility import bar_reason
from .errors_text import explain_waiting, is_bound


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
        return await explain_waiting(task, self._models, self._attestations, self._seen, said)
